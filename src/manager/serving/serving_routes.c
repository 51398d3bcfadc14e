/* SPDX-License-Identifier: Apache-2.0 */
/* serving_routes.c - see serving_routes.h */
#include "manager/serving/serving_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/defer.h"
#include "manager/core/services.h"
#include "manager/serving/serving_route.h"

#define PARTS_MAX 64                    /* of what is sent at once */
#define PART_BYTES_MAX (2u << 20)       /* of one message; LINK_FRAME_MAX is the limit */
#define TICK_MSEC 500                   /* between two looks at caps, budgets and drains */
#define REPORT_USEC USEC_PER_SEC        /* in which a proxy reports what has changed */
#define SETTLE_USEC (20 * USEC_PER_SEC) /* in which proxies connect after a start or a takeover */
#define AWAY_USEC (24 * 3600 * USEC_PER_SEC) /* after which a proxy is forgotten */

struct serving_proxy {
    char id[AGENT_ID_MAX + 1];
    bool is_connected, wants_whole;
    int64_t done;        /* version that it confirmed last */
    int64_t use_version; /* of its last report */
    int64_t lost_usec;   /* monotonic: when it went */
    struct map caps;     /* service id, 16 bytes -> what it was given, as a pointer */
};

/* A replica that drains. */
struct serving_drain {
    struct uuid session_id;
    int64_t version;        /* of the first routes that say so */
    int64_t confirmed_usec; /* monotonic: when all proxies had these; 0 = not yet */
    bool is_noted;          /* the core was told that it is idle */
};

struct serving_routes {
    struct core *core;
    struct serving_use *use;
    struct serving_scale *scale;
    struct serving_proxy **proxies;
    size_t proxy_count, proxy_cap;
    struct map changed; /* ids of services -> themselves */
    struct map names;   /* ids of services that proxies may know -> their names, ours */
    struct map drains;  /* session id -> struct serving_drain */
    struct defer *flush, *tick;
    int64_t version;
    int64_t settled_usec;   /* monotonic */
    bool has_reports;       /* since the last tick */
    struct map spent_looks; /* ids of services with budgets that were used since then */
};

static void routes_tick_later(struct serving_routes *r)
{
    defer_start(r->tick, TICK_MSEC);
}

static void routes_mark(struct serving_routes *r, const struct uuid *id)
{
    (void)map_set(&r->changed, id->bytes, sizeof(id->bytes), r);
    defer_start(r->flush, 0);
}

static void routes_mark_capped(struct serving_routes *r)
{
    for (const struct model_service *s = NULL; (s = core_next_service(r->core, s));)
        if (s->limits.cap)
            routes_mark(r, &s->id);
}

static struct serving_proxy *routes_find_proxy(const struct serving_routes *r, const char *id)
{
    for (size_t i = 0; i < r->proxy_count; i++)
        if (strcmp(r->proxies[i]->id, id) == 0)
            return r->proxies[i];
    return NULL;
}

/* ---- caps ---- */

void serving_routes_divide(int64_t cap, const int64_t *demand, size_t count, int64_t *ret)
{
    int64_t rest = AQ_MAX(cap - (int64_t)count, 0), left = rest;
    double total = 0;

    for (size_t i = 0; i < count; i++)
        total += (double)demand[i];
    for (size_t i = 0; i < count; i++) {
        double part = total > 0 ? (double)demand[i] / total : 1.0 / (double)count;
        int64_t more = AQ_MIN((int64_t)((double)rest * part), left);

        ret[i] = 1 + more;
        left -= more;
    }
    for (size_t i = 0; left > 0 && i < count; i = (i + 1) % count)
        if (total == 0 || demand[i] > 0) {
            ret[i]++;
            left--;
        }
}

/* Those of the connected proxies, in the order of r->proxies; others get 0. */
static void routes_divide(const struct serving_routes *r, const struct uuid *id, int64_t cap,
                          struct arena *arena, int64_t *ret)
{
    int64_t *demand = arena_array(arena, r->proxy_count + 1, sizeof(*demand));
    int64_t *shares = arena_array(arena, r->proxy_count + 1, sizeof(*shares));
    size_t count = 0;

