/* SPDX-License-Identifier: Apache-2.0 */
/* serving_view.c - see serving_view.h */
#include "manager/serving/serving_view.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_rollout.h"
#include "manager/serving/serving_route.h"
#include "model/status.h"
#include "serving/runtime.h"

bool serving_view_may(const struct request *req, const struct model_service *s)
{
    const struct principal *who = api_principal(req);

    return uuid_equals(&s->user_id, &who->user_id) || principal_sees_domain(who, s->domain);
}

struct model_service_ended serving_view_ended(const struct principal *who, bool all)
{
    struct model_service_ended of = { .user_id = &who->user_id, .limit = MODEL_SERVICE_ENDED_MAX };

    if (all && principal_is_superadmin(who))
        of.user_id = NULL;
    else if (all && who->role == ROLE_ADMIN)
        of.domain = who->domain;
    return of;
}

int serving_view_set_unknown(const char *name, struct aq_error *ret)
{
    return problem_no_such(ret, "model service", "there is no model service '%.64s'", name);
}

/* Neither ended nor about to be created: it has replicas, and a state. */
static bool view_is_live(const struct core *core, const struct model_service *s)
{
    return core_find_service_by_id(core, &s->id) == s;
}

/* ---- status ---- */

struct serving_counts serving_view_count(const struct core *core, const struct model_service *s)
{
    struct serving_counts counts = { 0 };
    struct core_replica replica;

    if (!view_is_live(core, s))
        return counts;
    for (const struct session *session = NULL; (session = core_next_replica(core, s, session));) {
        if (!core_find_replica(core, session, &replica))
            continue;
        counts.draining += replica.is_draining;
        if (replica.is_draining)
            continue;
        counts.ready += replica.health == CORE_REPLICA_READY;
        counts.starting += replica.health == CORE_REPLICA_STARTING;
        counts.unhealthy += replica.health == CORE_REPLICA_UNHEALTHY;
        counts.outdated += replica.revision != s->goal;
    }
    return counts;
}

const char *serving_view_status(const struct model_service *s, const struct serving_counts *counts,
                                bool is_failing)
{
    int64_t all = counts->ready + counts->starting + counts->unhealthy + counts->draining;

    if (s->ended_usec)
        return "ended";
    if (s->is_ending)
        return "ending";
    if (s->replicas == 0)
        return all ? "scaling" : "sleeping";
    if (counts->ready >= s->replicas)
        return counts->outdated ? "scaling" : "ready";
    if (!is_failing && !counts->unhealthy)
        return "scaling";
    return counts->ready ? "degraded" : "failing";
}

/* ---- revisions ---- */

static void view_write_pairs(const char *key, const struct pair_list *pairs, struct jsonw *w)
{
    jsonw_key(w, key);
    jsonw_object_begin(w);
    for (size_t i = 0; i < pairs->count; i++)
        jsonw_member_str(w, pairs->items[i].key, pairs->items[i].value);
    jsonw_object_end(w);
}

static void view_write_texts(const char *key, const struct str_list *texts, struct jsonw *w)
{
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t i = 0; i < texts->count; i++)
        jsonw_str(w, texts->items[i]);
    jsonw_array_end(w);
}

static void view_write_seconds(const char *key, int64_t usec, struct jsonw *w)
{
    jsonw_key(w, key);
    if (usec % USEC_PER_SEC)
        jsonw_double(w, (double)usec / USEC_PER_SEC);
    else
        jsonw_int(w, usec / USEC_PER_SEC);
}

static int64_t view_or(int64_t value, int64_t usual)
{
    return value ? value : usual;
}

static void view_write_health(const struct model_service_spec *spec, struct jsonw *w)
{
    jsonw_key(w, "health");
    jsonw_object_begin(w);
    jsonw_member_str(w, "path", spec->health_path);
    jsonw_member_int(w, "status", view_or(spec->health_status, 200));
    view_write_seconds("interval", view_or(spec->health_interval_usec, 10 * USEC_PER_SEC), w);
    view_write_seconds("timeout", view_or(spec->health_timeout_usec, 15 * USEC_PER_SEC), w);
    jsonw_member_int(w, "retries", view_or(spec->health_retries, 10));
    jsonw_object_end(w);
}

