/* SPDX-License-Identifier: Apache-2.0 */
/* app_launch.h - from a process to an app's program
 *
 * In a child of the executor, with its standard streams set. It may wait for what the definition
 * does before (app_definition.h).
 */
#ifndef AQ_RUNNER_APP_LAUNCH_H
#define AQ_RUNNER_APP_LAUNCH_H

#include <jansson.h>

#include "base/error.h"

#define APP_MARK "ALIQUOT_APP" /* variable of all processes of an app: its name */

struct app_launch {
    const char *name;
    const json_t *definition; /* of app_definition_read() */
    json_t *ports;
    const json_t *envs, *arguments; /* of the client, checked; NULL = none */
};

/* Execute it. Returns only if that failed, or there is nothing to execute (0: "noop"). */
int app_launch(const struct app_launch *launch, struct aq_error *err);

#endif
