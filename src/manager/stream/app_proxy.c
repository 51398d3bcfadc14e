/* SPDX-License-Identifier: Apache-2.0 */
/* See app_proxy.h. */
#include "manager/stream/app_proxy.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/stream/app_connection.h"
#include "manager/stream/app_start.h"
#include "manager/stream/app_ticket.h"
#include "manager/stream/replica_app.h"
#include "manager/session/session.h"
#include "manager/call/streams.h"
#include "model/session_feature.h"
#include "store/app_token.h"

struct app_proxy {
    struct api *api;
    struct list streams; /* struct app_stream */
    struct list starts;  /* struct app_start: of apps that proxies then reach themselves */
    struct app_tickets *tickets;
};

struct app_stream {
    struct list link;
    struct app_proxy *of;
    char proxy[AGENT_ID_MAX + 1];
    struct uuid request_id, kernel_id;
    struct app_connection *app;
    struct link_stream *to; /* the proxy; NULL before the app listens */
    struct pump pump;
    struct api_stream right;
};

static void app_proxy_refuse(const struct app_proxy *of, const char *proxy,
                             const struct uuid *request_id, const struct aq_error *err)
{
    const char *fallback = err->code == EHOSTDOWN ? "database-away" : "service-unavailable";
    struct message msg = { .type = MSG_APP_REFUSED,
                           .app_refused = { .request_id = *request_id,
                                            .kind = err->kind ? err->kind : fallback,
                                            .text = err->text } };

    (void)core_send_front(of->api->core, proxy, &msg, NULL);
}

/* ---- who may ---- */

static bool app_proxy_is_administrator(const struct user *user, const struct session *session)
{
    const struct principal who = { .role = user->role, .domain = user->domain };

    return principal_sees_domain(&who, session->domain);
}

/* For good: an app that comes again and again need not. */
static int app_proxy_say_ended(struct aq_error *err)
{
    return aq_fail_kind(err, ENOENT, "session-ended", "the session has ended");
}

struct uuid app_proxy_target(const struct kernel *kernel)
{
    return kernel == session_find_kernel(kernel->session, NULL, NULL) ? kernel->session->id
                                                                      : kernel->id;
}

const struct kernel *app_proxy_find_kernel(const struct api *api, const struct uuid *id,
                                           const char *app, const char *access_key,
                                           struct aq_error *err)
{
    const struct core *core = api->core;
    const struct session *target = core_find_session(core, id);
    const struct kernel *kernel = target ? session_find_kernel(target, NULL, NULL)
                                         : core_find_kernel(core, id);
    const struct session *session = kernel ? kernel->session : NULL;
    const char *why = api_stream_why_not(core, access_key);
    const struct keypair *key = core_find_keypair(core, access_key);
    const struct user *user = key ? core_find_user(core, &key->user_id) : NULL;
    bool is_ssh = strcmp(app, "sshd") == 0;

    if (!session)
        (void)app_proxy_say_ended(err);
    else if (why || !user)
        (void)aq_fail_kind(err, EACCES, "auth-failed", "%s", why ? why : "the user was removed");
    else if (!uuid_equals(&session->user_id, &user->id)
             && !app_proxy_is_administrator(user, session))
        (void)aq_fail_kind(err, EACCES, "generic-forbidden", "the session is somebody else's");
    else if (apps_check_name(app, err) == 0
             && session_feature_check(session->type, is_ssh ? SESSION_SSH : SESSION_APPS, err) == 0)
        return kernel;
    return NULL;
}

/* Of app.connect and app.check. *ret_port is that of an app that is only connected to; 0 = it is
 * started, and says then.
 */
static const struct kernel *app_proxy_find_wanted(const struct app_proxy *of,
                                                  const struct msg_app_connect *want,
                                                  uint16_t *ret_port, struct aq_error *err)
{
    const struct kernel *kernel;

    if (!uuid_is_nil(&want->service_id))
        return replica_app_find(of->api->core, &want->session_id, &want->service_id,
                                want->access_key, ret_port, err);
    kernel = app_proxy_find_kernel(of->api, &want->session_id, want->app, want->access_key, err);
    *ret_port = kernel ? apps_find_port(kernel, want->app, 0) : 0;
    return kernel;
}

/* ---- a stream ---- */

static void app_stream_free(struct app_stream *st)
{
    list_remove(&st->link);
    api_stream_close(&st->right);
    app_connection_free(st->app);
    link_stream_close(st->to);
    pump_done(&st->pump);
    free(st);
}

