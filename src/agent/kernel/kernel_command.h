/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_command.h - a kernel.create message, checked, and kept as it came: in spec.json */
#ifndef AQ_AGENT_KERNEL_KERNEL_COMMAND_H
#define AQ_AGENT_KERNEL_KERNEL_COMMAND_H

#include "link/message.h"

/* What the agent itself checks: -EINVAL with the member as field. */
int kernel_command_check(const struct kernel_spec *spec, struct aq_error *err);

/* A copy of the command that stands alone; message_done() when done with it. */
int kernel_command_copy(const struct msg_kernel_create *create, const struct msg_stamp *stamp,
                        struct message *ret, struct aq_error *err);

/* The text of spec.json with this attempt; caller frees. */
int kernel_command_write(const struct message *command, int64_t attempt, char **ret,
                         struct aq_error *err);
/* Read spec.json, once for each process of the agent; message_done() when done with it. */
int kernel_command_read(const char *path, struct message *ret, struct aq_error *err);

#endif
