/* SPDX-License-Identifier: Apache-2.0 */
/* session_network.h - what agents are told of the network of a session whose kernels are on several */
#ifndef AQ_MANAGER_CORE_SESSION_SESSION_NETWORK_H
#define AQ_MANAGER_CORE_SESSION_SESSION_NETWORK_H

#include "base/error.h"

struct core;
struct session_entry;

/* kernel_spec.network, until the list changes; *ret NULL if it has none. -ENOSPC if it needs one, and
 * the pool had no addresses when it was placed. It is written once for all kernels of a
 * start: for each of a thousand would keep the manager for seconds.
 */
int session_network_make(struct core *core, struct session_entry *l, const char **ret,
                         struct aq_error *err);

/* Send the newest list to the agents that have an older one. To be called while the session starts
 * and runs.
 */
void session_network_follow(struct core *core, struct session_entry *l);

#endif
