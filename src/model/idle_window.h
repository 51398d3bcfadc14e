/* SPDX-License-Identifier: Apache-2.0 */
/* idle_window.h - averages of measurements over a sliding window of time
 *
 * A window is a ring of 64 buckets, so it takes the same memory however long it is, and slides by a
 * 64th of its length.
 */
#ifndef AQ_MODEL_IDLE_WINDOW_H
#define AQ_MODEL_IDLE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_METRICS_MAX 8
#define IDLE_BUCKETS 64

struct idle_bucket {
    float sum;
    uint32_t count;
};

struct idle_window {
    int64_t length_usec;
    int64_t first_usec; /* of the first sample; 0 = there is none */
    int64_t last_bucket;
    struct idle_bucket buckets[IDLE_METRICS_MAX][IDLE_BUCKETS];
};

/* Begin again, with this length. */
void idle_window_begin(struct idle_window *w, int64_t length_usec);

/* Take a sample of a metric (a number below IDLE_METRICS_MAX); 'now' does not go back. */
void idle_window_add(struct idle_window *w, int64_t now_usec, size_t metric, double value);

/* The average of what is in the window at 'now'. False if there is too little to judge by: no
 * sample, or none in a quarter of the time since the first.
 */
bool idle_window_average(const struct idle_window *w, int64_t now_usec, size_t metric, double *ret);

#endif
