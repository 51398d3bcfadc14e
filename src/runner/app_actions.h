/* SPDX-License-Identifier: Apache-2.0 */
/* app_actions.h - what is done before an app starts (app_definition.h) */
#ifndef AQ_RUNNER_APP_ACTIONS_H
#define AQ_RUNNER_APP_ACTIONS_H

#include <jansson.h>

#include "base/error.h"

/* All of the list, whose results are added to 'variables'. Stops at the first that fails; a
 * command that ends with a status other than 0 has not failed.
 */
int app_actions_run(const json_t *list, json_t *variables, struct aq_error *err);

#endif
