/* SPDX-License-Identifier: Apache-2.0 */
/* limit_violation.h - reports, and if so configured ends, kernels that exceed their part of a GPU
 */
#ifndef AQ_AGENT_KERNEL_LIMIT_VIOLATION_H
#define AQ_AGENT_KERNEL_LIMIT_VIOLATION_H

#include "agent/agent_internal.h"

/* One was found (gpu_violation_fn; 'data' is the agent): log it, tell the manager,
 * and end the kernel if it is a breach and gpu.misuse says so.
 */
void limit_violation_handle(void *data, const struct uuid *kernel, const char *text,
                            bool is_breach);

#endif
