/* SPDX-License-Identifier: Apache-2.0 */
/* orphans_internal.h - inside orphans.c and orphan_adoption.c */
#ifndef AQ_MANAGER_CORE_NODES_ORPHANS_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_ORPHANS_INTERNAL_H

#include "base/list.h"
#include "base/uuid.h"
#include "link/message.h"
#include "model/agent.h"

struct core;
struct core_orphan;

/* Of one agent. It is there as long as it has one. */
struct orphan_agent {
    struct list kernels; /* orphan.link */
    size_t count, order_bytes;
    char id[AGENT_ID_MAX + 1];
};

struct orphan {
    struct list link; /* in kernels of: */
    struct orphan_agent *agent;
    struct uuid kernel_id, session_id;
    int64_t attempt;
    enum msg_kernel_state state;
    uint32_t heartbeat; /* agent_entry.heartbeat that last had it */
    int64_t ask_usec;   /* monotonic: not to be described before */
    char *order;        /* JSON of kernel.create; NULL = it has not come yet */
    bool is_unreadable; /* the agent has none any more */
    bool is_ending;     /* an administrator does not want it */
    bool is_of_lost_commit;
};

/* Call 'each' with what is known of one session, whose kernels these are. */
void orphan_adoption_describe(struct core *core, struct orphan *const *kernels, size_t count,
                              void (*each)(void *data, const struct core_orphan *o), void *data);

/* They are not orphans any more. */
void orphans_drop_session(struct core *core, const struct uuid *session_id);

#endif
