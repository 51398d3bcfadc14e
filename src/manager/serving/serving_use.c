/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use.c - see serving_use.h */
#include "manager/serving/serving_use.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/exposition.h"
#include "manager/core/services.h"

#define COUNT_MAX INT64_C(1000000000000000) /* a report with more is wrong */

/* A replica, in all proxies or in one. */
struct use_replica {
    struct uuid id;
    struct serving_replica_figures figures;
};

struct use_replicas {
    struct use_replica *items;
    size_t count, cap;
};

struct use_proxy {
    char id[AGENT_ID_MAX + 1];
    int64_t in_flight, queued;
    struct use_replicas replicas;
};

struct service_use {
    struct uuid id;
    struct serving_figures totals; /* without what is now */
    struct use_replicas replicas;  /* the same */
    struct use_proxy *proxies;
    size_t proxy_count, proxy_cap;
};

struct serving_use {
    struct core *core;
    struct map services; /* id, 16 bytes -> struct service_use */
};

/* ---- finding ---- */

static struct service_use *use_find(const struct serving_use *use, const struct uuid *id)
{
    return map_get(&use->services, id->bytes, sizeof(id->bytes));
}

static struct use_proxy *use_find_proxy(const struct service_use *s, const char *proxy)
{
    for (size_t i = 0; s && i < s->proxy_count; i++)
        if (strcmp(s->proxies[i].id, proxy) == 0)
            return &s->proxies[i];
    return NULL;
}

static struct use_replica *use_find_replica(const struct use_replicas *list, const struct uuid *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (uuid_equals(&list->items[i].id, id))
            return &list->items[i];
    return NULL;
}

static struct service_use *use_make(struct serving_use *use, const struct uuid *id)
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

/* Those of replicas that have ended make room. */
static struct use_replica *use_make_replica(const struct serving_use *use,
                                            struct use_replicas *list, const struct uuid *id)
{
    struct use_replica *found = use_find_replica(list, id);
    size_t kept = 0;

    if (found)
        return found;
    for (size_t i = 0; i < list->count; i++)
        if (core_find_session(use->core, &list->items[i].id))
            list->items[kept++] = list->items[i];
    list->count = kept;
    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count] = (struct use_replica){ .id = *id };
    return &list->items[list->count++];
}

/* ---- taking ---- */

static bool use_is_sane(const int64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (counts[i] < 0 || counts[i] > COUNT_MAX)
            return false;
    return true;
}

static void use_take_replica(const struct serving_use *use, struct service_use *s,
                             struct use_proxy *p, const struct msg_serving_replica_use *report)
{
    const struct session *session = core_find_session(use->core, &report->session_id);
    struct core_replica replica;
    struct use_replica *all, *here;

    if (!session || !core_find_replica(use->core, session, &replica)
        || !uuid_equals(&replica.service->id, &s->id)
        || !use_is_sane((int64_t[]){ report->in_flight, report->requests, report->failures }, 3))
        return;
    all = use_make_replica(use, &s->replicas, &report->session_id);
    all->figures.requests += report->requests;
    all->figures.failures += report->failures;
    here = use_make_replica(use, &p->replicas, &report->session_id);
    here->figures.in_flight = report->in_flight;
    here->figures.is_ejected = report->is_ejected;
}

