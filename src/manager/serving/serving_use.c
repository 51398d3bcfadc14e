/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use.c - see serving_use.h */
#include "manager/serving/serving_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sum.h"
#include "base/vec.h"
#include "http/defer.h"
#include "manager/core/services.h"
#include "manager/serving/serving_use_internal.h"

#define TICK_MSEC 1000
#define WAIT_USEC_MAX (24 * 3600 * USEC_PER_SEC)

/* ---- sums ---- */

/* 'width': FIGURES_ALL or FIGURES_PLAIN of the counts. */
static void use_sums_add(struct use_sums *sums, struct serving_figures *more, size_t width)
{
    int64_t now = clock_monotonic_usec(), *all = figures_counts(&sums->all);
    const int64_t *counts = figures_counts(more);
    bool is_empty = true;

    for (size_t i = 0; i < width; i++) {
        all[i] = sum_add(all[i], counts[i]);
        is_empty = is_empty && counts[i] == 0;
    }
    if (is_empty)
        return;
    sums->is_changed = true;
    if (!sums->window)
        sums->window = use_window_new(width, now);
    use_window_add(sums->window, counts, now);
}

static void use_sums_age(struct use_sums *sums, int64_t now)
{
    if (sums->window && use_window_is_over(sums->window, now))
        use_window_free(AQ_TAKE(sums->window));
}

/* ---- making; what has ended makes room ---- */

struct service_use *use_make(struct serving_use *use, const struct uuid *id)
{
    struct service_use *s = use_find(use, id);

    if (s)
        return s;
    s = aq_alloc(sizeof(*s));
    s->id = *id;
    (void)map_set(&use->services, s->id.bytes, sizeof(s->id.bytes), s);
    return s;
}

static struct use_proxy *use_make_proxy(struct service_use *s, const char *proxy)
{
    struct use_proxy *p = use_find_proxy(s, proxy);

    if (p)
        return p;
    vec_grow(&s->proxies, &s->proxy_cap, s->proxy_count + 1, sizeof(*s->proxies));
    p = &s->proxies[s->proxy_count++];
    *p = (struct use_proxy){ .in_flight = 0 };
    (void)snprintf(p->id, sizeof(p->id), "%s", proxy);
    return p;
}

static struct use_replica *use_make_replica(const struct serving_use *use, struct service_use *s,
                                            const struct uuid *id)
{
    struct use_replica *found = use_find_replica(s, id);
    size_t kept = 0;

    if (found)
        return found;
    for (size_t i = 0; i < s->replica_count; i++)
        if (core_find_session(use->core, &s->replicas[i].id))
            s->replicas[kept++] = s->replicas[i];
        else
            use_window_free(s->replicas[i].sums.window);
    s->replica_count = kept;
    vec_grow(&s->replicas, &s->replica_cap, kept + 1, sizeof(*s->replicas));
    s->replicas[kept] = (struct use_replica){ .id = *id };
    return &s->replicas[s->replica_count++];
}

struct use_revision *use_make_revision(struct service_use *s, const struct model_service *service,
                                       int64_t number)
{
    struct use_revision *found = use_find_revision(s, number);
    size_t kept = 0;

    if (found)
        return found;
    for (size_t i = 0; i < s->revision_count; i++)
        if (model_service_find_revision(service, s->revisions[i].number))
            s->revisions[kept++] = s->revisions[i];
        else
            use_window_free(s->revisions[i].sums.window);
    s->revision_count = kept;
    vec_grow(&s->revisions, &s->revision_cap, kept + 1, sizeof(*s->revisions));
    s->revisions[kept] = (struct use_revision){ .number = number };
    return &s->revisions[s->revision_count++];
}

