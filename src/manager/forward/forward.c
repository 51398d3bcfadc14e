/* SPDX-License-Identifier: Apache-2.0 */
/* The leader, and the requests that wait for one. */
#include "manager/forward/forward.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/client_share.h"
#include "http/router.h"
#include "manager/forward/forward_internal.h"

#define HOLD_MSEC 30000
#define HOLD_MAX 2000
#define TICK_MSEC 100
#define PROBES 16            /* requests sent at each tick to a leader that was not reached */
#define CONNECT_MSEC 3000    /* to the leader, on the network between managers */
#define CONNECTING_MAX 32    /* concurrent handshakes with the leader */
#define OLD_ANSWER_MSEC 5000 /* for a former leader to finish answers that it began */

/* ---- clients ---- */

void forward_name_client(const struct forward *f, const struct request *req,
                         char ret[CLIENT_ADDRESS_MAX])
{
    char address[CLIENT_ADDRESS_MAX];

    client_address_find(request_get_address(req), request_get_head(req), &f->options.proxies,
                        address);
    client_address_network(address, ret);
}

static int forward_guard(struct request *req, const struct route *route, void *data,
                         struct aq_error *err)
{
    char name[CLIENT_ADDRESS_MAX];
    int r;

    (void)route;
    forward_name_client(data, req, name);
    r = request_set_client(req, name, err);
    if (r == -EAGAIN)
        request_add_header_int(req, "Retry-After", 1);
    return r;
}

static bool forward_name_peer(const char *address, char ret[SERVER_PEER_MAX], void *data)
{
    const struct forward *f = data;

    return client_address_name_peer(address, &f->options.proxies, ret);
}

/* ---- requests that wait ---- */

static void forward_on_tick(void *data);

static void forward_start_tick(struct forward *f, unsigned msec)
{
    if (!f->tick && f->waiting_count)
        f->tick = defer_call(f->options.loop, msec, forward_on_tick, f);
}

void forward_hold(struct forwarded *fw)
{
    struct forward *f = fw->forward;
    char name[CLIENT_ADDRESS_MAX];

    forward_name_client(f, fw->req, name);
    fw->share = client_share_get(&f->shares, name);
    fw->share->connections++;
    f->waiting_count++;
    if (f->waiting_count > f->options.hold_max
        || client_share_is_used_up(fw->share, f->waiting_count, f->options.hold_max)) {
        forwarded_refuse(fw);
        return;
    }
    list_remove(&fw->link);
    list_add(&f->waiting, &fw->link);
    if (!fw->deadline)
        fw->deadline = uv_now(f->options.loop) + f->options.hold_msec;
    forward_start_tick(f, TICK_MSEC);
}

void forward_leave(struct forwarded *fw)
{
    if (!fw->share)
        return;
    client_share_leave(&fw->forward->shares, AQ_TAKE(fw->share));
    fw->forward->waiting_count--;
}

/* Unsent requests are collected from the end of the list: those that wait for a connection to be
 * opened come after the one that opens it.
 */
void forward_note_failure(struct forward *f, bool is_sent)
{
    struct list *before;

    f->is_reached = false;
    for (struct list *it = f->sent.prev; !is_sent && it != &f->sent; it = before) {
        struct forwarded *fw = LIST_ENTRY(it, struct forwarded, link);

        before = it->prev;
        if (fw->exchange && !exchange_is_sent(fw->exchange))
            forwarded_leave_leader(fw);
    }
}

/* Send the requests that the leader may get, and refuse those past their deadline. A leader that
 * was not reached gets a few per tick, until one arrives.
 */
static void forward_on_tick(void *data)
{
    struct forward *f = data;
    uint64_t now = uv_now(f->options.loop);
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;
    unsigned left = PROBES;

    f->tick = NULL;
    list_cursor_begin(&cursor, &f->waiting);
    while ((it = list_cursor_next(&cursor))) {
        struct forwarded *fw = LIST_ENTRY(it, struct forwarded, link);

        if (forwarded_may_be_sent(fw) && (f->is_reached || left)) {
            left -= left > 0;
            forwarded_send(fw);
        } else if (now >= fw->deadline) {
            forwarded_refuse(fw);
        }
    }
    forward_start_tick(f, TICK_MSEC);
}

