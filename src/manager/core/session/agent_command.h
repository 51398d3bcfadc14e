/* SPDX-License-Identifier: Apache-2.0 */
/* agent_command.h - commands to agents
 *
 * A command to an agent that is not connected, or whose inventory is not known
 * yet, is dropped: the session is looked at again when the agent is back.
 */
#ifndef AQ_MANAGER_CORE_SESSION_AGENT_COMMAND_H
#define AQ_MANAGER_CORE_SESSION_AGENT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct message;
struct msg_metrics_watch;
struct session_entry;
struct uuid;

/* Tell the kernel's agent; nothing if it is not connected or not synced, or if what it runs has to
 * be read from the store: then the session is looked at again when that is there.
 */
void agent_command_create(struct core *core, struct session_entry *l, size_t rank);

/* Let the program of a kernel start that its agent holds. */
void agent_command_release(struct core *core, struct session_entry *l, size_t rank);

/* Restart a kernel's programs there. */
void agent_command_restart(struct core *core, struct session_entry *l, size_t rank);

/* End a kernel; the times are those of struct msg_kernel_destroy. */
void agent_command_destroy(struct core *core, struct session_entry *l, size_t rank,
                           int64_t notice_usec, int64_t grace_usec, const char *reason);

/* The agent may forget that attempt of a kernel. */
void agent_command_forget(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                          int64_t attempt);

/* End a kernel that is not ours. */
void agent_command_end_orphan(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                              int64_t attempt);

/* Let it say what the kernel was made from: kernel.order. */
void agent_command_describe(struct core *core, const char *agent_id, const struct uuid *kernel_id);

/* Take no more kernels, or take them again. */
void agent_command_drain(struct core *core, const char *agent_id, bool on);

/* What registries are logged in with, to an agent that is connected. */
void agent_command_logins(struct core *core, const char *agent_id);

/* A message on the network between agents. False if it is not connected, or its inventory not known
 * yet: to be sent again.
 */
bool agent_command_network(struct core *core, const char *agent_id, const struct message *msg);

/* The pages of metrics that the agent is to read; likewise. */
bool agent_command_watch_metrics(struct core *core, const char *agent_id,
                                 const struct msg_metrics_watch *watch);

#endif
