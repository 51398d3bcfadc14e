/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_endpoint.c - see backendai_endpoint.h */
#include "manager/serving/backendai_endpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "model/resource_opts.h"
#include "model/status.h"
#include "serving/rollout.h"
#include "serving/runtime.h"

#define TOKEN_SHOWN 8 /* digits of a token's id */

static const char *endpoint_text(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : "";
}

static const char *endpoint_uuid(struct arena *arena, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return uuid_is_nil(id) ? "" : arena_strdup(arena, uuid_format(id, text));
}

static const char *endpoint_pairs(struct arena *arena, const struct pair_list *pairs)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    for (size_t i = 0; i < pairs->count; i++)
        jsonw_member_str(&w, pairs->items[i].key, pairs->items[i].value);
    jsonw_object_end(&w);
    return arena_strdup(arena, out.data);
}

/* ---- status ---- */

const char *endpoint_status(const struct model_service *s, const struct serving_counts *counts,
                            bool is_failing)
{
    if (s->ended_usec)
        return "DESTROYED";
    if (s->is_ending)
        return "DESTROYING";
    if (s->replicas == 0)
        return "DEGRADED"; /* as Backend.AI says of an endpoint without routes */
    if (counts->ready >= s->replicas)
        return "HEALTHY";
    if (counts->ready)
        return "DEGRADED";
    return is_failing || counts->unhealthy ? "UNHEALTHY" : "PROVISIONING";
}

static const char *endpoint_lifecycle(const struct model_service *s)
{
    return s->ended_usec ? "destroyed" : s->is_ending ? "destroying" : "created";
}

/* ---- routes ---- */

static void endpoint_fill_health(const struct core_replica *replica, struct endpoint_route *route)
{
    switch (replica->health) {
    case CORE_REPLICA_STARTING:
        route->status = "PROVISIONING";
        route->health = "not_checked";
        break;
    case CORE_REPLICA_READY:
        route->status = "HEALTHY";
        route->health = "healthy";
        break;
    case CORE_REPLICA_UNHEALTHY:
        route->status = "UNHEALTHY";
        route->health = "unhealthy";
        break;
    }
    route->lifecycle = replica->health == CORE_REPLICA_STARTING ? "PROVISIONING" : "RUNNING";
}

static const char *endpoint_error_data(struct arena *arena, const struct endpoint_route *route)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "session_cancelled");
    jsonw_member_str(&w, "session_id", uuid_format(&route->id, id));
    jsonw_key(&w, "errors");
    jsonw_array_begin(&w);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "src", "health");
    jsonw_member_str(&w, "name", route->status);
    jsonw_member_str(&w, "repr", route->problem);
    jsonw_object_end(&w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    return arena_strdup(arena, out.data);
}

static void endpoint_fill_route(struct arena *arena, const struct session *session,
                                const struct core_replica *replica, const char *url,
                                struct endpoint_route *ret)
{
    *ret = (struct endpoint_route){ .id = session->id,
                                    .endpoint_id = replica->service->id,
                                    .url = url,
                                    .error_data = "",
                                    .problem = "",
                                    .revision = replica->revision,
                                    .ratio_ppm = replica->ratio_ppm,
                                    .created_usec = session->created_usec };
    endpoint_fill_health(replica, ret);
    if (replica->is_draining || session->status == SESSION_TERMINATING)
        ret->status = ret->lifecycle = "TERMINATING";
    if (replica->health == CORE_REPLICA_UNHEALTHY && replica->health_text) {
        ret->problem = arena_strdup(arena, replica->health_text);
        ret->error_data = endpoint_error_data(arena, ret);
    }
}

static void endpoint_fill_routes(const struct core *core, const struct model_service *s,
                                 struct arena *arena, struct endpoint_row *ret)
{
    struct core_replica replica;
    uint32_t count = 0;

    for (const struct session *session = NULL; (session = core_next_replica(core, s, session));)
        count++;
    ret->routes = arena_array(arena, count + 1, sizeof(*ret->routes));
    for (const struct session *session = NULL; (session = core_next_replica(core, s, session));)
        if (core_find_replica(core, session, &replica))
            endpoint_fill_route(arena, session, &replica, ret->url,
                                &ret->routes[ret->route_count++]);
}

