/* SPDX-License-Identifier: Apache-2.0 */
/* welcome.h - what to do first, for one who is not logged in */
#ifndef AQ_CLI_WELCOME_H
#define AQ_CLI_WELCOME_H

#include "cli/cli.h"

/* Are there no keys, so that no manager knows who asks? */
bool welcome_is_stranger(const struct cli *cli);

/* Write how to go on: start a cluster or log in to one. Asks the endpoint
 * whether a manager is there. The configuration has been read.
 */
void welcome_write(struct cli *cli, struct strbuf *out);

/* 'err' of a request by a stranger, in words that say what to do; other errors
 * stay as they are.
 */
void welcome_explain(struct cli *cli, struct aq_error *err);

#endif
