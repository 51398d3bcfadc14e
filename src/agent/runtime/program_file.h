/* SPDX-License-Identifier: Apache-2.0 */
/* program_file.h - writes what a monitor is to run (monitor/protocol.h) */
#ifndef AQ_AGENT_RUNTIME_PROGRAM_FILE_H
#define AQ_AGENT_RUNTIME_PROGRAM_FILE_H

#include "agent/runtime/runtime.h"
#include "base/strbuf.h"

/* Write 'program' into spec->directory. Not durable: what was never started can
 * be written again.
 */
int program_file_write(const struct runtime_spec *spec, struct aq_error *err);

/* Append the same bytes to 'out'. */
void program_file_text(const struct runtime_spec *spec, struct strbuf *out);

/* Write these bytes as 'program' into the directory, where no monitor is yet. */
int program_file_put(const char *directory, const struct strbuf *text, struct aq_error *err);

#endif