static void view_write_spec(const struct model_service_spec *spec, struct jsonw *w)
{
    jsonw_member_str(w, "image", spec->session.image);
    jsonw_member_str(w, "architecture", spec->session.architecture);
    jsonw_member_str(w, "model", spec->model);
    jsonw_member_str(w, "model_name", spec->model_name);
    jsonw_member_str(w, "model_target",
                     spec->model && !spec->model_target ? SERVING_MODEL_TARGET
                                                        : spec->model_target);
    jsonw_member_str(w, "definition", spec->definition_path);
    jsonw_member_str(w, "runtime", spec->runtime ? spec->runtime : SERVING_RUNTIME_DEFAULT);
    jsonw_member_str(w, "command", spec->session.command);
    jsonw_member_int(w, "port", spec->port);
    view_write_health(spec, w);
    view_write_seconds("ready_timeout", view_or(spec->ready_usec, 1800 * USEC_PER_SEC), w);
    view_write_pairs("environ", &spec->session.environ, w);
    view_write_pairs("resources", &spec->resources, w);
    jsonw_member_str(w, "shmem", spec->session.shmem);
    jsonw_member_str(w, "bootstrap", spec->session.bootstrap);
    jsonw_member_int(w, "cluster_size", view_or(spec->cluster_size, 1));
    jsonw_member_str(w, "cluster_mode", cluster_mode_name(spec->is_multi_node));
    view_write_texts("mounts", &spec->mounts, w);
    jsonw_member_int(w, "priority", spec->priority);
}

void serving_view_write_revision(const struct core *core, const struct model_service *s,
                                 const struct model_service_revision *revision, struct jsonw *w)
{
    const struct user *creator = core_find_user(core, &revision->creator_id);

    jsonw_object_begin(w);
    jsonw_member_int(w, "number", revision->number);
    jsonw_member_bool(w, "is_goal", revision->number == s->goal);
    jsonw_member_str(w, "note", revision->note);
    jsonw_member_str(w, "created_by", creator ? creator->email : NULL);
    api_write_time(w, "created_at", revision->created_usec);
    view_write_spec(revision->spec, w);
    jsonw_object_end(w);
}

/* ---- tokens ---- */

void serving_view_write_token(const struct core *core, const struct model_service_token *token,
                              struct jsonw *w)
{
    const struct user *creator = core_find_user(core, &token->creator_id);

    api_write_uuid(w, "id", &token->id);
    jsonw_member_str(w, "label", token->label);
    api_write_time(w, "expires_at", token->expires_usec);
    view_write_texts("paths", &token->paths, w);
    jsonw_key(w, "rate");
    jsonw_double(w, (double)token->rate_milli / 1000);
    jsonw_member_int(w, "budget", token->budget);
    jsonw_member_int(w, "used", token->used);
    jsonw_member_int(w, "requests", token->requests);
    jsonw_member_str(w, "created_by", creator ? creator->email : NULL);
    api_write_time(w, "created_at", token->created_usec);
    api_write_time(w, "used_at", token->used_usec);
}

/* ---- the service ---- */

struct view_urls {
    const char *name;
    struct jsonw *w;
};

static const char *view_make_url(const char *proxy, const char *name, struct strbuf *out)
{
    size_t len = strlen(proxy);

    while (len && proxy[len - 1] == '/')
        len--;
    strbuf_addf(out, "%.*s/serve/%s/", (int)len, proxy, name);
    return out->data;
}

/* A proxy with a wildcard domain serves the same at a host of the service's own. */
static void view_add_url(void *data, const struct core_front_contact *proxy)
{
    const struct view_urls *urls = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT, own = STRBUF_INIT;
    const char *host;

    if (proxy->kind != FRONT_PROXY || !proxy->is_connected)
        return;
    jsonw_str(urls->w, view_make_url(proxy->url, urls->name, &url));
    if (!proxy->domain_url)
        return;
    host = strstr(proxy->domain_url, "://") + 3;
    strbuf_addf(&own, "%.*s%s--serve.%s/", (int)(host - proxy->domain_url), proxy->domain_url,
                urls->name, host);
    jsonw_str(urls->w, own.data);
}