struct use_token *use_make_token(struct service_use *s, const struct model_service *service,
                                 const struct uuid *id)
{
    struct use_token *found = use_find_token(s, id);
    size_t kept = 0;

    if (found)
        return found;
    for (size_t i = 0; i < s->token_count; i++)
        if (model_service_find_token(service, &s->tokens[i].id))
            s->tokens[kept++] = s->tokens[i];
    s->token_count = kept;
    vec_grow(&s->tokens, &s->token_cap, kept + 1, sizeof(*s->tokens));
    s->tokens[kept] = (struct use_token){ .id = *id };
    return &s->tokens[s->token_count++];
}

/* ---- taking ---- */

static bool use_is_sane(const int64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sum_is_sane(counts[i]))
            return false;
    return true;
}

static void use_take_buckets(const struct int_list *from, int64_t to[LATENCY_BUCKETS])
{
    for (size_t i = 0; i < from->count && i < LATENCY_BUCKETS; i++)
        to[i] = from->items[i];
}

static bool use_read_replica(const struct msg_serving_replica_use *report,
                             struct serving_figures *ret)
{
    *ret = (struct serving_figures){
        .in_flight = report->in_flight,
        .requests = report->requests,
        .failures = report->failures,
        .ok = report->ok,
        .client_errors = report->client_errors,
        .server_errors = report->server_errors,
        .broken = report->broken,
        .duration_usec = report->duration_usec,
        .first_byte_usec = report->first_byte_usec,
        .prompt_tokens = report->prompt_tokens,
        .completion_tokens = report->completion_tokens,
        .cached_tokens = report->cached_tokens,
    };
    /* A proxy of before does not say how its requests ended. */
    if (!report->revision)
        ret->ok = AQ_MAX(report->requests - report->failures, INT64_C(0));
    use_take_buckets(&report->duration_buckets, ret->durations);
    use_take_buckets(&report->first_byte_buckets, ret->first_bytes);
    return use_is_sane(&ret->in_flight, 1) && use_is_sane(figures_counts(ret), FIGURES_ALL);
}

/* What a replica answered counts for its revision, also if it has ended meanwhile. *of_service is what
 * only replicas are reported with, and counts for the service.
 */
static void use_take_replica(const struct serving_use *use, struct service_use *s,
                             const struct model_service *service, struct use_proxy *p,
                             const struct msg_serving_replica_use *report,
                             struct serving_figures *of_service)
{
    const struct session *session = core_find_session(use->core, &report->session_id);
    int64_t revision = report->revision;
    struct serving_figures more;
    struct core_replica replica;
    bool is_known = session && core_find_replica(use->core, session, &replica)
                    && replica.service == service;

    if (!use_read_replica(report, &more))
        return;
    if (is_known) {
        revision = replica.revision;
        vec_grow(&p->loads, &p->load_cap, p->load_count + 1, sizeof(*p->loads));
        p->loads[p->load_count++] = (struct use_load){ report->session_id, report->in_flight,
                                                       report->is_ejected };
        use_sums_add(&use_make_replica(use, s, &report->session_id)->sums, &more, FIGURES_PLAIN);
    }
    if (!revision || !model_service_find_revision(service, revision))
        return;
    use_sums_add(&use_make_revision(s, service, revision)->sums, &more, FIGURES_ALL);
    of_service->requests += more.requests;
    of_service->failures += more.failures;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        of_service->durations[i] += more.durations[i];
        of_service->first_bytes[i] += more.first_bytes[i];
    }
}

static void use_take_token(const struct serving_use *use, struct service_use *s,
                           const struct model_service *service,
                           const struct msg_serving_token_use *t)
{
    const int64_t counts[] = { t->requests,      t->ok,
                               t->client_errors, t->server_errors,
                               t->refused,       t->prompt_tokens,
                               t->cached_tokens, t->completion_tokens };
    struct serving_token_figures *f;
    struct use_token *token;

    if (!model_service_find_token(service, &t->id) || !use_is_sane(counts, AQ_COUNT(counts)))
        return;
    if (t->requests || t->prompt_tokens || t->completion_tokens)
        core_note_token_use(use->core, &service->id, &t->id, t->requests,
                            t->prompt_tokens + t->completion_tokens);
    token = use_make_token(s, service, &t->id);
    token->is_changed = true;
    f = &token->figures;
    f->requests = sum_add(f->requests, t->requests);
    f->ok = sum_add(f->ok, t->ok);
    f->client_errors = sum_add(f->client_errors, t->client_errors);
    f->server_errors = sum_add(f->server_errors, t->server_errors);
    f->refused = sum_add(f->refused, t->refused);
    f->prompt_tokens = sum_add(f->prompt_tokens, t->prompt_tokens);
    f->completion_tokens = sum_add(f->completion_tokens, t->completion_tokens);
    f->cached_tokens = sum_add(f->cached_tokens, t->cached_tokens);
}

