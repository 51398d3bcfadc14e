/* SPDX-License-Identifier: Apache-2.0 */
/* sync_tool.h - runs a program to its end, before the loop runs */
#ifndef AQ_AGENT_RUNTIME_SYNC_TOOL_H
#define AQ_AGENT_RUNTIME_SYNC_TOOL_H

#include "base/error.h"
#include "base/strbuf.h"

/* argv[0] is looked for in PATH and in the directories of administrators'
 * programs; 22 arguments at most. What it writes goes to 'out' (may be NULL).
 * -ENOENT if there is no such program, -ECHILD with the last line it wrote if
 * it fails, -ETIMEDOUT after a minute.
 */
int tool_run(const char *const *argv, struct strbuf *out, struct aq_error *err);

/* The absolute path of a program; caller frees, NULL if there is none. */
char *tool_find(const char *name);

#endif