static void app_stream_refuse(void *data, const struct aq_error *err)
{
    struct app_stream *st = data;

    if (!st->to)
        app_proxy_refuse(st->of, st->proxy, &st->request_id, err);
    app_stream_free(st);
}

static void app_stream_on_open(void *data, struct link_stream *stream)
{
    struct app_stream *st = data;

    (void)stream;
    if (pump_open(&st->pump, PUMP_CLIENT) < 0)
        app_stream_free(st);
}

static void app_stream_on_data(void *data, struct link_stream *stream, const char *bytes,
                               size_t len)
{
    struct app_stream *st = data;
    int r = app_connection_give(st->app, bytes, len);

    (void)stream;
    if (r < 0 && r != -EPIPE) /* of its end it is told */
        app_stream_free(st);
}

static void app_stream_on_drain(void *data, struct link_stream *stream)
{
    struct app_stream *st = data;

    (void)stream;
    pump_drained(&st->pump, PUMP_CLIENT);
}

static void app_stream_on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct app_stream *st = data;

    (void)stream;
    (void)err;
    st->to = NULL;
    app_stream_free(st);
}

static const struct link_stream_ops app_stream_link_ops = {
    .on_open = app_stream_on_open,
    .on_data = app_stream_on_data,
    .on_drain = app_stream_on_drain,
    .on_close = app_stream_on_close,
};

/* The app listens: the proxy is asked to fetch its bytes. */
static int app_stream_offer(struct app_stream *st, struct aq_error *err)
{
    struct msg_stream_open open = { .kind = "app",
                                    .request_id = st->request_id,
                                    .kernel_id = st->kernel_id };
    int r = core_open_front_stream(st->of->api->core, st->proxy, &open, &app_stream_link_ops, st,
                                   &st->to, err);

    if (r == 0)
        pump_join(&st->pump, PUMP_CLIENT, &link_stream_pump, st->to);
    return r;
}

static bool app_stream_on_ready(void *data)
{
    struct app_stream *st = data;
    struct aq_error err = { 0 };

    if (app_stream_offer(st, &err) == 0)
        return true;
    app_stream_refuse(st, &err);
    return false;
}

static void app_stream_on_bytes(void *data, const char *bytes, size_t len)
{
    struct app_stream *st = data;

    if (pump_give(&st->pump, PUMP_KERNEL, bytes, len) < 0)
        app_stream_free(st);
}

/* Before the proxy has connected it hears the reason, if there is one. */
static void app_stream_on_closed(void *data, bool is_unheard, const char *text)
{
    struct app_stream *st = data;
    struct aq_error err = { 0 };

    if (is_unheard && !st->pump.ends[PUMP_CLIENT].is_open) {
        (void)aq_fail_kind(&err, EAGAIN, "app-failed", "%s", text);
        app_proxy_refuse(st->of, st->proxy, &st->request_id, &err);
    }
    app_stream_free(st);
}

static const struct app_connection_ops app_stream_app_ops = {
    .on_ready = app_stream_on_ready,
    .on_bytes = app_stream_on_bytes,
    .on_refused = app_stream_refuse,
    .on_closed = app_stream_on_closed,
};

static int app_stream_open(struct app_proxy *of, struct app_stream *st, const struct kernel *kernel,
                           const struct msg_app_connect *want, uint16_t port, struct aq_error *err)
{
    const struct app_params params = { .app = want->app,
                                       .is_serving = !uuid_is_nil(&want->service_id) };
    int r = 0;

    if (kernel->session->status == SESSION_TERMINATING)
        return app_proxy_say_ended(err);
    st->kernel_id = kernel->id;
    if (!params.is_serving) /* of a replica the right is the service's, not a user's */
        api_stream_open(of->api, want->access_key, &st->right, app_stream_refuse, st);
    r = app_connection_open(of->api->core, kernel, &params, port, &st->pump, &app_stream_app_ops,
                            st, &st->app, err);
    return r == 0 && port ? app_stream_offer(st, err) : r;
}

/* The app listens on this port, as far as its container says. */
static void app_proxy_on_started(void *data, const char *proxy, const struct msg_app_connect *want,
                                 uint16_t port, const struct aq_error *why)
{
    struct app_proxy *of = data;
    struct aq_error err = { 0 };
    const struct kernel *kernel = why ? NULL
                                      : app_proxy_find_kernel(of->api, &want->session_id, want->app,
                                                              want->access_key, &err);

    if (why || !kernel || app_tickets_give(of->tickets, proxy, kernel, want, port, &err) < 0)
        app_proxy_refuse(of, proxy, &want->request_id, why ? why : &err);
}

