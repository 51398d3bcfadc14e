/* SPDX-License-Identifier: Apache-2.0 */
/* session_durable.c - sessions as durable objects: what the turn of the loop calls of them */
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/control.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/session_durable.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

static struct session_entry *session_of_durable(struct durable *d)
{
    return AQ_CONTAINER_OF(d, struct session_entry, durable);
}

static void session_step(struct core *core, struct durable *d)
{
    lifecycle_step(core, session_of_durable(d));
}

/* A pass has not seen it: only another one can tell what it waits for. */
static void session_pass_again(struct core *core, struct session_entry *l)
{
    if (!l->queue.was_skipped)
        return;
    l->queue.was_skipped = false;
    l->resource_group->needs_pass = true;
    core_schedule_turn(core);
}

static void session_returned(struct core *core, struct durable *d, int result,
                             const struct aq_error *err)
{
    struct session_entry *l = session_of_durable(d);

    if (l->sched.is_placing && l->s.status == SESSION_PENDING)
        sched_sync_mark_session(l); /* the placement came to nothing */
    l->sched.is_placing = false;
    if (!session_is_terminal(l->s.status))
        session_pass_again(core, l);
    if (result < 0)
        waiters_fail(core, l, result, err);
}

static void session_free(struct durable *d)
{
    session_entry_free(session_of_durable(d));
}

const struct durable_ops session_durable_ops = {
    .step = session_step,
    .returned = session_returned,
    .free = session_free,
};
