/* SPDX-License-Identifier: Apache-2.0 */
/* background_task.h - work that the manager goes on with after its answer, and how far it is */
#ifndef AQ_CLI_BACKGROUND_TASK_H
#define AQ_CLI_BACKGROUND_TASK_H

#include "cli/cli.h"

#define BACKGROUND_MESSAGE_MAX 2048

/* Wait for the end of the task that the member 'id' of an answer names, and show how far it is;
 * 'message' is the last thing it said. -EREMOTEIO if it failed, -errno of the connection.
 */
int background_task_follow(struct cli *cli, const json_t *answer, const char *id,
                           char message[BACKGROUND_MESSAGE_MAX], struct aq_error *err);

#endif