static void use_take_service(struct serving_use *use, const char *proxy,
                             const struct msg_serving_service_use *report)
{
    const int64_t counts[] = {
        report->in_flight,     report->queued,        report->arrived,    report->ok,
        report->client_errors, report->server_errors, report->refused,    report->broken,
        report->waited,        report->duration_usec, report->queue_usec, report->first_byte_usec
    };
    struct service_use *s;
    struct serving_figures *sum;
    struct use_proxy *p;

    if (!core_find_service_by_id(use->core, &report->id) || !use_is_sane(counts, AQ_COUNT(counts)))
        return;
    s = use_make(use, &report->id);
    p = use_make_proxy(s, proxy);
    p->in_flight = report->in_flight;
    p->queued = report->queued;
    sum = &s->totals;
    sum->arrived += report->arrived;
    sum->ok += report->ok;
    sum->client_errors += report->client_errors;
    sum->server_errors += report->server_errors;
    sum->refused += report->refused;
    sum->broken += report->broken;
    sum->waited += report->waited;
    sum->duration_usec += report->duration_usec;
    sum->first_byte_usec += report->first_byte_usec;
    sum->queue_usec += report->queue_usec;
    for (size_t i = 0; i < p->replicas.count; i++) /* nothing is under way in those not listed */
        p->replicas.items[i].figures = (struct serving_replica_figures){ .in_flight = 0 };
    for (size_t i = 0; i < report->replica_count; i++)
        use_take_replica(use, s, p, &report->replicas[i]);
    for (size_t i = 0; i < report->token_count; i++) {
        const struct msg_serving_token_use *t = &report->tokens[i];

        if (use_is_sane((int64_t[]){ t->requests, t->prompt_tokens, t->completion_tokens }, 3))
            core_note_token_use(use->core, &report->id, &t->id, t->requests,
                                t->prompt_tokens + t->completion_tokens);
    }
}

void serving_use_take(struct serving_use *use, const char *proxy,
                      const struct msg_serving_use *report)
{
    for (size_t i = 0; i < report->service_count; i++)
        use_take_service(use, proxy, &report->services[i]);
}

void serving_use_lose(struct serving_use *use, const char *proxy)
{
    for (size_t i = 0; i < use->services.count; i++) {
        struct service_use *s = use->services.entries[i].value;
        struct use_proxy *p = use_find_proxy(s, proxy);

        if (!p)
            continue;
        free(p->replicas.items);
        *p = s->proxies[--s->proxy_count];
    }
}

/* ---- asking ---- */

struct serving_figures serving_use_get(const struct serving_use *use, const struct uuid *service_id)
{
    const struct service_use *s = use_find(use, service_id);
    struct serving_figures sum = s ? s->totals : (struct serving_figures){ .in_flight = 0 };

    for (size_t i = 0; s && i < s->proxy_count; i++) {
        sum.in_flight += s->proxies[i].in_flight;
        sum.queued += s->proxies[i].queued;
    }
    return sum;
}

struct serving_replica_figures serving_use_get_replica(const struct serving_use *use,
                                                       const struct uuid *service_id,
                                                       const struct uuid *session_id)
{
    const struct service_use *s = use_find(use, service_id);
    const struct use_replica *all = s ? use_find_replica(&s->replicas, session_id) : NULL;
    struct serving_replica_figures sum = { .in_flight = 0 };

    if (all)
        sum = all->figures;
    for (size_t i = 0; s && i < s->proxy_count; i++) {
        const struct use_replica *here = use_find_replica(&s->proxies[i].replicas, session_id);

        sum.in_flight += here ? here->figures.in_flight : 0;
        sum.is_ejected = sum.is_ejected || (here && here->figures.is_ejected);
    }
    return sum;
}

int64_t serving_use_in_flight(const struct serving_use *use, const char *proxy,
                              const struct uuid *service_id, const struct uuid *session_id)
{
    const struct use_proxy *p = use_find_proxy(use_find(use, service_id), proxy);
    const struct use_replica *here = p ? use_find_replica(&p->replicas, session_id) : NULL;

    return here ? here->figures.in_flight : 0;
}

int64_t serving_use_demand(const struct serving_use *use, const char *proxy,
                           const struct uuid *service_id)
{
    const struct use_proxy *p = use_find_proxy(use_find(use, service_id), proxy);

    return p ? p->in_flight + p->queued : 0;
}

/* ---- metrics ---- */

/* A service's name, and what its figures are. */
struct use_shown {
    const char *name;
    struct serving_figures figures;
    int64_t wanted, ready;
};

static void use_write_family(const struct use_shown *shown, size_t count, const char *name,
                             const char *type, const char *help, size_t at, double unit,
                             struct strbuf *out)
{
    exposition_family(out, name, type, help);
    for (size_t i = 0; i < count; i++) {
        const char *from = (const char *)&shown[i];

        exposition_begin(out, name);
        exposition_label(out, "service", shown[i].name);
        exposition_value(out, (double)*(const int64_t *)(const void *)(from + at) / unit);
    }
}

