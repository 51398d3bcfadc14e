/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - usage of a batch session compared with its request, as text */
#ifndef AQ_CLI_SESSION_SUMMARY_H
#define AQ_CLI_SESSION_SUMMARY_H

#include <jansson.h>

#include "base/strbuf.h"
#include "cli/cli.h"

/* Append 'before' and a line for each measured value; nothing if 'summary' is not an object. */
void summary_write(const json_t *summary, const char *before, struct strbuf *out);

/* Print the summary of each session in the reply of POST /session to standard error. Failed
 * requests are ignored, because the sessions have already ended.
 */
void summary_print(struct cli *cli, const json_t *created);

#endif
