/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_session.c - proposals of a session's status and its kernels' */
#include "manager/core/commit/proposal_session.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/statistics/statistics_internal.h"

struct event *proposal_add_session_status(struct core *core, struct session_entry *l,
                                          enum session_status to, const char *reason)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_STATUS);

    e->session_status = (struct event_session_status){
        .id = l->s.id,
        .from = l->s.status,
        .to = to,
        .version = l->s.version,
        .reason = reason,
    };
    return e;
}

struct event *proposal_add_kernel_status(struct core *core, struct session_entry *l, size_t rank,
                                         enum kernel_status to, const char *reason)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct event *e = proposal_add(core, &l->durable, EVENT_KERNEL_STATUS);

    e->kernel_status = (struct event_kernel_status){
        .id = k->id,
        .session_id = l->s.id,
        .from = k->status,
        .to = to,
        .version = k->version,
        .reason = reason,
        .last_stat = kernel_is_terminal(to) ? statistics_text(l->kernels[rank].measured) : NULL,
    };
    return e;
}
