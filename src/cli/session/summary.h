/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - what a batch session used of what it asked for, in words */
#ifndef AQ_CLI_SESSION_SUMMARY_H
#define AQ_CLI_SESSION_SUMMARY_H

#include <jansson.h>

#include "base/strbuf.h"
#include "cli/cli.h"

/* Append 'before' and a line for each value that was measured; nothing if 'summary' is no object. */
void summary_write(const json_t *summary, const char *before, struct strbuf *out);

/* Of each session that POST /session has answered with, to standard error. A manager that does not
 * answer costs nothing: the sessions have ended.
 */
void summary_print(struct cli *cli, const json_t *created);

#endif