/* ---- cold starts ---- */

static bool use_has_ready(const struct core *core, const struct model_service *service)
{
    struct core_replica replica;

    for (const struct session *s = NULL; (s = core_next_replica(core, service, s));)
        if (core_find_replica(core, s, &replica) && replica.health == CORE_REPLICA_READY
            && !replica.is_draining)
            return true;
    return false;
}

/* A request that waits wakes a service that was scaled to 0 by its rules. */
static void use_note_wake(const struct core *core, struct service_use *s,
                          const struct model_service *service,
                          const struct msg_serving_service_use *report)
{
    if (report->queued && !s->woken_usec && !service->replicas && service->replicas_max
        && !service->is_ending && !use_has_ready(core, service))
        s->woken_usec = clock_monotonic_usec() - AQ_MIN(report->oldest_usec, WAIT_USEC_MAX);
}

void serving_use_look(struct serving_use *use, const struct uuid *service_id)
{
    struct service_use *s = use_find(use, service_id);
    const struct model_service *service = s && s->woken_usec
                                              ? core_find_service_by_id(use->core, service_id)
                                              : NULL;

    if (!service)
        return;
    if (use_has_ready(use->core, service)) {
        s->cold_starts.count++;
        s->cold_starts.usec += clock_monotonic_usec() - s->woken_usec;
        s->sums.is_changed = true;
        s->woken_usec = 0;
    } else if (!service->replicas && !serving_use_get(use, service_id).queued) {
        s->woken_usec = 0; /* it sleeps again before it was ready, and nobody waits */
    }
}

/* ---- reports ---- */

static bool use_read_service(const struct msg_serving_service_use *report,
                             struct serving_figures *ret)
{
    *ret = (struct serving_figures){
        .in_flight = report->in_flight,
        .queued = report->queued,
        .arrived = report->arrived,
        .refused = report->refused,
        .waited = report->waited,
        .queue_usec = report->queue_usec,
        .ok = report->ok,
        .client_errors = report->client_errors,
        .server_errors = report->server_errors,
        .broken = report->broken,
        .duration_usec = report->duration_usec,
        .first_byte_usec = report->first_byte_usec,
        .prompt_tokens = report->prompt_tokens,
        .completion_tokens = report->completion_tokens,
        .cached_tokens = report->cached_tokens,
    };
    return use_is_sane((int64_t[]){ ret->in_flight, ret->queued, report->oldest_usec }, 3)
           && use_is_sane(figures_counts(ret), FIGURES_PLAIN);
}

static void use_take_service(struct serving_use *use, const char *proxy,
                             const struct msg_serving_service_use *report)
{
    const struct model_service *service = core_find_service_by_id(use->core, &report->id);
    struct serving_figures more;
    struct service_use *s;
    struct use_proxy *p;

    if (!service || !use_read_service(report, &more))
        return;
    s = use_make(use, &report->id);
    p = use_make_proxy(s, proxy);
    p->in_flight = report->in_flight;
    p->queued = report->queued;
    p->load_count = 0; /* nothing is under way in replicas that are not listed */
    for (size_t i = 0; i < report->replica_count; i++)
        use_take_replica(use, s, service, p, &report->replicas[i], &more);
    for (size_t i = 0; i < report->token_count; i++)
        use_take_token(use, s, service, &report->tokens[i]);
    use_sums_add(&s->sums, &more, FIGURES_ALL);
    use_note_wake(use->core, s, service, report);
}

