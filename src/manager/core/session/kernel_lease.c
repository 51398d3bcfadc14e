/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_lease.c - how long kernels may run on an agent that has no contact with us */
#include "manager/core/session/kernel_lease.h"

#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/message.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/rerun.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/lead_beat.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define MARGIN_USEC USEC_PER_SEC
#define MARGIN_PERCENT 1
/* How long agents may be without a manager while another one takes over (decision 559), and after
 * which time without contact kernels may start elsewhere: the lease, the kill and the margin fit.
 */
#define TAKEOVER_USEC (25 * USEC_PER_SEC)
#define REASSIGN_USEC (40 * USEC_PER_SEC)
#define LEASE_MAX_USEC (INT64_MAX / 8) /* of what an agent says: sums of it do not overflow */

static const struct resource_group_entry *kernel_lease_find_group(const struct core *core,
                                                                  const struct agent_entry *a)
{
    return a->a.resource_group ? resource_group_entry_find(core, a->a.resource_group) : NULL;
}

/* Is the kernel started elsewhere when the agent is given up, while nobody knows what became of it? */
static bool kernel_lease_is_needed(const struct core *core, const struct agent_entry *a,
                                   const struct session_entry *l)
{
    const struct resource_group_entry *g = kernel_lease_find_group(core, a);
    const char *policy = g ? g->g.agent_loss_policy : NULL;
    bool waits = !l->s.spec->on_node_loss && (!policy || strcmp(policy, "wait") == 0);

    return rerun_leaves_lost_agent(l)
           || (!waits && (kernel_failure_restarts_lost(l) || kernel_failure_restarts_all(l)));
}

/* From the last contact until nothing of a kernel with this lease is left. */
static int64_t kernel_lease_end_usec(struct kernel_lease lease)
{
    int64_t usec = lease.usec + lease.grace_usec;

    return lease.usec ? usec + usec / 100 * MARGIN_PERCENT + MARGIN_USEC : 0;
}

/* Both are for the usual timeout of ten seconds; with a shorter one they are shorter in proportion. */
static int64_t kernel_lease_takeover_usec(const struct core *core)
{
    return AQ_MIN(TAKEOVER_USEC, core->conf.agent_timeout_usec * 5 / 2);
}

static int64_t kernel_lease_reassign_usec(const struct core *core)
{
    return AQ_MIN(REASSIGN_USEC, core->conf.agent_timeout_usec * 4);
}

static struct kernel_lease kernel_lease_make(const struct core *core, const struct agent_entry *a,
                                             const struct session_entry *l)
{
    const struct resource_group_entry *g = kernel_lease_find_group(core, a);
    int64_t timeout = core->conf.agent_timeout_usec, grace = core->conf.kill_grace_usec;
    int64_t all = timeout + (g ? g->g.agent_loss_grace_usec : 0) - MARGIN_USEC;
    int64_t least = AQ_MAX(timeout, kernel_lease_takeover_usec(core));

    if (!kernel_lease_is_needed(core, a, l))
        return (struct kernel_lease){ 0 };
    return (struct kernel_lease){ AQ_MAX(all / (100 + MARGIN_PERCENT) * 100 - grace, least),
                                  grace };
}

struct kernel_lease kernel_lease_give(const struct core *core, struct agent_entry *a,
                                      const struct session_entry *l)
{
    struct kernel_lease lease = kernel_lease_make(core, a, l);

    a->leases_end_usec = AQ_MAX(a->leases_end_usec, kernel_lease_end_usec(lease));
    return lease;
}

int64_t kernel_lease_loss_usec(const struct core *core, const struct agent_entry *a)
{
    const struct resource_group_entry *g = kernel_lease_find_group(core, a);
    int64_t end = AQ_MAX(a->leases_end_usec, kernel_lease_reassign_usec(core));

    LIST_FOREACH(link, &a->kernels) { /* an agent that was lost before this manager's life */
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

        end = AQ_MAX(end, kernel_lease_end_usec(kernel_lease_make(core, a, f->entry)));
    }
    return AQ_MAX(end - core->conf.agent_timeout_usec, g ? g->g.agent_loss_grace_usec : 0);
}

/* The lease that a reported kernel should have, if it is not the one that it has. */
static bool kernel_lease_differs(struct core *core, struct agent_entry *a,
                                 const struct msg_kernel_status *m, struct msg_kernel_lease *ret)
{
    const struct kernel_lease has = { AQ_MIN(m->lease_usec, LEASE_MAX_USEC),
                                      AQ_MIN(m->lease_grace_usec, LEASE_MAX_USEC) };
    const struct kernel_entry *f = agent_entry_find_kernel(core, a, &m->session_id, &m->kernel_id);
    struct kernel_lease lease;

    a->leases_end_usec = AQ_MAX(a->leases_end_usec, kernel_lease_end_usec(has));
    if (!f || m->state == MSG_KERNEL_TERMINATED || m->state == MSG_KERNEL_ERROR)
        return false;
    lease = kernel_lease_give(core, a, f->entry);
    *ret = (struct msg_kernel_lease){ m->kernel_id, m->attempt, lease.usec, lease.grace_usec };
    return lease.usec != has.usec || lease.grace_usec != has.grace_usec;
}

void kernel_lease_reply(struct core *core, struct agent_entry *a,
                        const struct msg_heartbeat *heartbeat)
{
    AQ_CLEANUP(aq_freep)
    struct msg_kernel_lease *leases = aq_alloc_array(heartbeat->kernel_count + 1, sizeof(*leases));
    struct message msg = { .type = MSG_HEARTBEAT_REPLY,
                           .heartbeat_reply = { heartbeat->uptime_usec, leases, 0 } };
    size_t *count = &msg.heartbeat_reply.lease_count;
    struct aq_error err = { 0 };

    if (!heartbeat->uptime_usec || !lead_beat_may_renew(core))
        return; /* an agent that knows no leases; or another manager may lead */
    a->leases_end_usec = 0;
    for (size_t i = 0; i < heartbeat->kernel_count; i++)
        *count += kernel_lease_differs(core, a, &heartbeat->kernels[i], &leases[*count]);
    if (core->send(core, a->a.id, &msg, &err) < 0)
        log_limited(&a->log, LOG_LEVEL_WARNING, "cannot answer the heartbeat of agent '%s': %s",
                    a->a.id, err.text);
    AQ_FAULT("core.lease.renewed");
}
