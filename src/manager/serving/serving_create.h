/* SPDX-License-Identifier: Apache-2.0 */
/* serving_create.h - how a request creates a model service, whatever its body looks like */
#ifndef AQ_MANAGER_SERVING_SERVING_CREATE_H
#define AQ_MANAGER_SERVING_SERVING_CREATE_H

#include "manager/core/services.h"
#include "manager/serving/serving_deploy.h"
#include "manager/serving/serving_params.h"

struct serving_create;

/* 'err' NULL: the service is durable and lives under params.name. */
typedef void serving_created_fn(struct serving_create *create, const struct aq_error *err);

/* In the request's arena, as are all texts. */
struct serving_create {
    struct api *api;
    struct request *req;
    struct serving_params params;
    const char *reserved_tag; /* instead of the tag of the params, which cannot be this one */
    core_service_write_fn
        write; /* the answer that is kept, with the creation as data; NULL = none */
    serving_created_fn *done;
    const char *answer; /* for 'write' */

    struct serving_deploy deploy;
    struct core_answered answered;
    struct aq_error err; /* why it was refused */
};

/* The rest is filled in by the caller. */
struct serving_create *serving_create_new(struct api *api, struct request *req);

/* Members of the revision that 'given', the request's JSON, has count (NULL = all). 'done' is called
 * once, perhaps from within the call.
 */
void serving_create_start(struct serving_create *create, const json_t *given);

/* Answer the request, which failed, unless an earlier copy of it created the service: then as that
 * one was.
 */
void serving_create_refuse(struct serving_create *create, const struct aq_error *err);

#endif