void serving_use_take(struct serving_use *use, const char *proxy,
                      const struct msg_serving_use *report)
{
    for (size_t i = 0; i < report->service_count; i++)
        use_take_service(use, proxy, &report->services[i]);
    if (use->timer)
        defer_start(use->timer, TICK_MSEC);
}

static void use_free_proxy(struct use_proxy *p)
{
    free(p->loads);
}

void serving_use_lose(struct serving_use *use, const char *proxy)
{
    for (size_t i = 0; i < use->services.count; i++) {
        struct service_use *s = use->services.entries[i].value;
        struct use_proxy *p = use_find_proxy(s, proxy);

        if (!p)
            continue;
        use_free_proxy(p);
        *p = s->proxies[--s->proxy_count];
    }
}

/* ---- the last minute ---- */

/* Rollouts compare revisions by what their replicas did. True if there is more to come. */
static bool use_tick_replica(struct core *core, struct use_replica *replica, int64_t now)
{
    struct serving_summary summary;
    const struct serving_figures *f = &summary.recent;
    struct core_replica_figures figures;
    int64_t answered;

    if (!replica->sums.window)
        return false;
    use_sums_age(&replica->sums, now);
    use_sums_get(&replica->sums, &summary);
    answered = f->ok + f->client_errors + f->server_errors;
    figures = (struct core_replica_figures){
        .requests = answered + f->failures,
        .errors = f->server_errors + f->failures,
        .latency_sec = answered ? (double)f->duration_usec / USEC_PER_SEC / (double)answered : 0,
    };
    core_note_replica_figures(core, &replica->id, &figures);
    return replica->sums.window != NULL;
}

static bool use_tick_service(struct core *core, struct service_use *s, int64_t now)
{
    bool goes_on = false;

    use_sums_age(&s->sums, now);
    for (size_t i = 0; i < s->revision_count; i++)
        use_sums_age(&s->revisions[i].sums, now);
    for (size_t i = 0; i < s->replica_count; i++)
        goes_on |= use_tick_replica(core, &s->replicas[i], now);
    return goes_on || s->sums.window;
}

bool serving_use_tick(struct serving_use *use)
{
    int64_t now = clock_monotonic_usec();
    bool goes_on = false;

    for (size_t i = 0; i < use->services.count; i++)
        goes_on |= use_tick_service(use->core, use->services.entries[i].value, now);
    return goes_on;
}

static void use_on_timer(void *data)
{
    struct serving_use *use = data;

    if (serving_use_tick(use))
        defer_start(use->timer, TICK_MSEC);
}

/* ---- life ---- */

static void use_free_service(struct service_use *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->proxy_count; i++)
        use_free_proxy(&s->proxies[i]);
    for (size_t i = 0; i < s->revision_count; i++)
        use_window_free(s->revisions[i].sums.window);
    for (size_t i = 0; i < s->replica_count; i++)
        use_window_free(s->replicas[i].sums.window);
    use_window_free(s->sums.window);
    free(s->proxies);
    free(s->revisions);
    free(s->replicas);
    free(s->tokens);
    free(s);
}

struct serving_use *serving_use_new(struct core *core)
{
    struct serving_use *use = aq_alloc(sizeof(*use));

    *use = (struct serving_use){ .core = core };
    use->timer = defer_new(core_loop(core), use_on_timer, use);
    return use;
}

void serving_use_stop(struct serving_use *use)
{
    defer_cancel(AQ_TAKE(use->timer));
}

void serving_use_forget(struct serving_use *use, const struct uuid *service_id)
{
    use_free_service(map_remove(&use->services, service_id->bytes, sizeof(service_id->bytes)));
}

void serving_use_free(struct serving_use *use)
{
    if (!use)
        return;
    defer_cancel(use->timer);
    for (size_t i = 0; i < use->services.count; i++)
        use_free_service(use->services.entries[i].value);
    map_done(&use->services);
    free(use);
}
