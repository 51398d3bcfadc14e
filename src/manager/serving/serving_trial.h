/* SPDX-License-Identifier: Apache-2.0 */
/* serving_trial.h - model services that are tried: one replica runs until it is ready, or fails
 *
 * A trial is a model service with the tag SERVING_TRIAL_TAG and a background task that its creator
 * follows. It is removed when the task ends, and after a restart of the manager, which has lost its
 * tasks. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_TRIAL_H
#define AQ_MANAGER_SERVING_SERVING_TRIAL_H

#include "manager/serving/serving_create.h"

struct serving_trials;

/* Trials that a previous manager left end soon after the core has started. */
struct serving_trials *serving_trials_new(struct api *api);
/* Nobody is told of what is under way; NULL is fine. */
void serving_trials_free(struct serving_trials *trials);

/* Create the service of a request whose params are read, under a name of its own, with one replica, not
 * public; 'given' as for serving_create_start(). The request is answered with its name and the
 * id of the task.
 */
void serving_trial_create(struct serving_create *create, const json_t *given);

#endif