/* ---- tokens ---- */

/* Only hashes of tokens are kept: clients see which one it is. */
static void endpoint_fill_token(const struct model_service *s,
                                const struct model_service_token *token, struct arena *arena,
                                const char *domain, struct endpoint_token *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    strbuf_addf(&text, "(token %.*s%s%s: shown when it was made)", TOKEN_SHOWN,
                uuid_format(&token->id, id), token->label ? ", " : "",
                token->label ? token->label : "");
    *ret = (struct endpoint_token){ .id = token->id,
                                    .endpoint_id = s->id,
                                    .project_id = s->project_id,
                                    .creator_id = s->user_id,
                                    .text = arena_strdup(arena, text.data),
                                    .domain = domain,
                                    .created_usec = token->created_usec,
                                    .expires_usec = token->expires_usec };
}

/* ---- the revision ---- */

/* "FOLDER[/PATH][:TARGET[:ro]]", by the id of the folder. */
static bool endpoint_fill_folder(struct arena *arena, const char *mount,
                                 struct endpoint_folder *ret)
{
    char *id = arena_strndup(arena, mount, strcspn(mount, "/:"));
    const char *target = strchr(mount, ':');
    const char *mode = target ? strchr(target + 1, ':') : NULL;

    *ret = (struct endpoint_folder){ .target = "" };
    if (target)
        ret->target = mode ? arena_strndup(arena, target + 1, (size_t)(mode - target - 1))
                           : arena_strdup(arena, target + 1);
    ret->is_read_only = mode && strcmp(mode, ":ro") == 0;
    return uuid_parse(id, &ret->id) == 0;
}

struct endpoint_folder *endpoint_read_folders(const struct str_list *mounts, struct arena *arena,
                                              uint32_t *ret_count)
{
    struct endpoint_folder *folders = arena_array(arena, mounts->count + 1, sizeof(*folders));
    uint32_t count = 0;

    for (size_t i = 0; i < mounts->count; i++)
        count += endpoint_fill_folder(arena, mounts->items[i], &folders[count]);
    *ret_count = count;
    return folders;
}

static const char *endpoint_opts(struct arena *arena, const struct model_service_spec *spec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    if (spec->session.shmem)
        jsonw_member_str(&w, "shmem", spec->session.shmem);
    if (spec->session.splitting != SPLITTING_UNSAID)
        jsonw_member_bool(&w, RESOURCE_OPTS_SPLITTING,
                          spec->session.splitting == SPLITTING_ALLOWED);
    jsonw_object_end(&w);
    return arena_strdup(arena, out.data);
}

static void endpoint_fill_spec(const struct model_service_spec *spec, struct arena *arena,
                               struct endpoint_row *ret)
{
    ret->image = endpoint_text(arena, spec->session.image);
    ret->architecture = endpoint_text(arena, spec->session.architecture);
    ret->model = endpoint_text(arena, spec->model);
    if (spec->model)
        (void)uuid_parse(spec->model, &ret->model_id);
    ret->model_target = spec->model && !spec->model_target
                            ? SERVING_MODEL_TARGET
                            : endpoint_text(arena, spec->model_target);
    ret->definition = endpoint_text(arena, spec->definition_path);
    ret->runtime = spec->runtime ? arena_strdup(arena, spec->runtime) : SERVING_RUNTIME_DEFAULT;
    ret->command = endpoint_text(arena, spec->session.command);
    ret->bootstrap = endpoint_text(arena, spec->session.bootstrap);
    ret->shmem = endpoint_text(arena, spec->session.shmem);
    ret->cluster_mode = cluster_mode_name(spec->is_multi_node);
    ret->cluster_size = spec->cluster_size ? spec->cluster_size : 1;
    ret->resources = endpoint_pairs(arena, &spec->resources);
    ret->resource_opts = endpoint_opts(arena, spec);
    ret->environ = endpoint_pairs(arena, &spec->session.environ);
    ret->folders = endpoint_read_folders(&spec->mounts, arena, &ret->folder_count);
}

/* ---- the row ---- */