const char *serving_view_url(const struct core *core, const struct model_service *s,
                             struct arena *arena)
{
    const char *proxy = s->ended_usec ? NULL : core_find_front_url(core, FRONT_PROXY, NULL);
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;

    return proxy ? arena_strdup(arena, view_make_url(proxy, s->name, &url)) : NULL;
}

static void view_write_urls(const struct core *core, const struct model_service *s, struct jsonw *w)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char *url = serving_view_url(core, s, &arena);
    struct view_urls urls = { s->name, w };

    jsonw_member_str(w, "url", url);
    jsonw_key(w, "urls");
    jsonw_array_begin(w);
    if (url)
        core_each_front(core, view_add_url, &urls);
    jsonw_array_end(w);
}

static void view_write_replicas(const struct model_service *s, const struct serving_counts *counts,
                                struct jsonw *w)
{
    jsonw_key(w, "replicas");
    jsonw_object_begin(w);
    jsonw_member_int(w, "wanted", s->is_ending || s->ended_usec ? 0 : s->replicas);
    jsonw_member_int(w, "min", s->replicas_min);
    jsonw_member_int(w, "max", s->replicas_max);
    jsonw_member_int(w, "ready", counts->ready);
    jsonw_member_int(w, "starting", counts->starting);
    jsonw_member_int(w, "unhealthy", counts->unhealthy);
    jsonw_member_int(w, "draining", counts->draining);
    jsonw_object_end(w);
}

void serving_view_write_share(const char *key, int64_t share_micro, struct jsonw *w)
{
    jsonw_key(w, key);
    if (share_micro)
        jsonw_double(w, (double)share_micro / AMOUNT_ONE);
    else
        jsonw_null(w);
}

/* Of a device, of each replica; the bounds are null where rules do not change it. */
static void view_write_shares(const struct model_service *s, struct jsonw *w)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct autoscale rules = { .share_max_micro = 0 };

    jsonw_key(w, "share");
    if (!core_service_share(s)) {
        jsonw_null(w);
        return;
    }
    if (s->scaling && serving_scale_rules(s, &arena, &rules, NULL) < 0)
        rules.share_max_micro = 0;
    jsonw_object_begin(w);
    serving_view_write_share("wanted", core_service_share(s), w);
    serving_view_write_share("min", rules.share_max_micro ? rules.share_min_micro : 0, w);
    serving_view_write_share("max", rules.share_max_micro, w);
    jsonw_object_end(w);
}

static void view_write_limits(const struct model_service_limits *limits, struct jsonw *w)
{
    jsonw_key(w, "limits");
    jsonw_object_begin(w);
    jsonw_member_int(w, "cap", limits->cap);
    jsonw_member_int(w, "queue", view_or(limits->queue_max, SERVING_QUEUE_MAX));
    jsonw_member_int(w, "queue_bytes", view_or(limits->queue_bytes, SERVING_QUEUE_BYTES));
    view_write_seconds("queue_timeout", view_or(limits->queue_usec, SERVING_QUEUE_USEC), w);
    view_write_seconds("request_timeout", view_or(limits->request_usec, SERVING_REQUEST_USEC), w);
    view_write_seconds("drain_timeout", view_or(limits->drain_usec, SERVING_DRAIN_USEC), w);
    jsonw_member_str(w, "affinity", limits->affinity);
    jsonw_object_end(w);
}

static const char *view_health_name(const struct core_replica *replica)
{
    static const char *const names[] = {
        [CORE_REPLICA_STARTING] = "starting",
        [CORE_REPLICA_READY] = "ready",
        [CORE_REPLICA_UNHEALTHY] = "unhealthy",
    };

    return names[replica->health];
}

