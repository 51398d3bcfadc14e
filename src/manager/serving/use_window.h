/* SPDX-License-Identifier: Apache-2.0 */
/* use_window.h - what was counted in the last minute
 *
 * Counts are added to slots of five seconds, which are reused after a minute; so no memory of single
 * requests is kept, and the minute is 55 to 60 seconds long. Pure. Times are monotonic microseconds.
 */
#ifndef AQ_MANAGER_SERVING_USE_WINDOW_H
#define AQ_MANAGER_SERVING_USE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define USE_WINDOW_SLOT_USEC (5 * USEC_PER_SEC)
#define USE_WINDOW_SLOTS 12 /* all of them: the last minute */
#define USE_WINDOW_NOW 3    /* for rates: the last 10 to 15 seconds */

struct use_window;

/* Of so many counts. */
struct use_window *use_window_new(size_t width, int64_t now_usec);
void use_window_free(struct use_window *window); /* NULL is fine */

void use_window_add(struct use_window *window, const int64_t *counts, int64_t now_usec);

/* The counts of the latest slots, the present one included, into ret[0..width-1]. Returns how many
 * seconds they are of, at least 1: less than the slots are long while the window is younger.
 */
double use_window_sum(const struct use_window *window, size_t slots, int64_t now_usec,
                      int64_t *ret);

/* Nothing was added for a minute. */
bool use_window_is_over(const struct use_window *window, int64_t now_usec);

#endif