static const char *endpoint_email(const struct core *core, const struct uuid *id,
                                  struct arena *arena)
{
    const struct user *user = core_find_user(core, id);

    return endpoint_text(arena, user ? user->email : NULL);
}

static void endpoint_fill_people(const struct core *core, const struct model_service *s,
                                 struct arena *arena, struct endpoint_row *ret)
{
    ret->user_id = s->user_id;
    ret->creator_id = s->revision_count ? s->revisions[0].creator_id : s->user_id;
    if (uuid_is_nil(&ret->creator_id))
        ret->creator_id = s->user_id;
    ret->owner_email = endpoint_email(core, &ret->user_id, arena);
    ret->creator_email = endpoint_email(core, &ret->creator_id, arena);
    ret->creator_id_text = endpoint_uuid(arena, &ret->creator_id);
    ret->project_id = s->project_id;
    ret->project = endpoint_uuid(arena, &s->project_id);
    ret->domain = endpoint_text(arena, s->domain);
}

static void endpoint_fill_state(const struct core *core, const struct model_service *s,
                                struct arena *arena, struct endpoint_row *ret)
{
    bool is_live = core_find_service_by_id(core, &s->id) == s;
    const struct serving_counts counts = serving_view_count(core, s);
    bool is_failing = is_live && core_service_is_failing(core, s);

    ret->status = endpoint_status(s, &counts, is_failing);
    ret->lifecycle = endpoint_lifecycle(s);
    ret->ready = counts.ready;
    ret->problem = endpoint_text(arena, is_live ? core_service_problem(core, s) : NULL);
    ret->failures = is_live ? core_service_failures(core, s) : 0;
    if (is_live)
        endpoint_fill_routes(core, s, arena, ret);
}

/* ---- as a deployment ---- */

/* A rollout says which revisions it goes from and to; without one they are those that replicas have. */
static void endpoint_fill_revisions(const struct model_service *s,
                                    const struct rollout_state *state, struct endpoint_row *ret)
{
    int64_t before = 0;

    for (uint32_t i = 0; i < ret->route_count; i++)
        if (ret->routes[i].revision != s->goal)
            before = AQ_MAX(before, ret->routes[i].revision);
    ret->current = s->goal;
    if (rollout_is_under_way(state) && state->from) {
        ret->current = state->from;
        ret->deploying = state->to;
    } else if (before) {
        ret->current = before;
        ret->deploying = s->goal;
    }
}

static void endpoint_fill_phase(const struct model_service *s, struct endpoint_row *ret)
{
    static const char *const words[] = { "pending", "deploying", "scaling",
                                         "ready",   "stopping",  "stopped" };
    enum { PENDING, DEPLOYING, SCALING, READY, STOPPING, STOPPED } status = READY;

    if (s->ended_usec)
        status = STOPPED;
    else if (s->is_ending)
        status = STOPPING;
    else if (!s->goal)
        status = PENDING;
    else if (ret->deploying || (s->replicas && !ret->ready))
        status = DEPLOYING;
    else if (ret->ready < s->replicas)
        status = SCALING;
    ret->deployment_status = status;
    ret->phase = words[status];
}

static void endpoint_fill_deployment(const struct model_service *s, struct arena *arena,
                                     struct endpoint_row *ret)
{
    struct rollout rollout = rollout_default();
    struct rollout_state state = { .phase = ROLLOUT_NONE };
    struct aq_error err;

    if (s->rollout
        && rollout_parse(s->rollout, strlen(s->rollout), arena, &rollout, &state, &err) < 0)
        rollout = rollout_default(); /* of a newer version */
    ret->strategy = (int)rollout.strategy;
    endpoint_fill_revisions(s, &state, ret);
    endpoint_fill_phase(s, ret);
}