    for (size_t i = 0; i < r->proxy_count; i++)
        if (r->proxies[i]->is_connected)
            demand[count++] = serving_use_demand(r->use, r->proxies[i]->id, id);
    if (cap && count)
        serving_routes_divide(cap, demand, count, shares);
    count = 0;
    for (size_t i = 0; i < r->proxy_count; i++)
        ret[i] = r->proxies[i]->is_connected ? shares[count++] : 0;
}

/* Services whose proxies would get other caps now than they have. */
static void routes_look_at_caps(struct serving_routes *r)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int64_t *shares = arena_array(&arena, r->proxy_count + 1, sizeof(*shares));

    for (const struct model_service *s = NULL; (s = core_next_service(r->core, s));) {
        if (!s->limits.cap)
            continue;
        routes_divide(r, &s->id, s->limits.cap, &arena, shares);
        for (size_t i = 0; i < r->proxy_count; i++) {
            struct serving_proxy *p = r->proxies[i];
            void *had = map_get(&p->caps, s->id.bytes, sizeof(s->id.bytes));

            if (p->is_connected && (int64_t)(intptr_t)had != shares[i])
                routes_mark(r, &s->id);
        }
    }
}

/* ---- replicas that drain ---- */

static int64_t routes_drain_usec(const struct model_service *service)
{
    return service->limits.drain_usec ? service->limits.drain_usec : SERVING_DRAIN_USEC;
}

/* True if the proxy has routes in which the replica drains, or is not waited for any more. */
static bool routes_has_confirmed(const struct serving_proxy *p, const struct serving_drain *d,
                                 const struct model_service *service, int64_t now)
{
    return p->is_connected ? p->done >= d->version
                           : now - p->lost_usec >= routes_drain_usec(service);
}

/* What it said last may be older than what it confirmed; what changed since it has said by then. */
static bool routes_is_idle_in(const struct serving_routes *r, const struct serving_proxy *p,
                              const struct serving_drain *d, const struct uuid *service_id,
                              int64_t now)
{
    return !p->is_connected
           || (serving_use_in_flight(r->use, p->id, service_id, &d->session_id) == 0
               && (p->use_version >= d->version || now - d->confirmed_usec >= REPORT_USEC));
}

static void routes_look_at_drain(struct serving_routes *r, struct serving_drain *d,
                                 const struct model_service *service, int64_t now)
{
    bool is_confirmed = now >= r->settled_usec, is_idle = true;

    for (size_t i = 0; is_confirmed && i < r->proxy_count; i++)
        is_confirmed = routes_has_confirmed(r->proxies[i], d, service, now);
    if (!is_confirmed) {
        d->confirmed_usec = 0;
        return;
    }
    if (!d->confirmed_usec)
        d->confirmed_usec = now;
    for (size_t i = 0; is_idle && i < r->proxy_count; i++)
        is_idle = routes_is_idle_in(r, r->proxies[i], d, &service->id, now);
    if (is_idle) {
        d->is_noted = true;
        core_note_replica_idle(r->core, &d->session_id);
    }
}

static void routes_look_at_drains(struct serving_routes *r)
{
    int64_t now = clock_monotonic_usec();
    bool is_waiting = false;

    for (size_t i = 0; i < r->drains.count;) {
        struct serving_drain *d = r->drains.entries[i].value;
        const struct session *session = core_find_session(r->core, &d->session_id);
        struct core_replica replica;

        if (!session || !core_find_replica(r->core, session, &replica) || !replica.is_draining) {
            (void)map_remove(&r->drains, d->session_id.bytes, sizeof(d->session_id.bytes));
            free(d);
            continue;
        }
        if (!d->is_noted)
            routes_look_at_drain(r, d, replica.service, now);
        is_waiting = is_waiting || !d->is_noted;
        i++;
    }
    if (is_waiting)
        routes_tick_later(r);
}