/* ---- leaders ---- */

static void forward_on_old_over(void *data)
{
    struct forward *f = data;
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    f->old = NULL;
    list_cursor_begin(&cursor, &f->sent);
    while ((it = list_cursor_next(&cursor))) {
        struct forwarded *fw = LIST_ENTRY(it, struct forwarded, link);

        if (f->is_released || fw->place != f->place)
            forwarded_cut(fw);
    }
}

/* Take requests back from a leader that is not the present one. */
static void forward_leave_old(struct forward *f)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    list_cursor_begin(&cursor, &f->sent);
    while ((it = list_cursor_next(&cursor))) {
        struct forwarded *fw = LIST_ENTRY(it, struct forwarded, link);

        if (f->is_released || fw->place != f->place)
            forwarded_leave_leader(fw);
    }
    if (!f->old && !list_is_empty(&f->sent))
        f->old = defer_call(f->options.loop, OLD_ANSWER_MSEC, forward_on_old_over, f);
}

void forward_set_leader(struct forward *f, const char *link)
{
    bool is_same = link && strcmp(link, f->leader) == 0;

    f->is_released = false;
    if (link ? f->has_leader && is_same : !f->has_leader)
        return;
    f->has_leader = link != NULL;
    if (!link)
        return;
    f->turn++;
    f->is_reached = true;
    if (!is_same) {
        f->place++;
        (void)snprintf(f->leader, sizeof(f->leader), "%s", link);
        forward_leave_old(f);
    }
    defer_cancel(AQ_TAKE(f->tick));
    forward_start_tick(f, 0);
}

void forward_release(struct forward *f)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    f->is_released = true;
    f->has_leader = false;
    list_cursor_begin(&cursor, &f->waiting);
    while ((it = list_cursor_next(&cursor)))
        forwarded_reroute(LIST_ENTRY(it, struct forwarded, link));
    forward_leave_old(f);
}

/* ---- life ---- */

static const struct route forward_route = {
    .path = "/",
    .handler = forwarded_start,
    .doc = "Pass the request on to the manager that leads",
    .flags = ROUTE_STREAM_BODY,
    .body_max = UINT64_MAX,
};

struct forward *forward_new(const struct forward_options *options)
{
    struct forward *f = aq_alloc(sizeof(*f));
    const struct client_options client = { .tls = options->tls,
                                           .connect_msec = CONNECT_MSEC,
                                           .connections_max = UINT32_MAX, /* the server's limit */
                                           .connecting_max = CONNECTING_MAX };

    f->options = *options;
    if (!options->router)
        f->options.router = f->own_router = router_new();
    if (!options->hold_msec)
        f->options.hold_msec = HOLD_MSEC;
    if (!options->hold_max)
        f->options.hold_max = HOLD_MAX;
    f->client = client_new(options->loop, &client);
    f->shares = (struct map)MAP_INIT;
    list_init(&f->waiting);
    list_init(&f->sent);
    router_set_fallback(f->options.router, &forward_route, f);
    f->app = (struct server_app){ .router = f->options.router,
                                  .guard = forward_guard,
                                  .name_peer = forward_name_peer,
                                  .guard_data = f };
    return f;
}

const struct server_app *forward_get_app(const struct forward *f)
{
    return &f->app;
}

void forward_free(struct forward *f)
{
    if (!f)
        return;
    while (!list_is_empty(&f->waiting))
        forwarded_cut(LIST_ENTRY(f->waiting.next, struct forwarded, link));
    while (!list_is_empty(&f->sent))
        forwarded_cut(LIST_ENTRY(f->sent.next, struct forwarded, link));
    defer_cancel(f->tick);
    defer_cancel(f->old);
    client_free(f->client);
    router_free(f->own_router);
    map_done(&f->shares);
    free(f);
}
