/* SPDX-License-Identifier: Apache-2.0 */
/* join_token.h - one-time tokens with which a machine joins the cluster */
#ifndef AQ_CLI_ADMIN_JOIN_TOKEN_H
#define AQ_CLI_ADMIN_JOIN_TOKEN_H

#include "cli/cli.h"

/* The command that uses the token: "COMMAND LINK TOKEN --name NAME". */
struct join_command {
    const char *machine; /* where it is run: "On the new machine" */
    const char *command; /* "aliquot agent join" */
    const char *name;    /* NULL = without --name */
};

/* POST 'request' to /aliquot/v1/join-tokens and print the token; a human reader
 * is also shown the command. LINK has the host on which the manager's link
 * listens or, if that is every address, the host by which the manager was
 * reached here. Returns 0, or -errno of the request or of the output.
 */
int join_token_create(struct cli *cli, const json_t *request, const struct join_command *command,
                      struct aq_error *err);

#endif
