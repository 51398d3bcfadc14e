/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of measurements over a sliding window of time. */
#include "model/idle_window.h"

#include <string.h>

#include "base/cleanup.h"

static int64_t idle_window_bucket(const struct idle_window *w, int64_t now_usec)
{
    return now_usec / AQ_MAX(w->length_usec / IDLE_BUCKETS, 1);
}

void idle_window_begin(struct idle_window *w, int64_t length_usec)
{
    *w = (struct idle_window){ .length_usec = length_usec };
}

/* Buckets that the window has left behind are emptied before they are used again. */
static void idle_window_slide(struct idle_window *w, int64_t bucket)
{
    int64_t from = AQ_MAX(w->last_bucket + 1, bucket - IDLE_BUCKETS + 1);

    for (int64_t b = from; b <= bucket; b++)
        for (size_t m = 0; m < IDLE_METRICS_MAX; m++)
            w->buckets[m][b % IDLE_BUCKETS] = (struct idle_bucket){ 0 };
    w->last_bucket = AQ_MAX(w->last_bucket, bucket);
}

void idle_window_add(struct idle_window *w, int64_t now_usec, size_t metric, double value)
{
    int64_t bucket = idle_window_bucket(w, now_usec);
    struct idle_bucket *to = &w->buckets[metric][bucket % IDLE_BUCKETS];

    if (!w->first_usec)
        w->first_usec = now_usec;
    idle_window_slide(w, bucket);
    to->sum += (float)value;
    to->count++;
}

bool idle_window_average(const struct idle_window *w, int64_t now_usec, size_t metric, double *ret)
{
    int64_t last = idle_window_bucket(w, now_usec), first = idle_window_bucket(w, w->first_usec);
    int64_t from = AQ_MAX(first, last - IDLE_BUCKETS + 1);
    int64_t filled = 0;
    double sum = 0, count = 0;

    for (int64_t b = from; w->first_usec && b <= last; b++) {
        const struct idle_bucket *bucket = &w->buckets[metric][b % IDLE_BUCKETS];

        if (b > w->last_bucket || !bucket->count)
            continue;
        sum += (double)bucket->sum;
        count += bucket->count;
        filled++;
    }
    if (!filled || filled * 4 < (last - from + 1) * 3)
        return false;
    *ret = sum / count;
    return true;
}
