/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - whose list or GraphQL request runs, and when
 *
 * One request of a user runs at a time, the others of that user wait. What has more to do
 * than fits in one turn of the loop goes on in a later one: in each turn one request, in the
 * order in which they came to wait, so that nobody waits longer than one request of each
 * other user takes for its turn. Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_CALL_TURNS_H
#define AQ_MANAGER_CALL_TURNS_H

#include <uv.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/list.h"
#include "base/uuid.h"

struct turn_queue;

struct turn_queue *turns_new(void);
void turns_free(struct turn_queue *turns); /* after the last request */
AQ_DEFINE_CLEANUP(struct turn_queue, turns_free)

/* Something that waits for its turn. */
struct turn {
    struct list link;
    void (*fn)(struct turn *turn);
};

/* Begin a request of this user: turn->fn is called, now or when the user's other requests have
 * ended. At its end call turns_leave(). -EAGAIN (rate-limit-exceeded) if too many wait.
 */
int turns_enter(struct turn_queue *turns, uv_loop_t *loop, const struct uuid *user_id,
                struct turn *turn, struct aq_error *err);
void turns_leave(struct turn_queue *turns, const struct uuid *user_id);

/* Of a request that runs: call 'fn' in a later turn of the loop. */
void turns_wait(struct turn_queue *turns, struct turn *turn);

/* Call 'fn' of one that waits for a turn of the loop; false = none does. */
bool turns_run_one(struct turn_queue *turns);

#endif