void endpoint_fill(const struct api *api, const struct model_service *s, struct arena *arena,
                   struct endpoint_row *ret)
{
    static const struct model_service_spec none = { .model = NULL };
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);

    *ret = (struct endpoint_row){ .id = s->id,
                                  .id_text = endpoint_uuid(arena, &s->id),
                                  .name = endpoint_text(arena, s->name),
                                  .resource_group = endpoint_text(arena, s->resource_group),
                                  .tag = endpoint_text(arena, s->tag),
                                  .replicas = s->is_ending || s->ended_usec ? 0 : s->replicas,
                                  .public_flag = s->is_public,
                                  .is_public = s->is_public,
                                  .created_usec = s->created_usec,
                                  .destroyed_usec = s->ended_usec,
                                  .revision = s->goal };
    ret->url = endpoint_text(arena, serving_view_url(api->core, s, arena));
    endpoint_fill_people(api->core, s, arena, ret);
    endpoint_fill_spec(goal ? goal->spec : &none, arena, ret);
    endpoint_fill_state(api->core, s, arena, ret);
    endpoint_fill_deployment(s, arena, ret);
    ret->tokens = arena_array(arena, s->token_count + 1, sizeof(*ret->tokens));
    for (size_t i = 0; i < s->token_count; i++)
        endpoint_fill_token(s, &s->tokens[i], arena, ret->domain, &ret->tokens[ret->token_count++]);
}

/* ---- REST ---- */

static void endpoint_write_text(struct jsonw *w, const char *key, const char *text)
{
    jsonw_member_str(w, key, *text ? text : NULL);
}

static void endpoint_write_routes(const struct endpoint_row *row, struct jsonw *w)
{
    jsonw_key(w, "active_routes");
    jsonw_array_begin(w);
    for (uint32_t i = 0; i < row->route_count; i++) {
        const struct endpoint_route *route = &row->routes[i];

        if (strcmp(route->status, "HEALTHY") != 0)
            continue;
        jsonw_object_begin(w);
        api_write_uuid(w, "route_id", &route->id);
        api_write_uuid(w, "session_id", &route->id);
        jsonw_key(w, "traffic_ratio");
        jsonw_double(w, (double)route->ratio_ppm / 1e6);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void endpoint_write(const struct endpoint_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "endpoint_id", &row->id);
    endpoint_write_text(w, "model_id", row->model);
    jsonw_key(w, "extra_mounts");
    jsonw_array_begin(w);
    for (uint32_t i = 0; i < row->folder_count; i++) {
        char id[UUID_TEXT_MAX];

        jsonw_str(w, uuid_format(&row->folders[i].id, id));
    }
    jsonw_array_end(w);
    jsonw_member_str(w, "name", row->name);
    jsonw_member_int(w, "replicas", row->replicas);
    jsonw_member_int(w, "desired_session_count", row->replicas);
    endpoint_write_text(w, "model_definition_path", row->definition);
    endpoint_write_routes(row, w);
    endpoint_write_text(w, "service_endpoint", row->url);
    jsonw_member_bool(w, "is_public", row->is_public);
    jsonw_member_str(w, "runtime_variant", row->runtime);
    jsonw_object_end(w);
}

void endpoint_write_short(const struct endpoint_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row->id);
    jsonw_member_str(w, "name", row->name);
    jsonw_member_int(w, "replicas", row->replicas);
    jsonw_member_int(w, "desired_session_count", row->replicas);
    jsonw_member_int(w, "active_route_count", row->ready);
    endpoint_write_text(w, "service_endpoint", row->url);
    jsonw_member_bool(w, "is_public", row->is_public);
    jsonw_object_end(w);
}

void endpoint_set_replicas(struct model_service *s, int64_t count)
{
    s->replicas = count;
    s->replicas_min = s->scaling ? AQ_MIN(s->replicas_min, count) : count;
    s->replicas_max = s->scaling ? AQ_MAX(s->replicas_max, count) : count;
}

void endpoint_set_bounds(struct model_service *s, const struct autoscale *rules)
{
    s->replicas_min = s->replicas_max = s->replicas;
    for (size_t i = 0; i < rules->rule_count; i++) {
        const struct autoscale_rule *rule = &rules->rules[i];
        int64_t min = rule->replicas_min < 0 ? 1 : rule->replicas_min;
        int64_t max = rule->replicas_max < 0 ? MODEL_SERVICE_REPLICAS_MAX : rule->replicas_max;

        s->replicas_min = AQ_MIN(s->replicas_min, min);
        s->replicas_max = AQ_MAX(s->replicas_max, max);
    }
}
