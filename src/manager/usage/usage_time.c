/* SPDX-License-Identifier: Apache-2.0 */
/* usage_time.c - days and months of UTC */
#include "manager/usage/usage_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/call/api.h"

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)

/* The digits of "2026-11-24" or "20261124", 'count' of them. */
static bool usage_time_read_digits(const char *text, size_t count, char ret[9])
{
    bool has_dashes = strchr(text, '-') != NULL;
    size_t n = 0;

    for (; *text; text++) {
        if (has_dashes && (n == 4 || n == 6) && *text == '-' && text[1] != '-')
            continue;
        if (*text < '0' || *text > '9' || n == count)
            return false;
        ret[n++] = *text;
    }
    ret[n] = '\0';
    return n == count;
}

static int usage_time_begin(int year, int month, int day, int64_t *ret_usec)
{
    char iso[48];

    (void)snprintf(iso, sizeof(iso), "%04d-%02d-%02d 00:00:00", year, month, day);
    return year < 1970 || year > 9998 ? -EINVAL : clock_parse_date(iso, ret_usec);
}

int usage_time_parse_day(const char *text, const char *field, int64_t *ret_usec,
                         int64_t *ret_next_usec, struct aq_error *err)
{
    int year = 0, month = 0, day = 0;
    char digits[9];

    if (!usage_time_read_digits(text, 8, digits)
        || sscanf(digits, "%4d%2d%2d", &year, &month, &day) != 3)
        return api_fail_param(err, field, "'%.16s' is no day, such as 20261124", text);
    if (usage_time_begin(year, month, day, ret_usec) < 0)
        return api_fail_param(err, field, "there is no %.16s", text);
    *ret_next_usec = *ret_usec + DAY_USEC;
    return 0;
}

int usage_time_parse_month(const char *text, const char *field, int64_t *ret_usec,
                           int64_t *ret_next_usec, struct aq_error *err)
{
    int year = 0, month = 0;
    char digits[9];

    if (!usage_time_read_digits(text, 6, digits) || sscanf(digits, "%4d%2d", &year, &month) != 2)
        return api_fail_param(err, field, "'%.16s' is no month, such as 202611", text);
    if (usage_time_begin(year, month, 1, ret_usec) < 0
        || usage_time_begin(year + month / 12, month % 12 + 1, 1, ret_next_usec) < 0)
        return api_fail_param(err, field, "there is no %.16s", text);
    return 0;
}
