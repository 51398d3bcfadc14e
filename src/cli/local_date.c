/* SPDX-License-Identifier: Apache-2.0 */
/* Dates that users type, for the manager. */
#include "cli/local_date.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/opt.h"

/* "2026-11-24" of "20261124" too. */
static bool local_date_is_day(const char *text, char day[sizeof("2026-11-24")])
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 8 && !text[8])
        (void)snprintf(day, sizeof("2026-11-24"), "%.4s-%.2s-%.2s", text, text + 4, text + 6);
    else
        (void)snprintf(day, sizeof("2026-11-24"), "%.10s", text);
    return strlen(text) == (digits == 8 ? 8 : 10) && strspn(text, "0123456789-") == strlen(text);
}

static const char *local_date_resolve_as(const char *text, bool is_end, char buf[CLOCK_ISO_MAX])
{
    char day[sizeof("2026-11-24")];
    bool is_day = text && local_date_is_day(text, day);
    struct tm local;
    time_t sec;
    int64_t usec;

    if (!text || clock_parse_local_date(is_day ? day : text, &usec) < 0)
        return text;
    sec = (time_t)(usec / USEC_PER_SEC);
    if (is_day && is_end && localtime_r(&sec, &local)) {
        local.tm_mday++;
        local.tm_isdst = -1; /* a day may have 23 or 25 hours */
        usec = (int64_t)mktime(&local) * USEC_PER_SEC;
    }
    return clock_format_iso(usec, buf);
}

const char *local_date_resolve(const char *text, char buf[CLOCK_ISO_MAX])
{
    return local_date_resolve_as(text, false, buf);
}

const char *local_date_resolve_end(const char *text, char buf[CLOCK_ISO_MAX])
{
    return local_date_resolve_as(text, true, buf);
}

int local_date_check(const char *option, const char *text, struct aq_error *err)
{
    int64_t usec, ago_usec;

    if (!text || clock_parse_since(text, &usec, &ago_usec) == 0)
        return 0;
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "%s takes a date such as '2026-11-23 02:00', which is local time, or "
                        "2026-11-23T02:00:00Z, Unix time in seconds, or how long ago, such as "
                        "10m, not '%.60s'",
                        option, text);
}
