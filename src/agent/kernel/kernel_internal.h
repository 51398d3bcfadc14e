/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_internal.h - what the files that make a kernel share: kernel.c its states,
 * kernel_start.c its program, kernel_commands.c the manager's commands
 */
#ifndef AQ_AGENT_KERNEL_KERNEL_INTERNAL_H
#define AQ_AGENT_KERNEL_KERNEL_INTERNAL_H

#include "agent/kernel/kernel.h"

/* ---- kernel.c ---- */

/* Another state, reported; at_usec 0 = now. */
void kernel_enter(struct local_kernel *k, enum msg_kernel_state state, int64_t at_usec);
/* A copy in place of what was there, or NULL of an empty text. */
void kernel_set_text(char **place, const char *text);
/* What reports say of a failure. */
void kernel_note_error(struct local_kernel *k, const struct aq_error *err);
/* What a running attempt tells its kernel. */
extern const struct runtime_events kernel_run_events;

/* ---- kernel_start.c ---- */

/* The command is durable, and it has its devices or gets them now. */
int kernel_launch(struct local_kernel *k, struct aq_error *err);

#endif
