/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - see route.h */
#include "proxy/route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "proxy/route_file.h"
#include "proxy/route_internal.h"

#define TICK_MSEC 1000
#define RENEWALS_MAX 64 /* asked for in one tick */
#define UNREACHABLE_USEC (30 * USEC_PER_SEC)
#define SAVE_TICKS_PER_1000 1 /* a large table is written less often */

static void routes_on_tick(void *data);

/* ---- finding ---- */

static char *route_key(const struct uuid *session_id, const char *app, const char *access_key)
{
    char id[UUID_TEXT_MAX];

    return aq_format("%s %s %s", uuid_format(session_id, id), app, access_key);
}

static void route_unref(struct app_route *r)
{
    if (r->is_dropped && list_is_empty(&r->uses) && !r->is_dirty) {
        list_remove(&r->dropped_link);
        free(r->ticket);
        free(r->agent_id);
        free(r->address);
        free(r);
    }
}

void route_drop(struct app_route *r)
{
    struct routes *rs = r->of;
    AQ_CLEANUP(aq_freep) char *key = route_key(&r->session_id, r->app, r->access_key);

    if (r->is_dropped)
        return;
    (void)map_removes(&rs->known, key);
    r->is_dropped = true;
    list_add(&rs->dropped, &r->dropped_link);
    rs->is_unsaved = true;
    route_unref(r);
}

struct app_route *routes_find(struct routes *rs, const struct msg_app_connect *want)
{
    AQ_CLEANUP(aq_freep) char *key = route_key(&want->session_id, want->app, want->access_key);
    struct app_route *r = map_gets(&rs->known, key);

    if (r && clock_realtime_usec() >= r->expires_usec) {
        route_drop(r);
        return NULL;
    }
    return r;
}

static void route_take_ticket(struct app_route *r, const struct msg_app_route *got)
{
    int64_t now = clock_realtime_usec();

    free(r->ticket);
    free(r->agent_id);
    free(r->address);
    r->ticket = aq_strdup(got->ticket);
    r->agent_id = aq_strdup(got->agent_id);
    r->address = aq_strdup(got->address);
    r->expires_usec = AQ_MIN(got->expires_usec, now + ROUTE_AGE_MAX_USEC);
    r->renew_usec = now + (r->expires_usec - now) / 2;
    r->was_used = false;
    r->of->is_unsaved = true;
}

struct app_route *routes_put(struct routes *rs, const struct msg_app_connect *want,
                             const struct msg_app_route *got)
{
    AQ_CLEANUP(aq_freep) char *key = route_key(&want->session_id, want->app, want->access_key);
    struct app_route *r = map_gets(&rs->known, key);

    if (r)
        route_drop(r);
    else if (rs->known.count >= ROUTES_MAX)
        route_drop(rs->known.entries[0].value);
    r = aq_alloc(sizeof(*r));
    *r = (struct app_route){ .of = rs,
                             .ticket_id = got->ticket_id,
                             .session_id = want->session_id,
                             .service_id = want->service_id };
    list_init(&r->uses);
    list_init(&r->dropped_link);
    (void)snprintf(r->app, sizeof(r->app), "%s", want->app);
    (void)snprintf(r->access_key, sizeof(r->access_key), "%s", want->access_key);
    route_take_ticket(r, got);
    (void)map_sets(&rs->known, key, r);
    return r;
}

struct app_route *routes_add(struct routes *rs, const struct msg_app_connect *want,
                             const struct msg_app_route *got)
{
    return routes_put(rs, want, got);
}

const char *route_agent(const struct app_route *r)
{
    return r->agent_id;
}

const char *route_address(const struct app_route *r)
{
    return r->address;
}

const char *route_ticket(const struct app_route *r)
{
    return r->ticket;
}

/* By the ticket's id, of those in use also if they were dropped. */
static struct app_route *routes_find_ticket(struct routes *rs, const struct uuid *id)
{
    for (size_t i = 0; i < rs->known.count; i++) {
        struct app_route *r = rs->known.entries[i].value;

        if (uuid_equals(&r->ticket_id, id))
            return r;
    }
    LIST_FOREACH(it, &rs->dropped) {
        struct app_route *r = LIST_ENTRY(it, struct app_route, dropped_link);

        if (uuid_equals(&r->ticket_id, id))
            return r;
    }
    return NULL;
}

/* ---- what the manager is told ---- */

