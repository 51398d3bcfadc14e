/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured, and what is derived from it. */
#include "model/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

const char *metric_unit_hint(enum metric_unit unit)
{
    static const char *const hints[METRIC_UNITS] = {
        [METRIC_COUNT] = "",          [METRIC_BYTES] = "bytes", [METRIC_PERCENT] = "percent",
        [METRIC_MSEC] = "msec",       [METRIC_BPS] = "bps",     [METRIC_WATTS] = "Watts",
        [METRIC_CELSIUS] = "Celsius",
    };

    return hints[unit];
}

bool metric_key_is_valid(const char *key)
{
    size_t len = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return len > 0 && len <= METRIC_KEY_MAX && !key[len] && key[0] >= 'a' && key[0] <= 'z';
}

/* ---- sums ---- */

void metric_sum_add(struct metric_sum *to, double value)
{
    const struct metric_sum one = { value, value, value, 1 };

    metric_sum_merge(to, &one);
}

void metric_sum_merge(struct metric_sum *to, const struct metric_sum *from)
{
    if (from->count == 0)
        return;
    if (to->count == 0) {
        *to = *from;
        return;
    }
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
    to->sum += from->sum;
    to->count += from->count;
}

double metric_sum_avg(const struct metric_sum *sum)
{
    return sum->count ? sum->sum / (double)sum->count : 0;
}

/* ---- samples ---- */

static double metric_elapsed_sec(const struct metric *m)
{
    return m->before_usec ? (double)(m->at_usec - m->before_usec) / (double)USEC_PER_SEC : 0;
}

bool metric_add(struct metric *m, const struct metric_kind *kind, double value, double capacity,
                int64_t at_usec)
{
    if (at_usec <= m->at_usec)
        return false;
    if (kind->unit == METRIC_BYTES) {
        value = rint(value);
        capacity = rint(capacity);
    }
    m->before = m->value;
    m->before_usec = m->at_usec;
    m->value = value;
    m->capacity = capacity;
    m->at_usec = at_usec;
    if (kind->show == METRIC_VALUE || m->before_usec)
        metric_sum_add(&m->all, metric_current(m, kind));
    return true;
}

double metric_diff(const struct metric *m)
{
    return m->before_usec && m->value > m->before ? m->value - m->before : 0;
}

double metric_rate(const struct metric *m)
{
    double sec = metric_elapsed_sec(m);

    return sec > 0 ? metric_diff(m) / sec : 0;
}

double metric_current(const struct metric *m, const struct metric_kind *kind)
{
    switch (kind->show) {
    case METRIC_RATE:
        return metric_rate(m);
    case METRIC_DIFF:
        return metric_diff(m);
    default:
        return m->value;
    }
}

double metric_capacity(const struct metric *m, const struct metric_kind *kind)
{
    if (m->capacity < 0)
        return -1;
    return kind->show == METRIC_DIFF ? m->capacity * metric_elapsed_sec(m) : m->capacity;
}

double metric_percent(const struct metric *m, const struct metric_kind *kind)
{
    double capacity = metric_capacity(m, kind);

    return capacity > 0 ? metric_current(m, kind) / capacity * 100 : -1;
}

/* ---- texts ---- */

const char *metric_format(double value, int decimals, char buf[METRIC_NUMBER_MAX])
{
    int len = snprintf(buf, METRIC_NUMBER_MAX, "%.*f", decimals, value);

    while (decimals > 0 && len > 1 && buf[len - 1] == '0')
        buf[--len] = '\0';
    if (len > 1 && buf[len - 1] == '.')
        buf[--len] = '\0';
    return strcmp(buf, "-0") == 0 ? "0" : buf;
}

static void metric_put(struct jsonw *w, const char *key, double value)
{
    char buf[METRIC_NUMBER_MAX];

    jsonw_member_str(w, key, metric_format(value, 3, buf));
}

static void metric_put_percent(const struct metric *m, const struct metric_kind *kind,
                               struct jsonw *w)
{
    double percent = metric_percent(m, kind);
    char buf[METRIC_NUMBER_MAX];

    jsonw_member_str(w, "pct", percent < 0 ? "0.00" : metric_format(percent, 2, buf));
}

void metric_write(const struct metric *m, const struct metric_kind *kind, struct jsonw *w)
{
    double capacity = metric_capacity(m, kind);

    jsonw_object_begin(w);
    metric_put(w, "current", metric_current(m, kind));
    if (capacity < 0)
        jsonw_member_null(w, "capacity");
    else
        metric_put(w, "capacity", capacity);
    metric_put_percent(m, kind, w);
    jsonw_member_str(w, "unit_hint", metric_unit_hint(kind->unit));
    if (kind->stats & METRIC_MIN)
        metric_put(w, "stats.min", m->all.min);
    if (kind->stats & METRIC_MAX)
        metric_put(w, "stats.max", m->all.max);
    if (kind->stats & METRIC_AVG)
        metric_put(w, "stats.avg", metric_sum_avg(&m->all));
    if (kind->stats & METRIC_PER_SEC)
        metric_put(w, "stats.rate", metric_rate(m));
    jsonw_object_end(w);
}
