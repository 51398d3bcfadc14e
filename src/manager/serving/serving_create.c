/* SPDX-License-Identifier: Apache-2.0 */
/* serving_create.c - see serving_create.h */
#include "manager/serving/serving_create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/call/repeat.h"

struct serving_create *serving_create_new(struct api *api, struct request *req)
{
    struct serving_create *create = arena_alloc(request_get_arena(req), sizeof(*create));

    *create = (struct serving_create){ .api = api, .req = req };
    return create;
}

/* ---- refusal ---- */

/* store_tx_fn: what was committed before is durable once this has had its turn. */
static int create_wait_for_commits(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)tx;
    (void)data;
    (void)err;
    return 0;
}

static void create_on_waited(void *data, int r, const struct aq_error *err)
{
    struct serving_create *create = data;

    repeat_fail(create->api, create->req, r < 0 ? err : &create->err, NULL);
}

/* A service whose name is taken may be in its own way: an earlier copy of the request may be on its
 * way to the store.
 */
void serving_create_refuse(struct serving_create *create, const struct aq_error *err)
{
    create->err = *err;
    if (err->code == EEXIST)
        store_write(core_store(create->api->core), create_wait_for_commits, create_on_waited,
                    create);
    else
        repeat_fail(create->api, create->req, err, NULL);
}

/* ---- creation ---- */

/* core_done_fn */
static void create_on_created(void *data, int r, const struct aq_error *err)
{
    struct serving_create *create = data;

    create->done(create, r < 0 ? err : NULL);
}

/* Its first revision is 'spec'. Contents are the caller's. -EINVAL names the field. */
static int create_build(const struct serving_create *create, const struct model_service_spec *spec,
                        struct model_service *ret, struct aq_error *err)
{
    const struct serving_params *params = &create->params;
    const struct serving_deploy *d = &create->deploy;
    int r;

    *ret = (struct model_service){ .user_id = d->owner.user_id, .project_id = d->owner.project_id };
    ret->replicas = 1; /* within its bounds: whether a new service works is seen at once */
    (void)snprintf(ret->name, sizeof(ret->name), "%s", params->name);
    (void)snprintf(ret->access_key, sizeof(ret->access_key), "%s", d->access_key);
    ret->domain = aq_strdup(d->owner.domain);
    ret->resource_group = params->resource_group ? aq_strdup(params->resource_group) : NULL;
    if (spec)
        serving_deploy_add_revision(spec, params->note, &api_principal(create->req)->user_id, ret);
    r = serving_params_apply(params, NULL, ret, err);
    if (r == 0 && create->reserved_tag) {
        free(ret->tag);
        ret->tag = aq_strdup(create->reserved_tag);
    }
    return r;
}

/* serving_deployed_fn */
static void create_on_deployed(struct serving_deploy *deploy, const struct aq_error *err)
{
    struct serving_create *create = AQ_CONTAINER_OF(deploy, struct serving_create, deploy);
    struct aq_error wrong = { 0 };
    struct model_service s;

    if (err) {
        create->done(create, err);
        return;
    }
    if (create_build(create, &deploy->spec, &s, &wrong) < 0) {
        model_service_done(&s);
        create->done(create, &wrong);
        return;
    }
    core_create_service(create->api->core, &s, create->write ? &create->answered : NULL,
                        create->write, api_who(create->api, create->req), create_on_created,
                        create);
    model_service_done(&s);
}

/* All that can be refused at once. */
static int create_prepare(struct serving_create *create, const json_t *given, struct aq_error *err)
{
    const struct serving_params *params = &create->params;
    struct arena *arena = request_get_arena(create->req);
    struct serving_deploy *d = &create->deploy;
    struct session_request owner = { .name = NULL };
    const struct keypair *key;
    struct model_service s;
    int r;

    if ((r = model_service_check_name(params->name, err)) < 0
        || (r = api_owner(create->api, create->req, params->owner_access_key, &key, err)) < 0)
        return r;
    d->access_key = arena_strdup(arena, key->access_key);
    owner.access_key = d->access_key;
    owner.domain = params->domain;
    owner.group = params->group;
    d->spec.priority = SERVING_PRIORITY_DEFAULT;
    if ((r = core_find_owner(create->api->core, &owner, &d->owner, err)) < 0
        || (r = serving_params_apply_spec(params, given, core_slot_types(create->api->core), arena,
                                          &d->spec, err))
               < 0)
        return r;
    r = create_build(create, NULL, &s, err);
    model_service_done(&s);
    return r;
}

void serving_create_start(struct serving_create *create, const json_t *given)
{
    struct aq_error err = { 0 };

    if (create->write)
        repeat_fill(create->req, &create->answered);
    create->deploy.api = create->api;
    create->deploy.req = create->req;
    create->deploy.done = create_on_deployed;
    if (create_prepare(create, given, &err) < 0)
        create->done(create, &err);
    else
        serving_deploy_start(&create->deploy);
}
