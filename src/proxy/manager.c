/* SPDX-License-Identifier: Apache-2.0 */
/* manager.c - see manager.h */
#include "proxy/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proxy/port.h"
#include "proxy/route.h"

#define REDEEMS_MAX 64 /* tokens that are looked at, which anybody may send */

struct manager_ask {
    struct list link;
    struct uuid id;
    manager_redeemed_fn *redeemed; /* one of the two */
    manager_stream_fn *connected;
    const struct link_stream_ops *ops;
    void *data;
    size_t *count; /* manager.redeem_count, NULL = of a connection */
};

void manager_cancel(struct manager_ask *ask)
{
    if (ask)
        list_remove(&ask->link);
    if (ask && ask->count)
        (*ask->count)--;
    free(ask);
}

static void manager_fail_ask(struct manager_ask *ask, const struct aq_error *err)
{
    struct manager_ask done = *ask;

    manager_cancel(ask);
    if (done.redeemed)
        done.redeemed(done.data, NULL, err);
    else
        done.connected(done.data, NULL, NULL, err);
}

static struct manager_ask *manager_find_ask(struct manager *m, const struct uuid *id)
{
    LIST_FOREACH(it, &m->asks) {
        struct manager_ask *ask = LIST_ENTRY(it, struct manager_ask, link);

        if (uuid_equals(&ask->id, id))
            return ask;
    }
    return NULL;
}

/* ---- what the manager says ---- */

static void manager_take_stream(struct manager *m, const struct msg_stream_open *open)
{
    struct manager_ask *ask = manager_find_ask(m, &open->request_id);
    struct manager_ask done;
    struct link_stream *stream;
    struct aq_error err = { 0 };
    struct message no = { .type = MSG_STREAM_REFUSED,
                          .stream_refused = { .stream_id = open->stream_id,
                                              .kind = "not-found",
                                              .text = "the browser has gone" } };

    if (!ask || !ask->connected) {
        (void)front_send(m->front, &no, NULL);
        return;
    }
    if (link_client_open_stream(m->front->link, open, ask->ops, ask->data, &stream, &err) < 0) {
        manager_fail_ask(ask, &err);
        return;
    }
    done = *ask;
    manager_cancel(ask);
    done.connected(done.data, stream, NULL, NULL);
}

/* The answer to who asked, or a newer ticket of a route. */
static void manager_take_route(struct manager *m, const struct msg_app_route *route)
{
    struct proxy *p = m->front->self;
    struct manager_ask *ask = manager_find_ask(m, &route->request_id);
    struct manager_ask done;

    if (!ask || !ask->connected) {
        routes_renew(p->routes, route);
        return;
    }
    done = *ask;
    manager_cancel(ask);
    done.connected(done.data, NULL, route, NULL);
}

static void manager_take_refusal(struct manager *m, const struct msg_app_refused *refused)
{
    struct manager_ask *ask = manager_find_ask(m, &refused->request_id);
    const char *kind = refused->kind ? refused->kind : "";
    bool is_denied = strcmp(kind, "auth-failed") == 0 || strcmp(kind, "generic-forbidden") == 0
                     || strcmp(kind, "invalid-token") == 0;
    struct aq_error err = { 0 };

    (void)aq_fail(&err,
                  is_denied                            ? EACCES
                  : strcmp(kind, "session-ended") == 0 ? ESHUTDOWN
                  : strstr(kind, "not-found")          ? ENOENT
                                                       : EAGAIN,
                  "%s", refused->text ? refused->text : "the manager gave no reason");
    if (ask)
        manager_fail_ask(ask, &err);
    else if (!routes_on_denied(((struct proxy *)m->front->self)->routes, &refused->request_id,
                               err.text))
        ports_on_denied(m->front->self, &refused->request_id, err.text);
}

void manager_on_message(struct manager *m, const struct message *msg)
{
    struct manager_ask *ask = NULL, done;

    if (msg->type == MSG_STREAM_OPEN)
        manager_take_stream(m, &msg->stream_open);
    else if (msg->type == MSG_APP_REFUSED)
        manager_take_refusal(m, &msg->app_refused);
    else if (msg->type == MSG_APP_ROUTE)
        manager_take_route(m, &msg->app_route);
    else if (msg->type == MSG_APP_REDEEMED)
        ask = manager_find_ask(m, &msg->app_redeemed.request_id);
    if (ask && ask->redeemed) {
        done = *ask;
        manager_cancel(ask);
        done.redeemed(done.data, &msg->app_redeemed, NULL);
    }
}

/* What was asked it does not know any more. */
void manager_on_disconnected(struct manager *m)
{
    struct aq_error err = { 0 };

    (void)aq_fail(&err, ENOTCONN, "the manager is away; try again");
    while (!list_is_empty(&m->asks))
        manager_fail_ask(LIST_ENTRY(m->asks.next, struct manager_ask, link), &err);
}

/* ---- what is asked ---- */

static int manager_send(struct manager *m, struct manager_ask *ask, const struct message *msg,
                        struct manager_ask **ret, struct aq_error *err)
{
    int r = front_send(m->front, msg, err);

    if (r < 0)
        manager_cancel(ask);
    else
        *ret = ask;
    return r;
}

static struct manager_ask *manager_new_ask(struct manager *m, void *data)
{
    struct manager_ask *ask = aq_alloc(sizeof(*ask));

    ask->id = uuid_random();
    ask->data = data;
    list_add(&m->asks, &ask->link);
    return ask;
}

int manager_redeem(struct manager *m, const char *token, manager_redeemed_fn *fn, void *data,
                   struct manager_ask **ret, struct aq_error *err)
{
    struct message msg = { .type = MSG_APP_REDEEM, .app_redeem = { .token = token } };
    struct manager_ask *ask;

    if (m->redeem_count >= REDEEMS_MAX)
        return aq_fail(err, EAGAIN, "too many browsers come at once; try again");
    ask = manager_new_ask(m, data);
    ask->redeemed = fn;
    ask->count = &m->redeem_count;
    m->redeem_count++;
    msg.app_redeem.request_id = ask->id;
    return manager_send(m, ask, &msg, ret, err);
}

int manager_connect(struct manager *m, const struct msg_app_connect *want,
                    const struct link_stream_ops *ops, manager_stream_fn *fn, void *data,
                    struct manager_ask **ret, struct aq_error *err)
{
    struct manager_ask *ask = manager_new_ask(m, data);
    struct message msg = { .type = MSG_APP_CONNECT, .app_connect = *want };

    ask->connected = fn;
    ask->ops = ops;
    msg.app_connect.request_id = ask->id;
    return manager_send(m, ask, &msg, ret, err);
}

void manager_check(const struct manager *m, const struct msg_app_connect *want)
{
    const struct message msg = { .type = MSG_APP_CHECK, .app_connect = *want };

    (void)front_send(m->front, &msg, NULL); /* it is asked again soon */
}

/* ---- life ---- */

void manager_init(struct manager *m, struct front *front)
{
    m->front = front;
    list_init(&m->asks);
}

void manager_done(struct manager *m)
{
    while (!list_is_empty(&m->asks))
        manager_cancel(LIST_ENTRY(m->asks.next, struct manager_ask, link));
}
