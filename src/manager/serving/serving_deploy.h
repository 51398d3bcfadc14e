/* SPDX-License-Identifier: Apache-2.0 */
/* serving_deploy.h - how a revision of a model service becomes complete
 *
 * A request names folders and leaves out what the model's folder or the runtime says. Folders are
 * found, which takes the store; a definition is read, which takes the folder's storage host; then the
 * definition and the runtime fill in what is missing. What was asked for is kept with the result
 * (model_service_spec.given), so that the next revision begins from it and not from what an older
 * definition said.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_DEPLOY_H
#define AQ_MANAGER_SERVING_SERVING_DEPLOY_H

#include "manager/call/api.h"
#include "manager/rules/folder_mount.h"
#include "model/model_service.h"

struct serving_deploy;

/* 'err' NULL: the spec is complete and checked; the caller of the request is, too. */
typedef void serving_deployed_fn(struct serving_deploy *deploy, const struct aq_error *err);

/* In the request's arena, as are all texts. */
struct serving_deploy {
    struct api *api;
    struct request *req;
    struct core_owner owner; /* of the service */
    const char *access_key;  /* its */
    struct model_service_spec spec;
    struct str_list warnings; /* about the definition, for who asked */
    serving_deployed_fn *done;

    struct folder_viewer viewer; /* the owner */
    struct named_mount *named;   /* the model first, if there is one */
    size_t named_count;
    struct folder_mounts_found found;
    const char *definition; /* that is being read */
};

/* A revision of a service that exists: fill in 'owner' and 'access_key', in the arena. Whoever deploys it
 * acts for the owner, whose folders it mounts. -EPERM: not as an administrator of a domain for a
 * superadmin, or for a user who has gone to another domain.
 */
int serving_deploy_take_owner(struct serving_deploy *deploy, const struct model_service *s,
                              struct aq_error *err);

/* 'api' to 'access_key', 'spec' and 'done' are filled in; 'model' is a name or an id and mounts are as
 * the request has them. 'done' is called once, perhaps from within the call.
 */
void serving_deploy_start(struct serving_deploy *deploy);

/* What was asked for of a revision, in the arena: before definition and runtime completed it. */
int serving_deploy_read_asked(const struct model_service_revision *revision, struct arena *arena,
                              struct model_service_spec *ret, struct aq_error *err);

/* What was asked for of the service's goal, in the arena: a new revision begins from it. Of a service
 * that has no revision yet nothing was asked for.
 */
int serving_deploy_read_goal(const struct model_service *s, struct arena *arena,
                             struct model_service_spec *ret, struct aq_error *err);

/* When the revision is complete: is 'goal', from which it began, the goal still? Else what was deployed
 * meanwhile would be lost. -ESTALE (conflict).
 */
int serving_deploy_check_goal(const struct model_service *s, int64_t goal, struct aq_error *err);

/* A new revision of the service, which is its goal from then on. */
void serving_deploy_add_revision(const struct model_service_spec *spec, const char *note,
                                 const struct uuid *creator_id, struct model_service *s);

#endif