/* -ESHUTDOWN and the like are of the app; without a ticket the bytes pass the manager. */
static int app_proxy_direct(struct app_proxy *of, const char *proxy, const struct kernel *kernel,
                            const struct msg_app_connect *want, uint16_t port, struct aq_error *err)
{
    if (kernel->session->status == SESSION_TERMINATING)
        return app_proxy_say_ended(err);
    return port ? app_tickets_give(of->tickets, proxy, kernel, want, port, err)
                : app_start(&of->starts, of->api, proxy, kernel, want, app_proxy_on_started, of,
                            err);
}

static int app_proxy_relay(struct app_proxy *of, const char *proxy, const struct kernel *kernel,
                           const struct msg_app_connect *want, uint16_t port, struct aq_error *err)
{
    struct app_stream *st = aq_alloc(sizeof(*st));
    int r;

    st->of = of;
    st->request_id = want->request_id;
    (void)snprintf(st->proxy, sizeof(st->proxy), "%s", proxy);
    pump_init(&st->pump);
    list_add(&of->streams, &st->link);
    r = app_stream_open(of, st, kernel, want, port, err);
    if (r < 0)
        app_stream_free(st);
    return r;
}

static void app_proxy_connect(struct app_proxy *of, const char *proxy,
                              const struct msg_app_connect *want)
{
    struct aq_error err = { 0 };
    uint16_t port;
    const struct kernel *kernel = app_proxy_find_wanted(of, want, &port, &err);
    int r = -EACCES;

    if (kernel && want->direct && app_tickets_are_for(of->tickets, kernel))
        r = app_proxy_direct(of, proxy, kernel, want, port, &err);
    else if (kernel)
        r = app_proxy_relay(of, proxy, kernel, want, port, &err);
    if (r < 0)
        app_proxy_refuse(of, proxy, &want->request_id, &err);
}

static void app_proxy_check(struct app_proxy *of, const char *proxy,
                            const struct msg_app_connect *want)
{
    struct aq_error err = { 0 };
    uint16_t port;
    const struct kernel *kernel = app_proxy_find_wanted(of, want, &port, &err);

    if (!kernel)
        app_proxy_refuse(of, proxy, &want->request_id, &err);
    else if (want->watch)
        app_tickets_keep(of->tickets, proxy, kernel, want);
}

/* ---- tokens ---- */

struct app_token_work {
    struct app_proxy *of;
    char text[APP_TOKEN_TEXT_MAX];
    unsigned char hash[APP_TOKEN_HASH_SIZE];
    struct app_token token;
    int64_t now_usec;
    app_token_fn *done; /* of one that is made */
    void *data;
    char proxy[AGENT_ID_MAX + 1]; /* of one that is redeemed */
    struct uuid request_id;
};

static void app_token_hash(struct app_token_work *work)
{
    unsigned len = 0;

    (void)EVP_Digest(work->text, strlen(work->text), work->hash, &len, EVP_sha256(), NULL);
    work->now_usec = clock_realtime_usec();
}

static int app_token_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct app_token_work *work = data;

    return app_token_create(tx, work->hash, &work->token, work->now_usec, err);
}

static void app_token_on_written(void *data, int r, const struct aq_error *err)
{
    struct app_token_work *work = data;

    work->done(work->data, r, err, r < 0 ? NULL : work->text);
    free(work);
}

void app_proxy_make_token(struct api *api, const struct uuid *target, const char *app,
                          const char *access_key, app_token_fn *done, void *data)
{
    struct app_token_work *work = aq_alloc(sizeof(*work));

    for (size_t i = 0; i < 2; i++) {
        struct uuid random = uuid_random();

        for (size_t k = 0; k < sizeof(random.bytes); k++)
            (void)snprintf(work->text + 32 * i + 2 * k, 3, "%02x", random.bytes[k]);
    }
    app_token_hash(work);
    work->token.session_id = *target;
    work->token.expires_usec = work->now_usec + APP_TOKEN_USEC;
    (void)snprintf(work->token.app, sizeof(work->token.app), "%s", app);
    (void)snprintf(work->token.access_key, sizeof(work->token.access_key), "%s", access_key);
    work->done = done;
    work->data = data;
    store_write(core_store(api->core), app_token_write, app_token_on_written, work);
}

