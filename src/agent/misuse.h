/* misuse.h - what becomes of kernels whose programs use a GPU past their part of it */
#ifndef AQ_AGENT_MISUSE_H
#define AQ_AGENT_MISUSE_H

#include "agent/node.h"

/* One was found (gpu_misuse_fn; 'data' is the agent): log it, tell the manager,
 * and end the kernel if it is a breach and gpu.misuse says so.
 */
void misuse_take(void *data, const struct uuid *kernel, const char *text, bool is_breach);

#endif
