/* SPDX-License-Identifier: Apache-2.0 */
/* complete_names.h - names that the manager knows, for completion */
#ifndef AQ_CLI_COMPLETE_NAMES_H
#define AQ_CLI_COMPLETE_NAMES_H

#include "base/strbuf.h"
#include "cli/cli.h"

/* Does the word of a usage ("SESSION", "SLOT=AMOUNT") stand for names of the manager or for
 * profiles?
 */
bool complete_names_has(const char *word, size_t len);

/* A line "PREFIX NAME tab MEANING" for each name for 'word' that begins with
 * 'typed'. Without a manager or a login there are none. 'session' is the session that the command
 * line names, whose kernels HOSTNAME stands for; NULL = none so far, any that lives.
 */
void complete_names(struct cli *cli, const char *word, const char *session, const char *prefix,
                    const char *typed, struct strbuf *out);

#endif
