/* SPDX-License-Identifier: Apache-2.0 */
/* serving_deploy.c - see serving_deploy.h
 *
 * The steps, in the order of the functions below:
 *
 * 1. serving_deploy_start(): names of folders are taken apart; the store is asked for them.
 * 2. deploy_on_folders(): they are named by their ids from here on.
 * 3. deploy_read_definition(), deploy_on_definition(): the model's own file, if there is one.
 * 4. deploy_complete(): what the definition and the runtime say, and the checks of all.
 */
#include "manager/serving/serving_deploy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "manager/folder/folder.h"
#include "manager/image/image.h"
#include "manager/serving/serving_params.h"
#include "manager/session/session.h"
#include "serving/definition.h"
#include "serving/runtime.h"

#define DEFINITION_OTHER_NAME "model-definition.yml"

static struct arena *deploy_arena(const struct serving_deploy *d)
{
    return request_get_arena(d->req);
}

static void deploy_fail(struct serving_deploy *d, const struct aq_error *err)
{
    d->done(d, err);
}

/* ---- step 4 ---- */

static const char *deploy_write_spec(struct serving_deploy *d)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    model_service_spec_write(&d->spec, &w);
    return arena_strdup(deploy_arena(d), text.data);
}

static void deploy_complete(struct serving_deploy *d, const struct model_definition *definition)
{
    struct model_service_spec *spec = &d->spec;
    struct aq_error err = { 0 };
    const char *given;
    int r = api_check_caller(d->api, d->req, &err);

    spec->given = NULL;
    given = deploy_write_spec(d);
    if (r == 0 && definition) {
        spec->definition_path = d->definition;
        r = model_definition_apply(definition, spec, deploy_arena(d), &d->warnings, &err);
    }
    if (r == 0)
        r = serving_runtime_apply(spec, deploy_arena(d), &err);
    if (r == 0 && !spec->port)
        r = api_fail_param(&err, "port", "is missing: say at which port a replica takes requests");
    if (r == 0 && strcmp(given, deploy_write_spec(d)) != 0)
        spec->given = given;
    if (r == 0)
        r = model_service_spec_check(spec, &err);
    if (r < 0 && !err.kind && err.field[0])
        err.kind = "invalid-api-params";
    d->done(d, r < 0 ? &err : NULL);
}

/* ---- step 3: the definition ---- */

static void deploy_read_definition(struct serving_deploy *d, const char *path);

static bool deploy_is_missing(const struct serving_deploy *d, const struct aq_error *err)
{
    return err->code == ENOENT && !d->spec.definition_path;
}

/* folder_text_fn */
static void deploy_on_definition(void *data, const char *text, size_t len,
                                 const struct aq_error *err)
{
    struct serving_deploy *d = data;
    AQ_CLEANUP(model_definition_freep) struct model_definition *definition = NULL;
    struct aq_error wrong = { 0 };

    if (err && deploy_is_missing(d, err)) {
        if (strcmp(d->definition, MODEL_DEFINITION_NAME) == 0)
            deploy_read_definition(d, DEFINITION_OTHER_NAME);
        else
            deploy_complete(d, NULL);
        return;
    }
    if (err && err->code == ENOENT) {
        (void)api_fail_param(&wrong, "definition", "folder '%s' has no file '%s'",
                             d->found.folders[0].name, d->definition);
    } else if (err) {
        wrong = *err;
        (void)snprintf(wrong.field, sizeof(wrong.field), "definition");
    } else if (model_definition_parse(text, len, &definition, &wrong) < 0) {
        struct aq_error inner = wrong;

        (void)api_fail_param(&wrong, "definition", "%s: %s", d->definition, inner.text);
    }
    if (wrong.code) {
        deploy_fail(d, &wrong);
        return;
    }
    deploy_complete(d, definition);
}

static void deploy_read_definition(struct serving_deploy *d, const char *path)
{
    const struct folder *folder = &d->found.folders[0];
    struct aq_error err = { 0 };

    d->definition = path;
    if (folder_read_text(d->api, folder->host, &folder->id, &d->owner.user_id, path,
                         deploy_arena(d), deploy_on_definition, d, &err)
        < 0)
        deploy_fail(d, &err);
}

static bool deploy_is_custom(const struct model_service_spec *spec)
{
    return !spec->runtime || strcmp(spec->runtime, SERVING_RUNTIME_DEFAULT) == 0;
}

/* ---- step 2: folders by their ids ---- */

