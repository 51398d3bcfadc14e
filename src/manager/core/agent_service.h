/* SPDX-License-Identifier: Apache-2.0 */
/* agent_service.h - agents as services of their machines; part of core.h, whose rules hold here
 *
 * Nothing of this is durable.
 */
#ifndef AQ_MANAGER_CORE_AGENT_SERVICE_H
#define AQ_MANAGER_CORE_AGENT_SERVICE_H

struct aq_error;
struct core;

/* 'unit' and 'state', as systemctl on its machine says it, if r is 0; both may be "". They are
 * borrowed for the call.
 */
typedef void (*core_service_fn)(void *data, int r, const struct aq_error *err, const char *unit,
                                const char *state);

/* "status", "stop" or "restart": ask the agent's machine. Calls back later or at once: -ENOTCONN,
 * -EBUSY (another command is under way), -ETIMEDOUT, -EAGAIN and why the machine cannot do it. A
 * connection that ends is the answer to stop and restart.
 */
void core_command_service(struct core *core, const char *agent_id, const char *action,
                          core_service_fn fn, void *data);

#endif
