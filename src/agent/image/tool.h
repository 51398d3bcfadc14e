/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - runs a program for the image store and passes on its output
 *
 * Runs it without a shell, dies with the agent, passes on what it prints and
 * says how it ended.
 */
#ifndef AQ_AGENT_IMAGE_TOOL_H
#define AQ_AGENT_IMAGE_TOOL_H

#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"

#define TOOL_COMPLAINT_MAX 8192 /* the latest bytes of standard error */

struct tool;

struct tool_events {
    void (*on_output)(void *data, const char *bytes, size_t len); /* standard output */
    /* Exactly once, last: it has ended and all output was seen. 'complaint' is
     * what it said on standard error; 'status' its exit status, or 128+n.
     */
    void (*on_end)(void *data, int status, const char *complaint);
};

/* 'argv' NULL-terminated, argv[0] looked up in PATH; 'tmpdir' becomes its
 * TMPDIR (NULL = as ours), 'group' its group (0 = as ours). 'events' is borrowed until the end.
 */
int tool_start(uv_loop_t *loop, const char *const *argv, const char *tmpdir, uint32_t group,
               const struct tool_events *events, void *data, struct tool **ret,
               struct aq_error *err);

/* Kill it; no callback follows. NULL is fine. */
void tool_stop(struct tool *tool);

#endif