static void routes_add_drains(struct serving_routes *r, const struct model_service *service)
{
    struct core_replica replica;

    for (const struct session *s = NULL; (s = core_next_replica(r->core, service, s));) {
        struct serving_drain *d;

        if (!core_find_replica(r->core, s, &replica) || !replica.is_draining
            || map_get(&r->drains, s->id.bytes, sizeof(s->id.bytes)))
            continue;
        d = aq_alloc(sizeof(*d));
        *d = (struct serving_drain){ .session_id = s->id, .version = r->version };
        (void)map_set(&r->drains, s->id.bytes, sizeof(s->id.bytes), d);
    }
}

/* ---- sending ---- */

/* What a turn sends: the same to all proxies, but for caps. */
struct routes_batch {
    struct arena arena;
    struct msg_serving_service *services;
    int64_t **caps; /* of a service: of each proxy; NULL = it has no cap */
    size_t count;
};

static void routes_add(struct serving_routes *r, struct routes_batch *b, const struct uuid *id)
{
    const struct model_service *service = core_find_service_by_id(r->core, id);
    struct msg_serving_service *route = &b->services[b->count];
    const char *known = map_get(&r->names, id->bytes, sizeof(id->bytes));

    if (!service && !known)
        return; /* it came and went within a turn */
    if (!service) {
        *route = (struct msg_serving_service){ .id = *id,
                                               .name = arena_strdup(&b->arena, known),
                                               .is_gone = true };
        serving_use_forget(r->use, id);
        serving_scale_forget(r->scale, id);
        free(map_remove(&r->names, id->bytes, sizeof(id->bytes)));
        for (size_t i = 0; i < r->proxy_count; i++)
            (void)map_remove(&r->proxies[i]->caps, id->bytes, sizeof(id->bytes));
    } else {
        serving_route_make(r->core, service, clock_realtime_usec(), &b->arena, route);
        if (!known)
            (void)map_set(&r->names, id->bytes, sizeof(id->bytes), aq_strdup(service->name));
        if (service->limits.cap) {
            b->caps[b->count] = arena_array(&b->arena, r->proxy_count + 1, sizeof(int64_t));
            routes_divide(r, id, service->limits.cap, &b->arena, b->caps[b->count]);
        }
        routes_add_drains(r, service);
    }
    b->count++;
}

static struct routes_batch routes_batch_make(struct serving_routes *r, bool is_whole)
{
    struct routes_batch b = { .arena = ARENA_INIT };
    size_t most = r->changed.count;
    struct uuid id;

    if (is_whole)
        for (const struct model_service *s = NULL; (s = core_next_service(r->core, s));)
            most++;
    b.services = arena_array(&b.arena, most + 1, sizeof(*b.services));
    b.caps = arena_array(&b.arena, most + 1, sizeof(*b.caps));
    if (is_whole) {
        for (const struct model_service *s = NULL; (s = core_next_service(r->core, s));)
            routes_add(r, &b, &s->id);
        return b;
    }
    for (size_t i = 0; i < r->changed.count; i++) {
        memcpy(id.bytes, r->changed.entries[i].key, sizeof(id.bytes));
        routes_add(r, &b, &id);
    }
    return b;
}

/* Where the part ends that begins with the service 'from'. */
static size_t routes_find_end(const struct routes_batch *b, size_t from)
{
    size_t size = 0, at = from;

    while (at < b->count && at - from < MSG_SERVICES_MAX) {
        size += serving_route_size(&b->services[at]);
        if (size > PART_BYTES_MAX && at > from)
            break;
        at++;
    }
    return at;
}

static void routes_send_part(struct serving_routes *r, const struct serving_proxy *p,
                             const struct msg_serving_routes *routes)
{
    const struct message msg = { .type = MSG_SERVING_ROUTES, .serving_routes = *routes };
    struct aq_error err = { 0 };

    if (core_send_front(r->core, p->id, &msg, &err) < 0)
        log_warning("cannot send routes of model services to '%s': %s", p->id, err.text);
}

/* In parts that a message holds; only who has the last one has this version. Of a whole the first
 * part says that others are gone.
 */
