/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - attaches to the terminal that a monitor keeps
 *
 * The implementations behind runtime_attach() and the calls on terminals,
 * shared by all runtimes whose kernels have a monitor.
 */
#ifndef AQ_AGENT_RUNTIME_TERMINAL_H
#define AQ_AGENT_RUNTIME_TERMINAL_H

#include "agent/runtime/runtime.h"

int terminal_open(uv_loop_t *loop, const char *directory, const struct runtime_ops *runtime,
                  const struct runtime_terminal_ops *ops, void *data, struct runtime_terminal **ret,
                  struct aq_error *err);
int terminal_input(struct runtime_terminal *terminal, const char *bytes, size_t len);
void terminal_resize(struct runtime_terminal *terminal, uint16_t rows, uint16_t cols);
void terminal_pause(struct runtime_terminal *terminal, bool paused);
void terminal_detach(struct runtime_terminal *terminal);

#endif
