/* SPDX-License-Identifier: Apache-2.0 */
/* background_task.h - work that the manager continues after its answer, and its progress */
#ifndef AQ_CLI_BACKGROUND_TASK_H
#define AQ_CLI_BACKGROUND_TASK_H

#include "cli/cli.h"

#define BACKGROUND_MESSAGE_MAX 2048

/* Wait for the end of the task that the member 'id' of an answer names, and show its progress.
 * 'message' receives the text of its last event. -EREMOTEIO if the task failed, -EPIPE if its
 * result is unknown, else -errno of the connection.
 */
int background_task_follow(struct cli *cli, const json_t *answer, const char *id,
                           char message[BACKGROUND_MESSAGE_MAX], struct aq_error *err);

#endif