static void routes_send(struct serving_routes *r, const struct routes_batch *b, size_t proxy,
                        bool is_whole)
{
    struct serving_proxy *p = r->proxies[proxy];
    int64_t parts = 1;
    size_t from = 0;

    for (size_t i = 0; i < b->count; i++)
        if (b->caps[i]) {
            const struct uuid *id = &b->services[i].id;

            b->services[i].cap = b->caps[i][proxy];
            (void)map_set(&p->caps, id->bytes, sizeof(id->bytes),
                          (void *)(intptr_t)b->services[i].cap);
        }
    for (size_t end = routes_find_end(b, 0); end < b->count; end = routes_find_end(b, end))
        parts++;
    do {
        size_t end = routes_find_end(b, from);

        routes_send_part(r, p,
                         &(struct msg_serving_routes){ .version = r->version - --parts,
                                                       .is_whole = is_whole && from == 0,
                                                       .services = b->services + from,
                                                       .service_count = end - from });
        from = end;
    } while (from < b->count);
}

static void routes_on_flush(void *data)
{
    struct serving_routes *r = data;
    size_t wholes = 0;

    r->version = AQ_MAX(r->version + PARTS_MAX, clock_realtime_usec());
    for (size_t i = 0; i < r->proxy_count; i++)
        wholes += r->proxies[i]->is_connected && r->proxies[i]->wants_whole;
    if (r->changed.count) {
        struct routes_batch b = routes_batch_make(r, false);

        for (size_t i = 0; b.count && i < r->proxy_count; i++)
            if (r->proxies[i]->is_connected && !r->proxies[i]->wants_whole)
                routes_send(r, &b, i, false);
        arena_done(&b.arena);
        map_done(&r->changed);
        r->changed = (struct map)MAP_INIT;
    }
    if (wholes) {
        struct routes_batch b = routes_batch_make(r, true);

        for (size_t i = 0; i < r->proxy_count; i++)
            if (r->proxies[i]->is_connected && r->proxies[i]->wants_whole) {
                r->proxies[i]->wants_whole = false;
                routes_send(r, &b, i, true);
            }
        arena_done(&b.arena);
    }
    routes_look_at_drains(r);
}

static void routes_on_tick(void *data)
{
    struct serving_routes *r = data;
    int64_t now = clock_monotonic_usec();
    struct uuid id;

    for (size_t i = 0; i < r->spent_looks.count; i++) {
        memcpy(id.bytes, r->spent_looks.entries[i].key, sizeof(id.bytes));
        routes_mark(r, &id);
    }
    map_done(&r->spent_looks);
    r->spent_looks = (struct map)MAP_INIT;
    if (r->has_reports && r->proxy_count > 1)
        routes_look_at_caps(r);
    r->has_reports = false;
    for (size_t i = 0; i < r->proxy_count;)
        if (!r->proxies[i]->is_connected && now - r->proxies[i]->lost_usec > AWAY_USEC) {
            map_done(&r->proxies[i]->caps);
            free(r->proxies[i]);
            r->proxies[i] = r->proxies[--r->proxy_count];
        } else {
            i++;
        }
    routes_look_at_drains(r);
}

/* ---- what is heard ---- */

/* core_service_changed_fn */
static void routes_on_change(void *data, const struct uuid *service_id)
{
    struct serving_routes *r = data;

    serving_use_look(r->use, service_id);
    routes_mark(r, service_id);
}

static void routes_on_connected(void *data, const char *id)
{
    struct serving_routes *r = data;
    struct serving_proxy *p = routes_find_proxy(r, id);

    if (!p) {
        vec_grow(&r->proxies, &r->proxy_cap, r->proxy_count + 1, sizeof(struct serving_proxy *));
        p = r->proxies[r->proxy_count++] = aq_alloc(sizeof(*p));
        (void)snprintf(p->id, sizeof(p->id), "%s", id);
    }
    p->is_connected = p->wants_whole = true;
    p->done = p->use_version = 0;
    routes_mark_capped(r);
    defer_start(r->flush, 0);
}

