/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the services as the manager said last
 *
 * Each service keeps its part of the message; beside it is what lives here: calls, connections,
 * buckets. A change keeps these for tokens and replicas that it names again. A replica or token that it
 * does not name goes once its last call has ended; calls of a revoked token are cut.
 */
#include "proxy/serving/service.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "http/defer.h"
#include "proxy/route.h"
#include "proxy/service_file.h"

#define TICK_MSEC 250
#define TICKS_PER_SEC 4
#define SAVE_MSEC 100 /* the file is written at most so often */
#define SAVE_LATER_MSEC \
    20 /* requests that waited for these routes go out before the file is written */
#define QUEUE_USEC_DEFAULT (600 * USEC_PER_SEC)
#define QUEUE_MAX_DEFAULT 1000
#define QUEUE_BYTES_DEFAULT ((size_t)64 << 20)
#define HEADER_PREFIX "header:"

static void served_name_key(const char *name, char key[SERVICE_NAME_ROOM])
{
    size_t i = 0;

    for (; name[i] && i < SERVICE_NAME_ROOM - 1; i++)
        key[i] = (char)tolower((unsigned char)name[i]);
    key[i] = '\0';
}

struct served *serving_find(const struct serving *serving, const char *name)
{
    char key[SERVICE_NAME_ROOM];

    served_name_key(name, key);
    return map_gets(&serving->names, key);
}

int64_t served_queue_usec(const struct served *service)
{
    return service->msg->queue_usec > 0 ? service->msg->queue_usec : QUEUE_USEC_DEFAULT;
}

size_t served_queue_max(const struct served *service)
{
    return service->msg->queue_max > 0 ? (size_t)service->msg->queue_max : QUEUE_MAX_DEFAULT;
}

size_t served_queue_bytes(const struct served *service)
{
    return service->msg->queue_bytes > 0 ? (size_t)service->msg->queue_bytes : QUEUE_BYTES_DEFAULT;
}

/* ---- tokens ---- */

static void served_drop_tokens(struct served *service)
{
    LIST_FOREACH(it, &service->tokens) {
        struct token *token = LIST_ENTRY(it, struct token, link);

        if (!token->said && !token->calls)
            token_free(token);
    }
}

static void token_take(struct token *token, const struct msg_serving_token *said)
{
    token->said = said;
    if (token->budget != said->budget)
        token->spent = 0; /* the manager has counted */
    token->budget = said->budget;
}

static void served_take_tokens(struct served *service)
{
    struct map known = MAP_INIT;

    LIST_FOREACH(it, &service->tokens) {
        struct token *token = LIST_ENTRY(it, struct token, link);

        token->said = NULL;
        (void)map_set(&known, token->id.bytes, sizeof(token->id.bytes), token);
    }
    map_done(&service->hashes);
    service->hashes = (struct map)MAP_INIT;
    for (size_t i = 0; i < service->msg->token_count; i++) {
        const struct msg_serving_token *said = &service->msg->tokens[i];
        struct token *token = map_get(&known, said->id.bytes, sizeof(said->id.bytes));

        if (!token) {
            token = token_new(&said->id);
            list_add(&service->tokens, &token->link);
        }
        token_take(token, said);
        (void)map_sets(&service->hashes, said->hash, token);
    }
    map_done(&known);
    served_drop_tokens(service);
}

/* ---- replicas ---- */

static struct replica *served_find_replica(const struct served *service, const struct uuid *id)
{
    LIST_FOREACH(it, &service->replicas) {
        struct replica *replica = LIST_ENTRY(it, struct replica, link);

        if (uuid_equals(&replica->session_id, id))
            return replica;
    }
    return NULL;
}

/* Its ticket leads nowhere any more. */
static void replica_leave(struct replica *replica)
{
    const struct served *service = replica->service;
    const struct msg_app_connect want = { .session_id = replica->session_id,
                                          .app = MODEL_SERVICE_APP,
                                          .access_key = service->msg->access_key };
    struct app_route *route = want.access_key ? routes_find(service->of->proxy->routes, &want)
                                              : NULL;

    if (route)
        route_drop(route);
    replica_close_idle(replica, INT64_MAX);
}

static void served_drop_replicas(struct served *service)
{
    LIST_FOREACH(it, &service->replicas) {
        struct replica *replica = LIST_ENTRY(it, struct replica, link);

        if (replica->at == BALANCE_NONE && !replica->in_flight && !replica_has_news(replica))
            replica_free(replica);
    }
}

/* Since when has it been open? Requests that waited for that say so. */
static void served_update(struct served *service, int64_t now)
{
    for (size_t i = 0; i < service->entry_count; i++)
        replica_update(service->entry_replicas[i], now);
    if (!balance_is_open(service->entries, service->entry_count))
        service->open_usec = 0;
    else if (!service->open_usec)
        service->open_usec = now;
}

