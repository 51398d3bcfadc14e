/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h - what is measured, and what is derived from it
 *
 * A metric is fed with samples (a value, perhaps a capacity, a time) and
 * shown in the form that clients of Backend.AI read: an object of decimal
 * texts. Pure; no clock, no allocation.
 */
#ifndef AQ_MODEL_METRIC_H
#define AQ_MODEL_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/jsonw.h"

#define METRIC_KEY_MAX 63
#define METRIC_NUMBER_MAX 352 /* a text of metric_format(): 309 digits, 3 decimals */

enum metric_unit {
    METRIC_COUNT,
    METRIC_BYTES,
    METRIC_PERCENT,
    METRIC_MSEC,
    METRIC_BPS,
    METRIC_WATTS,
    METRIC_CELSIUS,
    METRIC_UNITS
};

/* As clients know it: "", "bytes", "percent", "msec", "bps", "Watts", "Celsius". */
const char *metric_unit_hint(enum metric_unit unit);

/* What of a sample is shown as the current value. */
enum metric_show {
    METRIC_VALUE, /* the value itself */
    METRIC_RATE,  /* of a counter: its growth in a second */
    METRIC_DIFF,  /* of a counter: its growth since the sample before; the capacity is that of a
                     second and grows with the time between the two */
    METRIC_SHOWS
};

/* Derived values that are shown. */
#define METRIC_MAX (1u << 0)
#define METRIC_MIN (1u << 1)
#define METRIC_AVG (1u << 2)
#define METRIC_PER_SEC (1u << 3) /* "stats.rate" */
#define METRIC_STATS_ALL (METRIC_MAX | METRIC_MIN | METRIC_AVG | METRIC_PER_SEC)

struct metric_kind {
    const char *key; /* "cpu_util": metric_key_is_valid() */
    enum metric_unit unit;
    enum metric_show show;
    unsigned stats; /* METRIC_... of the derived values */
};

/* [a-z0-9_], 1 to METRIC_KEY_MAX, a letter first. */
bool metric_key_is_valid(const char *key);

/* Minimum, maximum and so on of what was shown; counters begin with their
 * second sample. All 0 = nothing yet.
 */
struct metric_sum {
    double min, max, sum;
    uint64_t count;
};
void metric_sum_add(struct metric_sum *to, double value);
void metric_sum_merge(struct metric_sum *to, const struct metric_sum *from);
double metric_sum_avg(const struct metric_sum *sum); /* 0 of nothing */

struct metric {
    double value, before;         /* the last two samples */
    double capacity;              /* negative = has none */
    int64_t at_usec, before_usec; /* 0 = there was none */
    struct metric_sum all;
};

/* Take a sample; all numbers are finite. One that is not later than the last
 * is passed over (false). Bytes are rounded: clients read them as integers.
 */
bool metric_add(struct metric *m, const struct metric_kind *kind, double value, double capacity,
                int64_t at_usec);
double metric_current(const struct metric *m, const struct metric_kind *kind);
/* Negative = has none. */
double metric_capacity(const struct metric *m, const struct metric_kind *kind);
/* Growth since the sample before and in a second; a counter that went
 * backwards was reset and did not grow; 0 of one sample.
 */
double metric_diff(const struct metric *m);
double metric_rate(const struct metric *m);
/* Current value in hundredths of the capacity; negative = there is none. */
double metric_percent(const struct metric *m, const struct metric_kind *kind);

/* At most 3 decimals, half to even, without zeros at the end: "0", "1.5". */
const char *metric_format(double value, int decimals, char buf[METRIC_NUMBER_MAX]);

/* {"current":"…","capacity":"…" or null,"pct":"…","unit_hint":"…","stats.max":"…",…} */
void metric_write(const struct metric *m, const struct metric_kind *kind, struct jsonw *w);

#endif
