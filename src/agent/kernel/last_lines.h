/* SPDX-License-Identifier: Apache-2.0 */
/* last_lines.h - the last lines of a kernel's log, for messages about its end */
#ifndef AQ_AGENT_KERNEL_LAST_LINES_H
#define AQ_AGENT_KERNEL_LAST_LINES_H

#include "base/strbuf.h"

#define LAST_LINES_MAX 10
#define LAST_LINES_BYTES_MAX 2048
#define LAST_LINES_READ_MAX 16384 /* of a log: enough, with what a terminal does not show */

/* Append the newest 'max' bytes of the log in a run directory; nothing without one. Blocks. */
void last_lines_read_log(const char *run_directory, size_t max, struct strbuf *out);

/* Append the last lines of 'bytes' as they would stand on a terminal, as UTF-8 without a final line
 * break: without escape sequences and control characters but tabs, and of lines that were overwritten
 * (progress bars) what was written last. At most LAST_LINES_MAX lines and LAST_LINES_BYTES_MAX bytes;
 * of a text that is longer the end.
 */
void last_lines_write(const char *bytes, size_t len, struct strbuf *out) AQ_UNTRUSTED;

#endif