static void served_take_replicas(struct served *service)
{
    size_t count = service->msg->replica_count;

    LIST_FOREACH(it, &service->replicas)
        LIST_ENTRY(it, struct replica, link)->at = BALANCE_NONE;
    free(service->entries);
    free(service->entry_replicas);
    service->entries = aq_alloc_array(count + 1, sizeof(*service->entries));
    service->entry_replicas = aq_alloc_array(count + 1, sizeof(struct replica *));
    service->entry_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct uuid *id = &service->msg->replicas[i].session_id;
        struct replica *replica = served_find_replica(service, id);

        if (!replica)
            replica = replica_new(service, id);
        replica->at = i;
        replica->revision = service->msg->replicas[i].revision;
        service->entry_replicas[i] = replica;
    }
    LIST_FOREACH(it, &service->replicas)
        if (LIST_ENTRY(it, struct replica, link)->at == BALANCE_NONE)
            replica_leave(LIST_ENTRY(it, struct replica, link));
    served_drop_replicas(service);
    served_update(service, clock_monotonic_usec());
}

/* ---- services ---- */

static struct served *served_new(struct serving *serving, const struct uuid *id)
{
    struct served *service = aq_alloc(sizeof(*service));
    struct list *lists[] = { &service->tokens,          &service->replicas,
                             &service->calls,           &service->turns,
                             &service->anyone.link,     &service->anyone.waiting,
                             &service->anyone.turn_link };

    service->of = serving;
    service->id = *id;
    for (size_t i = 0; i < AQ_COUNT(lists); i++)
        list_init(lists[i]);
    (void)map_set(&serving->services, id->bytes, sizeof(id->bytes), service);
    return service;
}

void served_free(struct served *service)
{
    (void)map_remove(&service->of->services, service->id.bytes, sizeof(service->id.bytes));
    while (!list_is_empty(&service->replicas))
        replica_free(LIST_ENTRY(service->replicas.next, struct replica, link));
    while (!list_is_empty(&service->tokens))
        token_free(LIST_ENTRY(service->tokens.next, struct token, link));
    map_done(&service->hashes);
    free(service->entries);
    free(service->entry_replicas);
    message_done(&service->said);
    free(service);
}

static void served_take_affinity(struct served *service)
{
    const char *said = service->msg->affinity;
    size_t len = strlen(HEADER_PREFIX);

    service->affinity = AFFINITY_NONE;
    if (said && strcmp(said, "prompt") == 0) {
        service->affinity = AFFINITY_PROMPT;
    } else if (said && strncmp(said, HEADER_PREFIX, len) == 0 && said[len]) {
        service->affinity = AFFINITY_HEADER;
        service->affinity_header = said + len;
    }
}

static void serving_take_service(struct serving *serving, const struct msg_serving_service *from)
{
    struct served *service = map_get(&serving->services, from->id.bytes, sizeof(from->id.bytes));
    struct msg_serving_service one = *from;
    const struct message msg = { .type = MSG_SERVING_ROUTES,
                                 .serving_routes = {
                                     .version = 1, .services = &one, .service_count = 1 } };
    struct message said, former;

    if (message_copy(&msg, &said, NULL) < 0)
        return; /* it was decoded, so it can be encoded */
    if (!service)
        service = served_new(serving, &from->id);
    former = service->said;
    service->said = said;
    service->msg = &service->said.serving_routes.services[0];
    service->is_listed = true;
    served_take_affinity(service);
    served_take_tokens(service);
    served_take_replicas(service);
    message_done(&former);
    served_report(service, false);
}

/* Those that are gone leave their name to another. */
static void serving_index_names(struct serving *serving)
{
    map_done(&serving->names);
    serving->names = (struct map)MAP_INIT;
    for (size_t i = 0; i < serving->services.count; i++) {
        struct served *service = serving->services.entries[i].value;
        char key[SERVICE_NAME_ROOM];

        served_name_key(service->msg->name, key);
        if (service->is_listed && (!service->msg->is_gone || !map_gets(&serving->names, key)))
            (void)map_sets(&serving->names, key, service);
    }
}

/* It is not listed any more: its calls end by themselves. */
static void served_leave(struct served *service)
{
    service->is_listed = false;
    LIST_FOREACH(it, &service->replicas) {
        struct replica *replica = LIST_ENTRY(it, struct replica, link);

        replica->at = BALANCE_NONE;
        replica_leave(replica);
    }
    service->entry_count = 0;
    service->open_usec = 0;
}

void serving_apply(struct serving *serving, const struct msg_serving_routes *routes)
{
    for (size_t i = 0; routes->is_whole && i < serving->services.count; i++)
        ((struct served *)serving->services.entries[i].value)->is_listed = false;
    for (size_t i = 0; i < routes->service_count; i++)
        serving_take_service(serving, &routes->services[i]);
    for (size_t i = 0; i < serving->services.count; i++) {
        struct served *service = serving->services.entries[i].value;

        if (!service->is_listed)
            served_leave(service);
    }
    serving->version = routes->version;
    serving_index_names(serving);
    for (size_t i = 0; i < serving->services.count; i++)
        served_serve_queue(serving->services.entries[i].value);
    if (serving->services.count)
        defer_start(serving->tick, 0);
}

