/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - how long kernels may run without contact with the manager
 *
 * A kernel that the manager may start again elsewhere has a lease (kernel_spec.lease_usec). It counts
 * from when the last heartbeat was sent that the manager has answered; what this node sends in vain
 * does not renew it. The monitor of the kernel ends it, so that it ends without an agent, too.
 * Thread of the loop.
 */
#ifndef AQ_AGENT_KERNEL_LEASE_H
#define AQ_AGENT_KERNEL_LEASE_H

#include "agent/kernel/kernel.h"

/* The manager has answered a heartbeat: take the leases that it changes, renew all, and start what
 * waited for contact.
 */
void lease_take_reply(struct agent_daemon *agent, const struct msg_heartbeat_reply *reply);

/* The manager is of a version that answers no heartbeats, and would end all kernels by that. */
void lease_drop_all(struct agent_daemon *agent);

/* Give the kernel's lease to its monitor. Until a manager has answered this process, monitors keep
 * what a former process gave them.
 */
void lease_pass_on(struct local_kernel *k);

/* True if the kernel must not start now: its lease is over, or this process had no contact with the
 * manager yet. lease_take_reply() steps it then.
 */
bool lease_holds_back(struct local_kernel *k);

#endif