static void use_write_requests(const struct use_shown *shown, size_t count, struct strbuf *out)
{
    static const struct {
        const char *name;
        size_t at;
    } classes[] = {
        { "ok", offsetof(struct serving_figures, ok) },
        { "client-error", offsetof(struct serving_figures, client_errors) },
        { "server-error", offsetof(struct serving_figures, server_errors) },
        { "refused", offsetof(struct serving_figures, refused) },
        { "broken", offsetof(struct serving_figures, broken) },
    };

    exposition_family(out, "aliquot_service_requests_total", "counter",
                      "Requests to model services, by how they ended");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < AQ_COUNT(classes); k++) {
            const char *from = (const char *)&shown[i].figures + classes[k].at;

            exposition_begin(out, "aliquot_service_requests_total");
            exposition_label(out, "service", shown[i].name);
            exposition_label(out, "class", classes[k].name);
            exposition_value(out, (double)*(const int64_t *)(const void *)from);
        }
}

static struct use_shown use_show(const struct serving_use *use, const struct model_service *service)
{
    struct use_shown shown = { service->name, serving_use_get(use, &service->id), service->replicas,
                               0 };
    struct core_replica replica;

    for (const struct session *s = NULL; (s = core_next_replica(use->core, service, s));)
        shown.ready += core_find_replica(use->core, s, &replica)
                       && replica.health == CORE_REPLICA_READY && !replica.is_draining;
    return shown;
}

void serving_use_write_metrics(const struct serving_use *use, struct strbuf *out)
{
    struct use_shown *shown = NULL;
    size_t count = 0, cap = 0;

    for (const struct model_service *s = NULL; (s = core_next_service(use->core, s));) {
        vec_grow(&shown, &cap, count + 1, sizeof(*shown));
        shown[count++] = use_show(use, s);
    }
    use_write_requests(shown, count, out);
#define FAMILY(name, type, help, member, unit)                          \
    use_write_family(shown, count, "aliquot_service_" name, type, help, \
                     offsetof(struct use_shown, member), unit, out)
    FAMILY("in_flight", "gauge", "Requests that replicas of model services are answering",
           figures.in_flight, 1);
    FAMILY("queued", "gauge", "Requests to model services that wait in proxies", figures.queued, 1);
    FAMILY("replicas", "gauge", "Replicas of model services that are ready", ready, 1);
    FAMILY("replicas_wanted", "gauge", "Replicas of model services that are wanted", wanted, 1);
    FAMILY("duration_seconds_total", "counter",
           "Time until the end of the answers of model services", figures.duration_usec, 1e6);
    FAMILY("first_byte_seconds_total", "counter",
           "Time until the first byte of the answers of model services", figures.first_byte_usec,
           1e6);
    FAMILY("queue_seconds_total", "counter", "Time that answered requests waited in proxies",
           figures.queue_usec, 1e6);
#undef FAMILY
    free(shown);
}

/* ---- life ---- */

static void use_free_service(struct service_use *s)
{
    for (size_t i = 0; s && i < s->proxy_count; i++)
        free(s->proxies[i].replicas.items);
    if (s) {
        free(s->proxies);
        free(s->replicas.items);
    }
    free(s);
}

struct serving_use *serving_use_new(struct core *core)
{
    struct serving_use *use = aq_alloc(sizeof(*use));

    *use = (struct serving_use){ .core = core };
    return use;
}

void serving_use_forget(struct serving_use *use, const struct uuid *service_id)
{
    use_free_service(map_remove(&use->services, service_id->bytes, sizeof(service_id->bytes)));
}

void serving_use_free(struct serving_use *use)
{
    if (!use)
        return;
    for (size_t i = 0; i < use->services.count; i++)
        use_free_service(use->services.entries[i].value);
    map_done(&use->services);
    free(use);
}
