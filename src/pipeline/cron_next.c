/* SPDX-License-Identifier: Apache-2.0 */
/* cron_next.c - when a schedule is due
 *
 * Local times are seconds since 1970-01-01 00:00 as a clock on the wall counts them. A zone is a
 * sequence of spans with one offset each, in which local time is Unix time and the offset.
 */
#include "pipeline/cron.h"

#define DAY_SEC 86400
#define HORIZON_SEC (INT64_C(50) * 366 * DAY_SEC)
#define EVERY_HOUR ((1u << 24) - 1)

static int64_t cron_floor_day(int64_t sec)
{
    return (sec >= 0 ? sec : sec - DAY_SEC + 1) / DAY_SEC;
}

bool cron_matches_day(const struct cron *cron, int64_t days)
{
    struct civil_day day = civil_from_days(days);
    int weekday = (int)(((days + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
    bool of_month = (cron->days >> day.day & 1) != 0,
         of_week = (cron->weekdays >> weekday & 1) != 0;

    if (!(cron->months >> day.month & 1))
        return false;
    return cron->needs_both ? of_month && of_week : of_month || of_week;
}

/* The first local time that matches in [from, until); CRON_NEVER = none. */
static int64_t cron_find_local(const struct cron *cron, int64_t from, int64_t until)
{
    int64_t day = cron_floor_day(from), minute = (from - day * DAY_SEC + 59) / 60;

    for (; day * DAY_SEC < until; day++, minute = 0) {
        if (!cron_matches_day(cron, day))
            continue;
        for (; minute < 24 * 60; minute++) {
            int64_t hour = minute / 60, found = day * DAY_SEC + minute * 60;

            if (!(cron->hours >> hour & 1)) {
                minute = hour * 60 + 59; /* the next hour */
                continue;
            }
            if (cron->minutes >> minute % 60 & 1)
                return found < until ? found : CRON_NEVER;
        }
    }
    return CRON_NEVER;
}

int64_t cron_next(const struct cron *cron, const struct time_zone *zone, int64_t after_sec)
{
    int64_t at = after_sec + 1, horizon = after_sec + HORIZON_SEC;
    bool follows_clock = cron->hours == EVERY_HOUR;

    while (at < horizon) {
        struct time_zone_span span = time_zone_find(zone, at);
        int64_t from = at + span.offset, until = AQ_MIN(span.until, horizon) + span.offset, found;

        if (!follows_clock && span.from > -TIME_ZONE_NEVER) {
            int64_t before = span.from + time_zone_find(zone, span.from - 1).offset;

            /* [before, span.from + offset) was skipped; or it is shown for the second time now. */
            if (span.from == at
                && cron_find_local(cron, before, span.from + span.offset) != CRON_NEVER)
                return at;
            from = AQ_MAX(from, before);
        }
        found = cron_find_local(cron, from, until);
        if (found != CRON_NEVER)
            return found - span.offset;
        at = span.until;
    }
    return CRON_NEVER;
}

int64_t cron_last(const struct cron *cron, const struct time_zone *zone, int64_t after_sec,
                  int64_t until_sec)
{
    int64_t low = after_sec, high = until_sec;

    if (cron_next(cron, zone, after_sec) > until_sec)
        return CRON_NEVER;
    while (high - low > 1) { /* something is due in (low, until], and nothing in (high, until] */
        int64_t middle = low + (high - low) / 2;

        if (cron_next(cron, zone, middle) <= until_sec)
            low = middle;
        else
            high = middle;
    }
    return high;
}
