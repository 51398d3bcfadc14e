/* SPDX-License-Identifier: Apache-2.0 */
/* image_command.h - have agents do something with images and watch them do it */
#ifndef AQ_CLI_ADMIN_IMAGE_COMMAND_H
#define AQ_CLI_ADMIN_IMAGE_COMMAND_H

#include "cli/cli.h"

/* POST 'body' to /aliquot/v1/images/'action' and show how far the agents are
 * until the last has ended; then a row for each agent, in *ret_rows (the
 * caller's): {"agent","image","state","freed_bytes","digest","error"}. 'doing'
 * is a word for users: "pulling". -EIO if an agent failed; rows are set, too.
 */
int image_command(struct cli *cli, const char *action, const char *doing, const json_t *body,
                  json_t **ret_rows, struct aq_error *err);

#endif