static void route_ask(const struct app_route *r, bool renew)
{
    const struct message msg = { .type = MSG_APP_CHECK,
                                 .app_connect = { .request_id = r->ticket_id,
                                                  .session_id = r->session_id,
                                                  .app = r->app,
                                                  .access_key = r->access_key,
                                                  .watch = true,
                                                  .ticket = renew ? r->ticket : NULL,
                                                  .service_id = r->service_id } };

    (void)front_send(r->of->proxy->front, &msg, NULL); /* it is asked again later */
}

/* True if the manager has it. */
static bool route_tell(struct app_route *r)
{
    const struct message msg = { .type = MSG_APP_USE,
                                 .app_use = { .ticket_id = r->ticket_id,
                                              .session_id = r->session_id,
                                              .app = r->app,
                                              .access_key = r->access_key,
                                              .connections = (int64_t)r->connections,
                                              .requests = r->requests,
                                              .bytes_in = r->bytes_in,
                                              .bytes_out = r->bytes_out,
                                              .is_work = r->is_work,
                                              .traffic = r->traffic } };

    if (front_send(r->of->proxy->front, &msg, NULL) < 0)
        return false;
    r->requests = r->bytes_in = r->bytes_out = r->traffic = 0;
    r->is_work = r->is_dirty = false;
    return true;
}

static void routes_tell(struct routes *rs)
{
    for (size_t i = 0; i < rs->known.count; i++) {
        struct app_route *r = rs->known.entries[i].value;

        if (r->is_dirty && !route_tell(r))
            return;
    }
    LIST_FOREACH(it, &rs->dropped) {
        struct app_route *r = LIST_ENTRY(it, struct app_route, dropped_link);

        if (r->is_dirty && !route_tell(r))
            return;
        route_unref(r);
    }
}

static void routes_age(struct routes *rs)
{
    int64_t now = clock_realtime_usec();
    bool is_connected = front_is_connected(rs->proxy->front);
    size_t asked = 0;

    for (size_t i = 0; i < rs->known.count;) {
        struct app_route *r = rs->known.entries[i].value;

        if (now >= r->expires_usec) {
            route_drop(r);
            continue;
        }
        if (is_connected && now >= r->renew_usec && asked < RENEWALS_MAX
            && (r->was_used || r->connections || !uuid_is_nil(&r->service_id))) {
            route_ask(r, true);
            r->renew_usec = now + (r->expires_usec - now) / 2;
            asked++;
        }
        i++;
    }
}

static void routes_on_tick(void *data)
{
    struct routes *rs = data;
    struct aq_error err = { 0 };

    routes_age(rs);
    if (front_is_connected(rs->proxy->front))
        routes_tell(rs);
    rs->ticks++;
    if (rs->is_unsaved && rs->ticks > rs->known.count / 1000 * SAVE_TICKS_PER_1000) {
        rs->ticks = 0;
        rs->is_unsaved = false;
        if (route_file_write(rs, &err) < 0)
            log_limited(&rs->log, LOG_LEVEL_WARNING,
                        "routes are not kept for a restart of the proxy: %s", err.text);
        AQ_FAULT("data.routes.written");
    }
    defer_start(rs->timer, TICK_MSEC);
}

/* A manager that was restarted knows of none; and what it said meanwhile has not come. */
void routes_on_connected(struct routes *rs)
{
    for (size_t i = 0; i < rs->known.count; i++)
        route_ask(rs->known.entries[i].value, false);
    for (size_t i = 0; i < rs->known.count; i++) {
        struct app_route *r = rs->known.entries[i].value;

        r->is_dirty |= r->connections > 0;
    }
    LIST_FOREACH(it, &rs->dropped) {
        struct app_route *r = LIST_ENTRY(it, struct app_route, dropped_link);

        r->is_dirty |= r->connections > 0;
        route_ask(r, false);
    }
    routes_tell(rs);
}

void routes_renew(struct routes *rs, const struct msg_app_route *got)
{
    struct app_route *r = routes_find_ticket(rs, &got->ticket_id);

    if (r && !r->is_dropped)
        route_take_ticket(r, got);
}

bool routes_on_denied(struct routes *rs, const struct uuid *ticket_id, const char *why)
{
    struct app_route *r = routes_find_ticket(rs, ticket_id);
    struct aq_error err = { 0 };

    if (!r)
        return false;
    (void)aq_fail(&err, EACCES, "%s", why);
    r->is_dirty = true; /* so that it stays until its uses are cut */
    route_drop(r);
    while (!list_is_empty(&r->uses)) {
        struct route_use *use = LIST_ENTRY(r->uses.next, struct route_use, link);

        use->cut(use->data, &err);
    }
    return true;
}

/* ---- ways ---- */

