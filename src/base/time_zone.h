/* SPDX-License-Identifier: Apache-2.0 */
/* time_zone.h - time zones by their names, without the process's own
 *
 * glibc has one time zone for the whole process, so a program with threads cannot look up that of
 * each user. This reads the files of tzdata (TZif, RFC 8536) below $TZDIR, else
 * /usr/share/zoneinfo. A zone is read-only once it is open: any thread.
 */
#ifndef AQ_BASE_TIME_ZONE_H
#define AQ_BASE_TIME_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TIME_ZONE_NAME_MAX 64           /* bytes */
#define TIME_ZONE_BYTES_MAX (64 << 10)  /* of a file; the largest of tzdata have 4 KiB */
#define TIME_ZONE_TRANSITIONS_MAX 4096  /* in a file; the most in tzdata are 250 */
#define TIME_ZONE_NEVER (INT64_MAX / 4) /* seconds: later than any time that is asked for */

struct time_zone;

/* A stretch of time with one distance from UTC. Unix time in seconds. */
struct time_zone_span {
    int64_t from, until; /* [from, until); -TIME_ZONE_NEVER and TIME_ZONE_NEVER = without an end */
    int32_t offset;      /* seconds that local time is ahead of UTC */
};

/* Has the name the form of one, such as "Europe/Berlin"? -EINVAL with the remedy. */
int time_zone_check_name(const char *name, struct aq_error *err) AQ_UNTRUSTED;

/* Read the zone of this name. -EINVAL: not a name; -ENOENT: tzdata has no such zone, or is not
 * installed, which the text says; -EPROTO: the file is damaged.
 */
int time_zone_open(const char *name, struct time_zone **ret, struct aq_error *err);

/* The same of the bytes of a file. -EPROTO. */
int time_zone_parse(const void *bytes, size_t len, struct time_zone **ret,
                    struct aq_error *err) AQ_UNTRUSTED;

void time_zone_free(struct time_zone *zone);
AQ_DEFINE_CLEANUP(struct time_zone, time_zone_free)

/* The span in which 'at_sec' is. Two spans that follow each other may have the same offset. */
struct time_zone_span time_zone_find(const struct time_zone *zone, int64_t at_sec);

/* ---- days of the Gregorian calendar ---- */

struct civil_day {
    int64_t year;
    int month, day; /* from 1 */
};

/* Days since 1970-01-01, and back. */
int64_t civil_to_days(int64_t year, int month, int day);
struct civil_day civil_from_days(int64_t days);

#endif
