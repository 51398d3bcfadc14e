/* SPDX-License-Identifier: Apache-2.0 */
/* serving_rollout.h - rollouts of model services, as requests and answers have them */
#ifndef AQ_MANAGER_SERVING_SERVING_ROLLOUT_H
#define AQ_MANAGER_SERVING_SERVING_ROLLOUT_H

#include "base/jsonw.h"
#include "manager/core/services.h"

/* Change the settings of rollouts of 's' by 'text', a JSON object (NULL = the defaults): where it
 * names the strategy, it is all of the settings, else its members change those that 's' has. The
 * state of the rollout that is under way stays. -EINVAL, -E2BIG with the field.
 */
int serving_rollout_apply(const char *text, struct model_service *s, struct aq_error *err);

/* The member "rollout": the settings with their defaults, and "state", null if there was none. */
void serving_rollout_write(const struct core *core, const struct model_service *s, struct jsonw *w);

#endif
