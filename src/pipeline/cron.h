/* SPDX-License-Identifier: Apache-2.0 */
/* cron.h - schedules of five fields, and when they are due in a time zone
 *
 * aliquot-pipeline(1) describes the fields. Pure.
 *
 * Summer time: a schedule whose hour field is every hour follows the clock as it is shown, so it is
 * due in each hour that passes. For other schedules a time that the clock skips is due at the first
 * moment after the gap, and a time that it shows twice is due the first time only. The same holds
 * for every other change of a zone's distance from UTC.
 */
#ifndef AQ_PIPELINE_CRON_H
#define AQ_PIPELINE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/time_zone.h"

#define CRON_BYTES_MAX 256
#define CRON_NEVER TIME_ZONE_NEVER

struct cron {
    uint64_t minutes; /* bits */
    uint32_t hours, days, months, weekdays;
    bool needs_both; /* a day must match 'days' and 'weekdays'; else one of them is enough */
};

/* Read "30 2 * * mon-fri" or "@daily". -EINVAL with the column and the remedy, also for a day that
 * never comes, such as 30 February.
 */
int cron_parse(const char *text, struct cron *ret, struct aq_error *err) AQ_UNTRUSTED;

/* Is it due on this day, counted from 1970-01-01, at some time? */
bool cron_matches_day(const struct cron *cron, int64_t days);

/* The first due time after 'after_sec', Unix time in seconds; CRON_NEVER if there is none in the
 * next 50 years.
 */
int64_t cron_next(const struct cron *cron, const struct time_zone *zone, int64_t after_sec);

/* The last due time in (after, until]; CRON_NEVER if there is none. */
int64_t cron_last(const struct cron *cron, const struct time_zone *zone, int64_t after_sec,
                  int64_t until_sec);

#endif