/* 'r' as the store found it: 0 if there is none that is good. */
static int app_token_admit(int r, struct aq_error *err)
{
    return r == 0 ? aq_fail_kind(err, EACCES, "invalid-token",
                                 "the token is unknown, used or expired: open the app again")
                  : AQ_MIN(r, 0);
}

static int app_token_take(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct app_token_work *work = data;

    return app_token_admit(app_token_use(tx, work->hash, work->now_usec, &work->token, err), err);
}

static void app_token_on_taken(void *data, int r, const struct aq_error *err)
{
    struct app_token_work *work = data;
    const struct app_token *token = &work->token;
    struct aq_error why = r < 0 ? *err : (struct aq_error){ 0 };
    struct message msg = { .type = MSG_APP_REDEEMED,
                           .app_redeemed = { .request_id = work->request_id,
                                             .session_id = token->session_id,
                                             .app = token->app,
                                             .access_key = token->access_key } };

    if (r < 0
        || !app_proxy_find_kernel(work->of->api, &token->session_id, token->app, token->access_key,
                                  &why))
        app_proxy_refuse(work->of, work->proxy, &work->request_id, &why);
    else
        (void)core_send_front(work->of->api->core, work->proxy, &msg, NULL);
    free(work);
}

static int app_token_look(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct app_token_work *work = data;

    return app_token_admit(app_token_find(tx, work->hash, work->now_usec, &work->token, err), err);
}

/* Anybody may send a token: only one that is good has the thread that writes. */
static void app_token_on_looked(void *data, int r, const struct aq_error *err)
{
    struct app_token_work *work = data;

    if (r == 0) {
        store_write(core_store(work->of->api->core), app_token_take, app_token_on_taken, work);
        return;
    }
    app_proxy_refuse(work->of, work->proxy, &work->request_id, err);
    free(work);
}

static void app_proxy_redeem(struct app_proxy *of, const char *proxy,
                             const struct msg_app_redeem *want)
{
    struct app_token_work *work = aq_alloc(sizeof(*work));

    work->of = of;
    work->request_id = want->request_id;
    (void)snprintf(work->proxy, sizeof(work->proxy), "%s", proxy);
    (void)snprintf(work->text, sizeof(work->text), "%s", want->token);
    app_token_hash(work);
    store_read(core_store(of->api->core), app_token_look, app_token_on_looked, work);
}

/* ---- life ---- */

static void app_proxy_on_message(void *data, const char *proxy, const struct message *msg)
{
    if (msg->type == MSG_APP_CONNECT)
        app_proxy_connect(data, proxy, &msg->app_connect);
    else if (msg->type == MSG_APP_CHECK)
        app_proxy_check(data, proxy, &msg->app_connect);
    else if (msg->type == MSG_APP_USE)
        app_tickets_count(((struct app_proxy *)data)->tickets, proxy, &msg->app_use);
    else
        app_proxy_redeem(data, proxy, &msg->app_redeem);
}

static void app_proxy_on_lost(void *data, const char *proxy)
{
    struct app_proxy *of = data;

    app_starts_cancel(&of->starts, proxy);
    app_tickets_lose(of->tickets, proxy);
}

struct app_proxy *app_proxy_new(struct api *api)
{
    static const struct core_front_ops ops = { .on_message = app_proxy_on_message,
                                               .on_lost = app_proxy_on_lost };
    struct app_proxy *of = aq_alloc(sizeof(*of));

    of->api = api;
    list_init(&of->streams);
    list_init(&of->starts);
    of->tickets = app_tickets_new(api);
    core_set_front_ops(api->core, FRONT_PROXY, &ops, of);
    return of;
}

void app_proxy_set_ticket_lifetime(struct app_proxy *of, int64_t usec)
{
    app_tickets_set_lifetime(of->tickets, usec);
}

void app_proxy_stop(struct app_proxy *of)
{
    core_set_front_ops(of->api->core, FRONT_PROXY, NULL, NULL);
    app_starts_cancel(&of->starts, NULL);
    app_tickets_free(AQ_TAKE(of->tickets));
    while (!list_is_empty(&of->streams))
        app_stream_free(LIST_ENTRY(of->streams.next, struct app_stream, link));
}

void app_proxy_free(struct app_proxy *of)
{
    if (of)
        app_proxy_stop(of);
    free(of);
}
