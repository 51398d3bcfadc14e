/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - runs a command in a kernel's container over a stream (link/exec.h) */
#ifndef AQ_AGENT_KERNEL_EXEC_H
#define AQ_AGENT_KERNEL_EXEC_H

#include "agent/runtime/runtime.h"
#include "base/pump.h"
#include "link/message.h"

struct exec;

struct exec_ops {
    void (*on_bytes)(void *data, const char *bytes, size_t len); /* for the stream */
    void (*on_drain)(void *data);                                /* for pump_drained() */
    /* A command has failed: append what its standard error does not say, as a line. */
    void (*on_failed)(void *data, struct strbuf *out);
    void (*on_end)(void *data); /* after the last bytes; then exec_free() */
};

/* Run what 'open' describes. -EINVAL for a bad description; else as
 * runtime_exec(). Callbacks come later.
 */
int exec_new(struct runtime_kernel *run, const struct msg_stream_open *open,
             const struct exec_ops *ops, void *data, struct exec **ret, struct aq_error *err);

/* Append the frame that says why it could not be run. */
void exec_add_failure(struct strbuf *out, const struct aq_error *err);

/* An end of a pump that is a struct exec, whose bytes are those of the stream. */
extern const struct pump_ops exec_pump;

void exec_resize(struct exec *exec, uint16_t rows, uint16_t cols);
void exec_signal(struct exec *exec, int signum);

/* A command that still runs gets SIGHUP. NULL is fine. */
void exec_free(struct exec *exec);

#endif
