/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_lease.h - how long kernels may run on an agent that has no contact with us
 *
 * A kernel that is started again elsewhere when its agent is lost has a lease: without contact for
 * that long its node ends it, and only then is it started elsewhere. With T for [agents] timeout,
 * G for the grace of the resource group and K for [sessions] kill-grace:
 *
 *   last contact   SIGTERM: lease   SIGKILL: lease + K   restart: lease + K + margin
 *   |--------------|----------------|--------------------|
 *
 * The margin is 1 s and 1 % of the time before, for clocks of different rates and the death of the
 * processes. The lease is as long as T + G allows, and at least T and 2.5 T (25 s at most), so that
 * neither the restart of a manager nor the takeover by another one ends anything; the restart
 * elsewhere is later than T + G then. Nothing is started elsewhere, with or without a lease, before
 * 4 T (40 s at most) have passed since the last contact: until then the agent may come to the next
 * leader.
 */
#ifndef AQ_MANAGER_CORE_SESSION_KERNEL_LEASE_H
#define AQ_MANAGER_CORE_SESSION_KERNEL_LEASE_H

#include <stdint.h>

struct agent_entry;
struct core;
struct msg_heartbeat;
struct session_entry;

struct kernel_lease {
    int64_t usec, grace_usec; /* as in kernel_spec; both 0 = none */
};

/* The lease for a kernel of the session on the agent, which counts as given from now on. */
struct kernel_lease kernel_lease_give(const struct core *core, struct agent_entry *a,
                                      const struct session_entry *l);

/* How long after the agent was found LOST its kernels may be started elsewhere: the grace of its
 * resource group, until all leases are over that it may have, and until it would have come back from
 * a takeover.
 */
int64_t kernel_lease_loss_usec(const struct core *core, const struct agent_entry *a);

/* Answer a heartbeat: renew the leases of its kernels, and change those that are not as they should
 * be. After the commands that end kernels which do not belong there.
 */
void kernel_lease_reply(struct core *core, struct agent_entry *a,
                        const struct msg_heartbeat *heartbeat);

#endif
