/* SPDX-License-Identifier: Apache-2.0 */
/* defer.h - call a function from the loop instead of from here
 *
 * Keeps the promise of the public headers that callbacks never come from
 * within a call.
 */
#ifndef AQ_HTTP_DEFER_H
#define AQ_HTTP_DEFER_H

#include <uv.h>

struct defer;

/* Call fn(data) once after 'msec' (0 = next turn of the loop). */
struct defer *defer_call(uv_loop_t *loop, unsigned msec, void (*fn)(void *data), void *data);

/* The same, but not called before defer_start(), and then once for each. It stays until
 * defer_cancel() or defer_end().
 */
struct defer *defer_new(uv_loop_t *loop, void (*fn)(void *data), void *data);
void defer_start(struct defer *defer, unsigned msec); /* nothing new if it is started already */

/* Call fn(data) instead, in the next turn of the loop and for the last time. */
void defer_end(struct defer *defer, void (*fn)(void *data), void *data);

/* Call it off; not after defer_call()'s was called. NULL is fine. */
void defer_cancel(struct defer *defer);

#endif
