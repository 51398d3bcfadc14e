/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the client API: "v6.20220615". */
#include "http/version.h"

#include <errno.h>
#include <string.h>

/* Every version that was ever published; clients announce one of them. */
static const struct api_version published[] = {
    { 4, 20181215 }, { 4, 20190115 }, { 4, 20190315 }, { 4, 20190615 }, { 5, 20191215 },
    { 6, 20200815 }, { 6, 20210815 }, { 6, 20220315 }, { 6, 20220615 }, { 6, 20221201 },
    { 6, 20230315 }, { 7, 20230615 }, { 8, 20240315 }, { 8, 20240915 }, { 9, 20250722 },
};

/* Digits at the front, at most 9 of them; 0 if there are none or more. */
static size_t version_read_number(const char *text, uint32_t *ret)
{
    size_t len = strspn(text, "0123456789");

    if (len > 9)
        return 0;
    *ret = 0;
    for (size_t i = 0; i < len; i++)
        *ret = *ret * 10 + (uint32_t)(text[i] - '0');
    return len;
}

int api_version_parse(const char *text, struct api_version *ret, struct aq_error *err)
{
    struct api_version v;
    size_t len = text[0] == 'v' && text[1] != '0' ? version_read_number(text + 1, &v.major) : 0;

    if (!len || text[1 + len] != '.' || version_read_number(text + len + 2, &v.date) != 8
        || text[len + 10])
        return aq_fail(err, EINVAL, "'%.40s' is not an API version like v6.20220615", text);
    *ret = v;
    return 0;
}

int api_version_accept(const char *text, struct api_version *ret, struct aq_error *err)
{
    struct api_version v;

    if (api_version_parse(text ? text : API_VERSION_ASSUMED, &v, NULL) == 0)
        for (size_t i = 0; i < AQ_COUNT(published); i++)
            if (published[i].major == v.major && published[i].date == v.date) {
                *ret = v;
                return 0;
            }
    return aq_fail_kind(err, EINVAL, "generic-bad-request", "Unsupported API version.");
}
