/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - attaches to the terminal that a monitor keeps, or the runner of a container
 *
 * The implementation behind runtime_attach(), shared by all runtimes, and the calls on terminals.
 */
#ifndef AQ_AGENT_RUNTIME_TERMINAL_H
#define AQ_AGENT_RUNTIME_TERMINAL_H

#include "agent/runtime/runtime.h"

/* 'socket', 'keeper' and 'piece_max' as in runner_wire_open(), and what it returns. */
int terminal_open(uv_loop_t *loop, const char *directory, const char *socket, pid_t keeper,
                  size_t piece_max, const struct runtime_terminal_ops *ops, void *data,
                  struct runtime_terminal **ret, struct aq_error *err);

#endif