static void routes_on_lost(void *data, const char *id)
{
    struct serving_routes *r = data;
    struct serving_proxy *p = routes_find_proxy(r, id);

    serving_use_lose(r->use, id);
    if (!p || !p->is_connected)
        return;
    p->is_connected = false;
    p->lost_usec = clock_monotonic_usec();
    routes_mark_capped(r);
    routes_tick_later(r);
}

/* Budgets are the cluster's: what one proxy spent, the others are told. */
static void routes_note_spending(struct serving_routes *r, const struct msg_serving_use *report)
{
    for (size_t i = 0; i < report->service_count; i++) {
        const struct msg_serving_service_use *use = &report->services[i];
        const struct model_service *s = core_find_service_by_id(r->core, &use->id);

        for (size_t k = 0; s && k < use->token_count; k++) {
            const struct model_service_token *t = model_service_find_token(s, &use->tokens[k].id);

            if (t && t->budget)
                (void)map_set(&r->spent_looks, use->id.bytes, sizeof(use->id.bytes), r);
        }
    }
}

static void routes_on_message(void *data, const char *id, const struct message *msg)
{
    struct serving_routes *r = data;
    struct serving_proxy *p = routes_find_proxy(r, id);

    if (!p || !p->is_connected)
        return;
    if (msg->type == MSG_SERVING_DONE) {
        if (msg->serving_done.version <= r->version)
            p->done = AQ_MAX(p->done, msg->serving_done.version);
    } else if (msg->type == MSG_SERVING_USE) {
        serving_use_take(r->use, id, &msg->serving_use);
        p->use_version = AQ_MAX(p->use_version, AQ_MIN(msg->serving_use.version, r->version));
        r->has_reports = true;
        routes_note_spending(r, &msg->serving_use);
        for (size_t i = 0; i < msg->serving_use.service_count; i++)
            serving_scale_look(r->scale, &msg->serving_use.services[i].id);
        routes_tick_later(r);
    }
    if (r->drains.count)
        routes_look_at_drains(r);
}

/* ---- life ---- */

static bool routes_any_replica(const struct core *core)
{
    for (const struct model_service *s = NULL; (s = core_next_service(core, s));)
        if (core_next_replica(core, s, NULL))
            return true;
    return false;
}

struct serving_routes *serving_routes_new(struct core *core, struct serving_use *use,
                                          struct serving_scale *scale)
{
    static const struct core_front_ops ops = { .on_message = routes_on_message,
                                               .on_lost = routes_on_lost,
                                               .on_connected = routes_on_connected };
    struct serving_routes *r = aq_alloc(sizeof(*r));

    *r = (struct serving_routes){ .core = core, .use = use, .scale = scale };
    r->flush = defer_new(core_loop(core), routes_on_flush, r);
    r->tick = defer_new(core_loop(core), routes_on_tick, r);
    if (routes_any_replica(core))
        r->settled_usec = clock_monotonic_usec() + SETTLE_USEC;
    for (const struct model_service *s = NULL; (s = core_next_service(core, s));)
        routes_mark(r, &s->id);
    core_on_service_change(core, routes_on_change, r);
    core_set_serving_ops(core, &ops, r);
    return r;
}

void serving_routes_stop(struct serving_routes *r)
{
    core_on_service_change(r->core, NULL, NULL);
    core_set_serving_ops(r->core, NULL, NULL);
    defer_cancel(AQ_TAKE(r->flush));
    defer_cancel(AQ_TAKE(r->tick));
}

static void routes_free_values(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].value);
    map_done(map);
}

void serving_routes_free(struct serving_routes *r)
{
    if (!r)
        return;
    if (r->flush)
        serving_routes_stop(r);
    for (size_t i = 0; i < r->proxy_count; i++) {
        map_done(&r->proxies[i]->caps);
        free(r->proxies[i]);
    }
    free(r->proxies);
    map_done(&r->changed);
    map_done(&r->spent_looks);
    routes_free_values(&r->names);
    routes_free_values(&r->drains);
    free(r);
}