/* ---- the file ---- */

static void serving_save(struct serving *serving)
{
    struct message msg = { .type = MSG_SERVING_ROUTES,
                           .serving_routes = { .version = serving->version, .is_whole = true } };
    struct msg_serving_service *services = aq_alloc_array(serving->services.count + 1,
                                                          sizeof(*services));
    struct aq_error err = { 0 };

    AQ_FAULT("serving.services.taken");
    msg.serving_routes.services = services;
    for (size_t i = 0; i < serving->services.count; i++) {
        const struct served *service = serving->services.entries[i].value;

        if (service->is_listed && msg.serving_routes.service_count < MSG_SERVICES_MAX)
            services[msg.serving_routes.service_count++] = *service->msg;
    }
    if (service_file_write(serving->proxy->settings->common.state, &msg, &err) < 0)
        log_limited(&serving->log, LOG_LEVEL_WARNING,
                    "cannot save the model services for a restart of the proxy: %s", err.text);
    AQ_FAULT("serving.services.written");
    free(services);
    serving->is_unsaved = false;
    serving->saved_usec = clock_monotonic_usec();
}

/* Confirmed once it is saved: a revoked token or a replica that ends must not come back by a restart. */
static void serving_on_applied(void *data)
{
    struct serving *serving = data;
    const struct message done = { .type = MSG_SERVING_DONE,
                                  .serving_done = { .version = serving->version } };

    serving_save(serving);
    serving_send_use(serving); /* of replicas that drain, before the manager waits for it */
    (void)front_send(serving->proxy->front, &done,
                     NULL); /* it sends the routes again at the next */
}

void serving_on_routes(struct serving *serving, const struct msg_serving_routes *routes)
{
    int64_t since = (clock_monotonic_usec() - serving->saved_usec) / USEC_PER_MSEC;

    serving_apply(serving, routes);
    serving->is_unsaved = true;
    defer_start(serving->applied, (unsigned)AQ_MAX(SAVE_MSEC - since, SAVE_LATER_MSEC));
}

static void serving_load(struct serving *serving)
{
    struct aq_error err = { 0 };
    struct message msg;
    int r = service_file_read(serving->proxy->settings->common.state, &msg, &err);

    if (r == -ENOENT)
        return;
    if (r < 0) {
        log_warning("model services of before the restart are not served: %s", err.text);
        return;
    }
    serving_apply(serving, &msg.serving_routes);
    message_done(&msg);
}

/* ---- the passing of time ---- */

/* True if it is gone. */
static bool served_on_tick(struct served *service, int64_t now)
{
    served_update(service, now);
    served_check_calls(service, now);
    served_serve_queue(service);
    LIST_FOREACH(it, &service->replicas)
        replica_close_idle(LIST_ENTRY(it, struct replica, link), now);
    served_drop_replicas(service);
    served_drop_tokens(service);
    for (size_t i = 0; service->of->ticks % TICKS_PER_SEC == 0 && i < service->entry_count; i++)
        replica_ask_ticket(service->entry_replicas[i], now);
    if (service->is_listed || !list_is_empty(&service->calls) || service->is_dirty)
        return false;
    served_free(service);
    return true;
}

static void serving_on_tick(void *data)
{
    struct serving *serving = data;
    int64_t now = clock_monotonic_usec();

    for (size_t i = 0; i < serving->services.count;)
        if (!served_on_tick(serving->services.entries[i].value, now))
            i++;
    serving->ticks++;
    if (serving->services.count)
        defer_start(serving->tick, TICK_MSEC);
}

/* ---- life ---- */

/* A manager that was restarted has no figures of calls that are under way. */
void serving_on_connected(struct serving *serving)
{
    for (size_t i = 0; i < serving->services.count; i++)
        served_report(serving->services.entries[i].value, false);
    serving->ticks = 0; /* tickets are asked for in the next tick */
}

static void serving_on_report(void *data)
{
    serving_send_use(data);
}

struct serving *serving_new(struct proxy *proxy)
{
    struct serving *serving = aq_alloc(sizeof(*serving));

    serving->proxy = proxy;
    serving->applied = defer_new(proxy->loop, serving_on_applied, serving);
    serving->tick = defer_new(proxy->loop, serving_on_tick, serving);
    serving->report = defer_new(proxy->loop, serving_on_report, serving);
    serving_load(serving);
    return serving;
}

void serving_free(struct serving *serving)
{
    if (!serving)
        return;
    if (serving->is_unsaved)
        serving_save(serving);
    while (serving->services.count)
        served_free(serving->services.entries[0].value);
    map_done(&serving->services);
    map_done(&serving->names);
    defer_cancel(serving->applied);
    defer_cancel(serving->tick);
    defer_cancel(serving->report);
    free(serving);
}
