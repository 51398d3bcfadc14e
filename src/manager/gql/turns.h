/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - whose GraphQL request runs, and when
 *
 * One request of a user runs at a time, the others of that user wait. What has more to do
 * than fits in one turn of the loop goes on in a later one: in each turn one request, in the
 * order in which they came to wait, so that nobody waits longer than one request of each
 * other user takes for its turn. Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_GQL_TURNS_H
#define AQ_MANAGER_GQL_TURNS_H

#include <uv.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/list.h"
#include "base/uuid.h"

struct gql_turns;

struct gql_turns *gql_turns_new(void);        /* NULL = no memory */
void gql_turns_free(struct gql_turns *turns); /* after the last request */
AQ_DEFINE_CLEANUP(struct gql_turns, gql_turns_free)

/* Something that waits for its turn. */
struct gql_turn {
    struct list link;
    void (*fn)(struct gql_turn *turn);
};

/* Begin a request of this user: turn->fn is called, now or when the user's other requests have
 * ended. At its end call gql_turns_leave(). -EAGAIN (rate-limit-exceeded) if too many wait, -ENOMEM.
 */
int gql_turns_enter(struct gql_turns *turns, uv_loop_t *loop, const struct uuid *user_id,
                    struct gql_turn *turn, struct aq_error *err);
void gql_turns_leave(struct gql_turns *turns, const struct uuid *user_id);

/* Of a request that runs: call 'fn' in a later turn of the loop. */
void gql_turns_wait(struct gql_turns *turns, struct gql_turn *turn);

#endif
