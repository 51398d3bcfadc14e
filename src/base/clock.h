/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the only source of time
 *
 * Microseconds everywhere. Wall-clock time is what is recorded and shown;
 * monotonic time measures. Tests inject both; a process started with
 * ALIQUOT_CLOCK_FILE (fault builds only) adds the signed seconds found in
 * that file to the wall clock, and a second number to monotonic time, so that
 * clock jumps and long waits can be tested without setting a machine's clock.
 */
#ifndef AQ_BASE_CLOCK_H
#define AQ_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define USEC_PER_SEC INT64_C(1000000)
#define USEC_PER_MSEC INT64_C(1000)

struct clock {
    int64_t (*realtime_usec)(void *data);
    int64_t (*monotonic_usec)(void *data);
    void *data;
};

/* Replace the clock of this process; NULL restores the system's. Before
 * threads start.
 */
void clock_set(const struct clock *clock);

int64_t clock_realtime_usec(void);
int64_t clock_monotonic_usec(void);

/* Since the boot of this machine, with the time in which it was suspended. It is comparable between
 * processes of one machine and never injected: timers of Linux run by it.
 */
int64_t clock_boottime_usec(void);

#define CLOCK_ISO_MAX 40

/* "2026-11-21T01:02:03.456789+00:00"; the microseconds are left out when they
 * are 0, as Python's isoformat() does. Returns 'buf'.
 */
char *clock_format_iso(int64_t usec, char buf[CLOCK_ISO_MAX]);

/* "2026-11-21T01:02:03.456789Z": always as long, for the beginnings of lines. */
char *clock_format_utc(int64_t usec, char buf[CLOCK_ISO_MAX]);

/* "2026-11-21 02:02:03" in the time zone of this process. */
char *clock_format_local(int64_t usec, char buf[CLOCK_ISO_MAX]);

/* Read ISO 8601 (T or space, optional fraction, Z or +hh[:]mm or none = UTC)
 * or RFC 1123 ("Sat, 21 Nov 2026 01:02:03 GMT"). Returns 0 or -EINVAL.
 */
int clock_parse_date(const char *text, int64_t *ret_usec) AQ_UNTRUSTED;

/* The same, where a date without a zone is in the time zone of this process: what its user types.
 */
int clock_parse_local_date(const char *text, int64_t *ret_usec);

/* A duration "10", "10s", "5m", "2h", "7d", "1.5h", or several in a row.
 * Returns 0 or -EINVAL (also for overflow and negatives).
 */
int clock_parse_duration(const char *text, int64_t *ret_usec) AQ_UNTRUSTED;

/* A time from which on something is wanted: a date as above or Unix time in seconds
 * ("1763690523.5"), or a duration with a unit, so long ago, which the owner of the clock
 * that counts subtracts. One of both is > 0 then, the other 0. Returns 0 or -EINVAL.
 */
int clock_parse_since(const char *text, int64_t *ret_usec, int64_t *ret_ago_usec) AQ_UNTRUSTED;

#endif