static int deploy_check_mounts(const struct serving_deploy *d, struct aq_error *err)
{
    size_t count = d->found.mounts.count;
    struct folder_mounts sorted = {
        arena_array(deploy_arena(d), count + 1, sizeof(struct folder_mount)), count
    };
    struct session as = { .user_id = d->owner.user_id,
                          .project_id = d->owner.project_id,
                          .domain = (char *)(uintptr_t)d->owner.domain };

    (void)snprintf(as.access_key, sizeof(as.access_key), "%s", d->access_key);
    for (size_t i = 0; i < count; i++)
        if (!session_may_mount(d->api, &as, &d->found.folders[i]))
            return aq_fail_kind(err, EPERM, "generic-forbidden",
                                "the folder '%s' cannot be mounted: the service's owner lacks "
                                "'mount-in-session' on the host '%s'",
                                d->found.folders[i].name, d->found.folders[i].host);
    if (count)
        memcpy(sorted.items, d->found.mounts.items, count * sizeof(*sorted.items));
    folder_mounts_sort(&sorted);
    return folder_mounts_check(&sorted, err);
}

static const char *deploy_write_mount(const struct serving_deploy *d, size_t i)
{
    const struct folder_mount *mount = &d->found.mounts.items[i];
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    strbuf_addf(&text, "%s%s%s:%s%s", uuid_format(&mount->folder, id), mount->path ? "/" : "",
                mount->path ? mount->path : "", mount->target,
                d->named[i].permission == FOLDER_READ_ONLY ? ":ro" : "");
    return arena_strdup(deploy_arena(d), text.data);
}

static void deploy_take_folders(struct serving_deploy *d)
{
    struct model_service_spec *spec = &d->spec;
    size_t first = spec->model ? 1 : 0;
    char id[UUID_TEXT_MAX];

    if (spec->model) {
        spec->model = arena_strdup(deploy_arena(d), uuid_format(&d->found.folders[0].id, id));
        spec->model_name = d->found.folders[0].name;
        spec->model_target = d->found.mounts.items[0].target;
    }
    spec->mounts.count = d->named_count - first;
    spec->mounts.items = arena_array(deploy_arena(d), spec->mounts.count + 1, sizeof(char *));
    for (size_t i = 0; i < spec->mounts.count; i++)
        spec->mounts.items[i] = deploy_write_mount(d, first + i);
}

static void deploy_on_folders(void *data, int r, const struct aq_error *err)
{
    struct serving_deploy *d = data;
    struct aq_error why = { 0 };

    if (r < 0) {
        deploy_fail(d, err);
        return;
    }
    if (deploy_check_mounts(d, &why) < 0) {
        deploy_fail(d, &why);
        return;
    }
    deploy_take_folders(d);
    if (d->spec.definition_path)
        deploy_read_definition(d, d->spec.definition_path);
    else if (d->spec.model && deploy_is_custom(&d->spec))
        deploy_read_definition(d, MODEL_DEFINITION_NAME);
    else
        deploy_complete(d, NULL);
}

/* store_tx_fn */
static int deploy_find_folders(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct serving_deploy *d = data;
    const struct folder_mount_request request = { .named = d->named,
                                                  .count = d->named_count,
                                                  .owner = d->viewer,
                                                  .project_id = d->owner.project_id };

    return folder_mounts_find(tx, &request, deploy_arena(d), &d->found, err);
}

/* ---- step 1: the names of folders ---- */

/* "FOLDER[:TARGET[:ro]]" */
static int deploy_split_mount(const char *text, struct arena *arena, struct named_mount *ret,
                              struct aq_error *err)
{
    char *copy = arena_strdup(arena, text);
    char *target = strchr(copy, ':');
    char *mode = target ? strchr(target + 1, ':') : NULL;

    if (target)
        *target++ = '\0';
    if (mode)
        *mode++ = '\0';
    *ret = (struct named_mount){ .folder = copy, .target = target && *target ? target : NULL };
    if (!*copy || (mode && (folder_permission_parse(mode, &ret->permission) < 0)))
        return api_fail_param(err, "mounts", "'%.64s' is not of the form FOLDER[:TARGET[:ro]]",
                              text);
    return 0;
}

