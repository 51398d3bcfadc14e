/* defer.h - call a function from the loop instead of from here
 *
 * Keeps the promise of the public headers that callbacks never come from
 * within a call.
 */
#ifndef AQ_HTTP_DEFER_H
#define AQ_HTTP_DEFER_H

#include <uv.h>

struct defer;

/* Call fn(data) once after 'msec' (0 = next turn of the loop). NULL = no memory. */
struct defer *defer_call(uv_loop_t *loop, unsigned msec, void (*fn)(void *data), void *data);

/* Call it off; not after it was called. NULL is fine. */
void defer_cancel(struct defer *defer);

#endif
