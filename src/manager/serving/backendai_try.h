/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_try.h - model services that are tried: one replica runs until it is ready, or fails
 *
 * A trial is a model service with the tag SERVING_TRIAL_TAG and a background task that its creator
 * follows. It is removed when the task ends, and after a restart of the manager,
 * which knows no task any more. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_TRY_H
#define AQ_MANAGER_SERVING_BACKENDAI_TRY_H

#include "manager/call/api.h"

struct backendai_tries;

/* Trials that a previous manager left end soon after the core has started. */
struct backendai_tries *backendai_tries_new(struct api *api);
/* Nobody is told of what is under way; NULL is fine. */
void backendai_tries_free(struct backendai_tries *tries);

/* A name for a trial, that no other service has. */
const char *backendai_try_make_name(struct arena *arena);

/* Follow the service of this name, which was created with the tag. Returns the id of the task that
 * tells 'user_id' of it; valid until the loop runs again.
 */
const struct uuid *backendai_try_start(struct api *api, const char *name,
                                       const struct uuid *user_id);

#endif
