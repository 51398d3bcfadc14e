/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_environ.h - the environment of a kernel's program
 *
 * Later ones win: a few defaults; what the image and the user ask for, without a choice
 * of devices that the session was not granted (model/device_variable.h); what its
 * accelerators need, and what they are (accelhost/gpu_variables.h); the variables that
 * programs made for Backend.AI look for.
 */
#ifndef AQ_AGENT_KERNEL_KERNEL_ENVIRON_H
#define AQ_AGENT_KERNEL_KERNEL_ENVIRON_H

#include "agent/kernel/kernel_program.h"
#include "link/message.h"

/* PATH, where the image names none. */
#define KERNEL_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "NAME=value", NULL-terminated, in the arena. */
const char *const *kernel_environ_make(const struct msg_kernel_create *create,
                                       const struct kernel_program_context *place,
                                       struct arena *arena);

/* The text of config/environ.txt; caller frees. */
char *kernel_environ_write(const char *const *variables);

#endif