static int deploy_name_folders(struct serving_deploy *d, struct aq_error *err)
{
    const struct model_service_spec *spec = &d->spec;
    struct named_mount *named = arena_array(deploy_arena(d), spec->mounts.count + 1,
                                            sizeof(*named));
    size_t count = 0;
    int r = 0;

    if (spec->model && strchr(spec->model, '/'))
        return api_fail_param(err, "model", "'%.64s' is not the name or id of a folder",
                              spec->model);
    if (spec->definition_path && !spec->model)
        return api_fail_param(err, "definition",
                              "is a file in the folder 'model', which is missing");
    if (spec->model)
        named[count++] = (struct named_mount){ .folder = spec->model,
                                               .target = spec->model_target ? spec->model_target
                                                                            : SERVING_MODEL_TARGET,
                                               .permission = FOLDER_READ_ONLY };
    for (size_t i = 0; r == 0 && i < spec->mounts.count; i++)
        r = deploy_split_mount(spec->mounts.items[i], deploy_arena(d), &named[count++], err);
    d->named = named;
    d->named_count = count;
    return r;
}

void serving_deploy_start(struct serving_deploy *d)
{
    const struct user *user = core_find_user(d->api->core, &d->owner.user_id);
    struct arena *arena = deploy_arena(d);
    struct aq_error err = { 0 };

    d->owner.domain = arena_strdup(arena, d->owner.domain);
    d->viewer = (struct folder_viewer){
        .user_id = d->owner.user_id,
        .is_superadmin = user && user->role == ROLE_SUPERADMIN,
        .admin_of = user && user->role == ROLE_ADMIN && user->domain
                        ? arena_strdup(arena, user->domain)
                        : NULL,
    };
    if (!d->spec.session.image) {
        (void)api_fail_param(&err, "image", "is missing: name what replicas run");
        deploy_fail(d, &err);
        return;
    }
    d->spec.session.image = arena_strdup(arena,
                                         image_aliases_resolve(d->api, d->spec.session.image));
    if (deploy_name_folders(d, &err) < 0)
        deploy_fail(d, &err);
    else
        store_read(core_store(d->api->core), deploy_find_folders, deploy_on_folders, d);
}

/* ---- revisions ---- */

int serving_deploy_take_owner(struct serving_deploy *d, const struct model_service *s,
                              struct aq_error *err)
{
    const struct user *owner = core_find_user(d->api->core, &s->user_id);

    if (owner && api_check_acts_for(d->req, owner, err) < 0)
        return aq_fail_kind(
            err, EPERM, "generic-forbidden",
            "the owner of the model service '%s' is a superadmin or of another "
            "domain, whose folders a revision mounts; ask the owner or a superadmin "
            "to deploy it",
            s->name);
    d->owner = (struct core_owner){ s->user_id, s->project_id,
                                    arena_strdup(deploy_arena(d), s->domain) };
    d->access_key = arena_strdup(deploy_arena(d), s->access_key);
    return 0;
}

int serving_deploy_read_asked(const struct model_service_revision *revision, struct arena *arena,
                              struct model_service_spec *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (revision->spec->given)
        return model_service_spec_parse(revision->spec->given, arena, ret, err);
    model_service_spec_write(revision->spec, &w);
    return model_service_spec_parse(text.data, arena, ret, err);
}

int serving_deploy_read_goal(const struct model_service *s, struct arena *arena,
                             struct model_service_spec *ret, struct aq_error *err)
{
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);

    *ret = (struct model_service_spec){ .priority = SERVING_PRIORITY_DEFAULT };
    if (!s->goal)
        return 0;
    if (!goal)
        return aq_fail(err, ENOENT, "revision %lld of '%s' is missing", (long long)s->goal,
                       s->name);
    return serving_deploy_read_asked(goal, arena, ret, err);
}

int serving_deploy_check_goal(const struct model_service *s, int64_t goal, struct aq_error *err)
{
    if (s->goal == goal)
        return 0;
    return aq_fail_kind(err, ESTALE, "conflict",
                        "another request has deployed a revision of '%s' meanwhile; look at it and "
                        "deploy again",
                        s->name);
}

void serving_deploy_add_revision(const struct model_service_spec *spec, const char *note,
                                 const struct uuid *creator_id, struct model_service *s)
{
    struct model_service_revision *last;

    s->revisions = aq_realloc(s->revisions, (s->revision_count + 1) * sizeof(*s->revisions));
    last = &s->revisions[s->revision_count++];
    *last = (struct model_service_revision){ .spec = model_service_spec_copy(spec),
                                             .note = note ? aq_strdup(note) : NULL,
                                             .creator_id = *creator_id };
    s->goal = 0; /* the new one */
}