static void view_write_replica(const struct api *api, const struct session *session,
                               const struct core_replica *replica, struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "session", &session->id);
    jsonw_member_str(w, "session_name", session->name);
    jsonw_member_int(w, "revision", replica->revision);
    jsonw_member_int(w, "number", replica->number);
    jsonw_member_str(w, "status", session_status_name(session->status));
    jsonw_member_str(w, "health", view_health_name(replica));
    jsonw_member_str(w, "health_text", replica->health_text);
    api_write_time(w, "ready_at", replica->ready_usec);
    jsonw_member_bool(w, "draining", replica->is_draining);
    jsonw_key(w, "ratio");
    jsonw_double(w, (double)replica->ratio_ppm / 1e6);
    serving_view_write_share("share", replica->share_micro, w);
    jsonw_member_str(w, "share_problem", replica->share_problem);
    jsonw_member_str(w, "agent", session->kernel_count ? session->kernels[0].agent_id : NULL);
    serving_view_write_replica_figures(api, &replica->service->id, &session->id, w);
    jsonw_object_end(w);
}

static void view_write_replica_list(const struct api *api, const struct model_service *s,
                                    struct jsonw *w)
{
    struct core_replica replica;

    jsonw_key(w, "replica_list");
    jsonw_array_begin(w);
    for (const struct session *session = NULL;
         view_is_live(api->core, s) && (session = core_next_replica(api->core, s, session));)
        if (core_find_replica(api->core, session, &replica))
            view_write_replica(api, session, &replica, w);
    jsonw_array_end(w);
}

static void view_write_owner(const struct core *core, const struct model_service *s,
                             struct jsonw *w)
{
    const struct user *owner = core_find_user(core, &s->user_id);
    const struct project *project = core_find_project(core, &s->project_id);

    jsonw_member_str(w, "owner", owner ? owner->email : NULL);
    jsonw_member_str(w, "access_key", s->access_key);
    jsonw_member_str(w, "project", project ? project->name : NULL);
    jsonw_member_str(w, "domain", s->domain);
    jsonw_member_str(w, "resource_group", s->resource_group);
}

static void view_write_scaling(const struct api *api, const struct model_service *s,
                               struct jsonw *w)
{
    const char *reason = serving_scale_reason(api->serving->scale, &s->id);

    jsonw_key(w, "scaling");
    if (s->scaling)
        jsonw_raw(w, s->scaling, strlen(s->scaling));
    else
        jsonw_null(w);
    jsonw_member_str(w, "scaling_reason", *reason ? reason : NULL);
    jsonw_member_str(w, "scaling_problem", serving_scale_problem(api->serving->scale, &s->id));
}

void serving_view_write(const struct api *api, const struct model_service *s, bool is_whole,
                        struct jsonw *w)
{
    const struct core *core = api->core;
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);
    const struct serving_counts counts = serving_view_count(core, s);
    bool is_live = view_is_live(core, s);
    bool is_failing = is_live && core_service_is_failing(core, s);
    int64_t retry_usec = is_live ? core_service_retry_usec(core, s) : 0;

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &s->id);
    jsonw_member_str(w, "name", s->name);
    view_write_urls(core, s, w);
    jsonw_member_int(w, "version", s->version);
    view_write_owner(core, s, w);
    jsonw_member_str(w, "tag", s->tag);
    jsonw_member_bool(w, "public", s->is_public);
    jsonw_member_str(w, "status", serving_view_status(s, &counts, is_failing));
    jsonw_member_str(w, "problem", is_live ? core_service_problem(core, s) : NULL);
    api_write_time(w, "retry_at", retry_usec);
    view_write_replicas(s, &counts, w);
    view_write_shares(s, w);
    view_write_limits(&s->limits, w);
    view_write_scaling(api, s, w);
    serving_rollout_write(core, s, w);
    jsonw_member_int(w, "tokens", (int64_t)s->token_count);
    serving_view_write_figures(api, s, w);
    api_write_time(w, "created_at", s->created_usec);
    api_write_time(w, "ended_at", s->ended_usec);
    jsonw_key(w, "revision");
    if (goal)
        serving_view_write_revision(core, s, goal, w);
    else
        jsonw_null(w);
    if (is_whole) {
        view_write_replica_list(api, s, w);
        serving_view_write_revision_figures(api, s, w);
    }
    jsonw_object_end(w);
}
