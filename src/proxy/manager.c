/* SPDX-License-Identifier: Apache-2.0 */
/* manager.c - see manager.h */
#include "proxy/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"

#define REDEEMS_MAX 64 /* tokens that are looked at, which anybody may send */

struct manager {
    struct link_client *link;
    const char *url;
    struct front *front;
    manager_denied_fn *on_denied;
    void *data;
    struct list asks;
    size_t redeem_count; /* of these */
};

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
        done.connected(done.data, NULL, err);
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

static void manager_on_greet(void *data, struct msg_hello *hello)
{
    const struct manager *m = data;

    hello->addr = m->url;
}

static void manager_on_connected(void *data, const struct msg_welcome *welcome)
{
    const struct manager *m = data;

    (void)welcome;
    log_info("connected to the manager");
    front_connected(m->front);
}

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
        (void)link_client_send(m->link, &no, NULL);
        return;
    }
    if (link_client_open_stream(m->link, open, ask->ops, ask->data, &stream, &err) < 0) {
        manager_fail_ask(ask, &err);
        return;
    }
    done = *ask;
    manager_cancel(ask);
    done.connected(done.data, stream, NULL);
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
    else
        m->on_denied(m->data, &refused->request_id, err.text);
}

static void manager_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct manager *m = data;
    struct manager_ask *ask = NULL, done;

    if (msg->type == MSG_STREAM_OPEN)
        manager_take_stream(m, &msg->stream_open);
    else if (msg->type == MSG_APP_REFUSED)
        manager_take_refusal(m, &msg->app_refused);
    else if (msg->type == MSG_APP_REDEEMED)
        ask = manager_find_ask(m, &msg->app_redeemed.request_id);
    if (ask && ask->redeemed) {
        done = *ask;
        manager_cancel(ask);
        done.redeemed(done.data, &msg->app_redeemed, NULL);
    }
    if (seq)
        link_client_ack(m->link, seq);
}

/* What was asked it does not know any more. */
static void manager_on_disconnected(void *data, const char *why)
{
    struct manager *m = data;
    struct aq_error err = { 0 };

    log_info("no connection to the manager: %s", why);
    (void)aq_fail(&err, ENOTCONN, "the manager is away; try again");
    while (!list_is_empty(&m->asks))
        manager_fail_ask(LIST_ENTRY(m->asks.next, struct manager_ask, link), &err);
}

static void manager_on_refused(void *data, const char *kind, const char *text)
{
    const struct manager *m = data;

    front_refused(m->front, kind, text);
}

/* ---- what is asked ---- */

static int manager_send(struct manager *m, struct manager_ask *ask, const struct message *msg,
                        struct manager_ask **ret, struct aq_error *err)
{
    int r = link_client_is_connected(m->link)
                ? link_client_send(m->link, msg, err)
                : aq_fail(err, ENOTCONN, "the manager is away; try again");

    if (r < 0)
        manager_cancel(ask);
    else
        *ret = ask;
    return r;
}

static struct manager_ask *manager_new_ask(struct manager *m, void *data)
{
    struct manager_ask *ask = calloc(1, sizeof(*ask));

    if (!ask)
        return NULL;
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
    if (!(ask = manager_new_ask(m, data)))
        return aq_fail_oom(err);
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

    if (!ask)
        return aq_fail_oom(err);
    ask->connected = fn;
    ask->ops = ops;
    msg.app_connect.request_id = ask->id;
    return manager_send(m, ask, &msg, ret, err);
}

void manager_check(struct manager *m, const struct msg_app_connect *want)
{
    const struct message msg = { .type = MSG_APP_CHECK, .app_connect = *want };

    if (link_client_is_connected(m->link))
        (void)link_client_send(m->link, &msg, NULL); /* it is asked again soon */
}

/* ---- life ---- */

int manager_new(uv_loop_t *loop, const struct settings *settings,
                const struct link_identity *identity, struct front *front,
                manager_denied_fn *on_denied, void *data, struct manager **ret,
                struct aq_error *err)
{
    static const struct link_client_ops ops = {
        .on_greet = manager_on_greet,
        .on_connected = manager_on_connected,
        .on_message = manager_on_message,
        .on_disconnected = manager_on_disconnected,
        .on_refused = manager_on_refused,
    };
    const struct link_client_conf conf = {
        .loop = loop,
        .host = identity->manager.host,
        .port = identity->manager.port,
        .ca = identity->ca,
        .cert = identity->cert,
        .key = identity->key,
        .agent_id = identity->id,
        .incarnation = uuid_random(),
    };
    struct manager *m = calloc(1, sizeof(*m));
    int r;

    if (!m)
        return aq_fail_oom(err);
    m->url = settings->common.public_url;
    m->front = front;
    m->on_denied = on_denied;
    m->data = data;
    list_init(&m->asks);
    if ((r = link_client_new(&conf, &ops, m, &m->link, err)) < 0)
        free(m);
    else
        *ret = m;
    return r;
}

void manager_free(struct manager *m)
{
    if (!m)
        return;
    while (!list_is_empty(&m->asks))
        manager_cancel(LIST_ENTRY(m->asks.next, struct manager_ask, link));
    link_client_free(m->link);
    free(m);
}

bool manager_is_connected(const struct manager *m)
{
    return m && link_client_is_connected(m->link);
}
