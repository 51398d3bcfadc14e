/* sync_tool.h - run a program of the node to its end, before the loop runs */
#ifndef AQ_AGENT_RUNTIME_SYNC_TOOL_H
#define AQ_AGENT_RUNTIME_SYNC_TOOL_H

#include "base/error.h"
#include "base/strbuf.h"

/* argv[0] is looked for in PATH and in the folders of administrators'
 * programs. What it writes goes to 'out' (may be NULL), at most 64 KiB. -ENOENT if there is
 * no such program, -EIO with the last line it wrote if it fails.
 */
int tool_run(const char *const *argv, struct strbuf *out, struct aq_error *err);

/* The absolute path of a program; caller frees, NULL if there is none. */
char *tool_find(const char *name);

#endif