static struct route_agent *routes_find_agent(const struct routes *rs, const char *id)
{
    return map_gets(&rs->agents, id);
}

void routes_note_way(struct routes *rs, const char *agent_id, enum route_way way, const char *why)
{
    struct route_agent *agent = routes_find_agent(rs, agent_id);

    if (!agent) {
        if (rs->agents.count >= ROUTES_MAX)
            return;
        agent = aq_alloc(sizeof(*agent));
        agent->way = ROUTE_TLS;
        (void)map_sets(&rs->agents, agent_id, agent);
        rs->is_unsaved = true;
    }
    if (way == ROUTE_MANAGER)
        agent->retry_usec = clock_monotonic_usec() + UNREACHABLE_USEC;
    if (agent->way == way && strcmp(agent->why, why ? why : "") == 0)
        return;
    if (way == ROUTE_MANAGER)
        log_warning("apps of agent '%s' are reached through the manager: %s", agent_id, why);
    else if (agent->way == ROUTE_MANAGER)
        log_info("apps of agent '%s' are reached directly again", agent_id);
    agent->way = way;
    (void)snprintf(agent->why, sizeof(agent->why), "%s", why ? why : "");
    rs->is_unsaved = true;
}

bool routes_is_unreachable(const struct routes *rs, const char *agent_id)
{
    const struct route_agent *agent = routes_find_agent(rs, agent_id);

    return agent && agent->way == ROUTE_MANAGER && clock_monotonic_usec() < agent->retry_usec;
}

/* ---- a connection ---- */

static bool route_is_repeated(void *data, uint64_t hash)
{
    struct app_route *r = data;

    for (size_t i = 0; i < ROUTE_HASHES; i++)
        if (r->hashes[i] == hash)
            return true;
    r->hashes[r->next_hash++ % ROUTE_HASHES] = hash;
    return false;
}

void route_open(struct app_route *r, struct route_use *use,
                void (*cut)(void *data, const struct aq_error *err), void *data)
{
    *use = (struct route_use){ .route = r, .cut = cut, .data = data };
    app_activity_begin(&use->activity);
    list_add(&r->uses, &use->link);
    r->connections++;
    r->requests++;
    r->is_dirty = r->was_used = true;
}

void route_count_in(struct route_use *use, const char *bytes, size_t len)
{
    struct app_route *r = use->route;
    struct app_activity_found found = { .is_repeated = route_is_repeated, .data = r };

    if (uuid_is_nil(&r->service_id)) { /* replicas are never idle */
        app_activity_take(&use->activity, bytes, len, &found);
        r->is_work |= app_activity_is_work(&use->activity, r->app, &found);
        r->traffic += found.bytes;
    }
    r->bytes_in += (int64_t)len;
    r->is_dirty = r->was_used = true;
}

void route_count_out(struct route_use *use, size_t len)
{
    struct app_route *r = use->route;

    use->output += len;
    r->traffic += (int64_t)(use->output / APP_ACTIVITY_OUTPUT_PER_BYTE);
    use->output %= APP_ACTIVITY_OUTPUT_PER_BYTE;
    r->bytes_out += (int64_t)len;
    r->is_dirty = r->was_used = true;
}

void route_close(struct route_use *use)
{
    struct app_route *r = use->route;

    if (!r)
        return;
    use->route = NULL;
    list_remove(&use->link);
    app_activity_done(&use->activity);
    r->connections--;
    r->is_dirty = true;
}

/* ---- life ---- */

struct routes *routes_new(struct proxy *proxy)
{
    struct routes *rs = aq_alloc(sizeof(*rs));
    struct aq_error err = { 0 };

    rs->proxy = proxy;
    list_init(&rs->dropped);
    if (route_file_read(rs, &err) < 0)
        log_warning("routes of before the restart are not used: %s", err.text);
    rs->timer = defer_new(proxy->loop, routes_on_tick, rs);
    defer_start(rs->timer, TICK_MSEC);
    return rs;
}

void routes_free(struct routes *rs)
{
    if (!rs)
        return;
    (void)route_file_write(rs, NULL);
    defer_cancel(rs->timer);
    while (rs->known.count)
        route_drop(rs->known.entries[0].value);
    LIST_FOREACH(it, &rs->dropped) {
        struct app_route *r = LIST_ENTRY(it, struct app_route, dropped_link);

        r->is_dirty = false;
        route_unref(r);
    }
    for (size_t i = 0; i < rs->agents.count; i++)
        free(rs->agents.entries[i].value);
    map_done(&rs->known);
    map_done(&rs->agents);
    free(rs);
}
