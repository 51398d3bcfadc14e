/* SPDX-License-Identifier: Apache-2.0 */
/* data_server.c - proxies of other machines: TLS, a ticket, then a stream of records
 *
 * A connection has the messages of the link (link/channel.h) until a stream begins on it, and again
 * after its end, so that the next stream needs no handshake (link/link_stream.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/data/data_internal.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/channel.h"
#include "link/connection_reuse.h"
#include "link/graceful_close.h"
#include "link/link_stream.h"

#define IDLE_MAX_COUNT 1024
#define IDLE_USEC (90 * USEC_PER_SEC) /* proxies end theirs before: link/idle_pool.h */

struct data_server {
    struct data_path *path;
    struct listener *listener;
    struct tls_context *tls;
    struct connection_reuse *reuse;
    struct list callers; /* struct data_caller: without a ticket yet, the oldest first */
    struct list idle;    /* struct data_caller: have had a stream */
    size_t caller_count, idle_count;
    struct list streams; /* struct data_stream */
    size_t stream_count;
};

/* A connection that has yet to show a ticket. */
struct data_caller {
    struct list link;
    struct data_server *of;
    struct channel *channel;
    bool is_idle;
};

struct data_stream {
    struct list link;
    struct data_server *of;
    struct channel *channel;    /* until the app is connected */
    struct app_socket *opening; /* likewise */
    struct link_stream *client;
    struct stream *app;
    struct pump pump;
};

/* ---- a stream ---- */

static void data_stream_free(struct data_stream *st)
{
    list_remove(&st->link);
    st->of->stream_count--;
    app_socket_cancel(st->opening);
    channel_close(st->channel);
    link_stream_close(st->client);
    stream_close(st->app);
    pump_done(&st->pump);
    free(st);
}

static void data_stream_on_client_open(void *data, struct link_stream *stream)
{
    struct data_stream *st = data;

    (void)stream;
    (void)pump_open(&st->pump, PUMP_CLIENT); /* the app has said nothing yet */
}

static void data_stream_on_client_data(void *data, struct link_stream *stream, const char *bytes,
                                       size_t len)
{
    struct data_stream *st = data;

    (void)stream;
    st->of->path->counts.bytes_in += len;
    if (pump_give(&st->pump, PUMP_CLIENT, bytes, len) < 0)
        data_stream_free(st);
}

static void data_stream_on_client_drain(void *data, struct link_stream *stream)
{
    struct data_stream *st = data;

    (void)stream;
    pump_drained(&st->pump, PUMP_CLIENT);
}

static void data_stream_on_client_close(void *data, struct link_stream *stream,
                                        const struct aq_error *err)
{
    struct data_stream *st = data;

    (void)stream;
    st->client = NULL;
    if (!err)
        graceful_close(st->of->path->loop, AQ_TAKE(st->app));
    data_stream_free(st);
}

static const struct link_stream_ops data_stream_client_ops = {
    .on_open = data_stream_on_client_open,
    .on_data = data_stream_on_client_data,
    .on_drain = data_stream_on_client_drain,
    .on_close = data_stream_on_client_close,
};

static void data_stream_on_app_open(void *data)
{
    (void)data;
}

static void data_stream_on_app_read(void *data, const char *bytes, size_t len)
{
    struct data_stream *st = data;

    st->of->path->counts.bytes_out += len;
    if (pump_give(&st->pump, PUMP_KERNEL, bytes, len) < 0)
        data_stream_free(st);
}

/* What it said still goes out: link_stream_close() sends what is queued. */
static void data_stream_on_app_end(void *data, const struct aq_error *err)
{
    (void)err;
    data_stream_free(data);
}

static void data_stream_on_app_drain(void *data)
{
    struct data_stream *st = data;

    pump_drained(&st->pump, PUMP_KERNEL);
}

static const struct stream_ops data_stream_app_ops = {
    .on_open = data_stream_on_app_open,
    .on_read = data_stream_on_app_read,
    .on_end = data_stream_on_app_end,
    .on_drain = data_stream_on_app_drain,
    .hears_out = true,
};

static void data_stream_refuse(struct data_stream *st, const struct aq_error *err)
{
    const struct message no = data_refusal(err);

    st->of->path->counts.refused++;
    log_debug("data: a proxy is refused: %s", err->text);
    (void)channel_send(st->channel, &no, NULL);
    data_stream_free(st);
}

static void data_stream_on_connected(void *data, int fd, const struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int app = fd;
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    const struct message yes = { .type = MSG_DATA_OPENED };
    struct data_stream *st = data;
    struct uuid id = uuid_random();
    struct aq_error why = { 0 };
    struct stream *connection;

    st->opening = NULL;
    if (err) {
        data_stream_refuse(st, err);
        return;
    }
    if (stream_adopt(st->of->path->loop, app, &data_stream_app_ops, st, &st->app, &why) < 0) {
        data_stream_refuse(st, &why);
        return;
    }
    (void)AQ_TAKE_FD(app);
    AQ_FAULT("agent.data.streamed");
    if (channel_send(st->channel, &yes, NULL) < 0) {
        data_stream_free(st);
        return;
    }
    st->of->path->counts.opened++;
    connection = channel_release(AQ_TAKE(st->channel), &rest);
    st->client = link_stream_new(st->of->path->loop, &id, &data_stream_client_ops, st);
    pump_join(&st->pump, PUMP_CLIENT, &link_stream_pump, st->client);
    pump_join(&st->pump, PUMP_KERNEL, &stream_pump, st->app);
    (void)pump_open(&st->pump, PUMP_KERNEL);
    link_stream_attach(st->client, connection, &rest, st->of->reuse);
}

/* ---- before a stream ---- */

static struct channel *data_caller_remove(struct data_caller *caller)
{
    struct channel *channel = caller->channel;

    list_remove(&caller->link);
    if (caller->is_idle)
        caller->of->idle_count--;
    else
        caller->of->caller_count--;
    free(caller);
    return channel;
}

static void data_caller_on_waiting(void *data, uint64_t seq, const struct message *msg)
{
    (void)seq;
    (void)msg;
    data_stream_free(data); /* nothing may be said before the answer */
}

static void data_caller_on_gone(void *data, const char *why)
{
    (void)why;
    data_stream_free(data);
}

static const struct channel_ops data_opening_ops = { .on_message = data_caller_on_waiting,
                                                     .on_end = data_caller_on_gone };

static void data_caller_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct data_caller *caller = data;
    struct data_server *s = caller->of;
    struct data_stream *st = aq_alloc(sizeof(*st));
    struct tls_peer peer = { .common_name = "" };
    struct aq_error err = { 0 };
    int r = 0;

    (void)seq;
    *st = (struct data_stream){ .of = s, .channel = data_caller_remove(caller) };
    pump_init(&st->pump);
    list_add(&s->streams, &st->link);
    s->stream_count++;
    channel_set_ops(st->channel, &data_opening_ops, st);
    if (msg->type != MSG_DATA_OPEN)
        r = aq_fail_kind(&err, EPROTO, "bad-ticket", "a connection begins with data.open");
    else if (s->stream_count > DATA_STREAMS_MAX)
        r = aq_fail_kind(&err, EAGAIN, "too-many",
                         "this agent has %d connections, as many as it "
                         "passes on",
                         DATA_STREAMS_MAX);
    else if (!channel_get_peer(st->channel, &peer))
        r = aq_fail_kind(&err, EACCES, "other-proxy", "no certificate");
    if (r == 0)
        r = data_connect(s->path, msg->data_open.ticket, peer.common_name, data_stream_on_connected,
                         st, &st->opening, &err);
    if (r < 0)
        data_stream_refuse(st, &err);
}

static void data_caller_on_end(void *data, const char *why)
{
    log_debug("data: a connection ended before its ticket: %s", why);
    channel_close(data_caller_remove(data));
}

static const struct channel_ops data_caller_ops = { .on_message = data_caller_on_message,
                                                    .on_end = data_caller_on_end };

static void data_server_call(struct data_server *s, struct stream *stream, bool is_idle)
{
    struct data_caller *caller = aq_alloc(sizeof(*caller));

    *caller = (struct data_caller){ .of = s, .is_idle = is_idle };
    caller->channel = channel_new(s->path->loop, stream, &data_caller_ops, caller);
    channel_set_patience(caller->channel, is_idle ? IDLE_USEC : DATA_GUEST_MSEC * USEC_PER_MSEC);
    list_add(is_idle ? &s->idle : &s->callers, &caller->link);
    if (is_idle)
        s->idle_count++;
    else
        s->caller_count++;
}

static void data_server_on_reusable(void *owner, struct stream *connection)
{
    struct data_server *s = owner;

    if (s->idle_count >= IDLE_MAX_COUNT) {
        stream_close(connection);
        return;
    }
    stream_resume(connection);
    data_server_call(s, connection, true);
}

static void data_server_on_unknown_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void data_server_on_unknown_end(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
}

static void data_server_on_connection(struct listener *listener, void *data)
{
    static const struct stream_ops unknown_ops = { .on_read = data_server_on_unknown_read,
                                                   .on_end = data_server_on_unknown_end };
    struct data_server *s = data;
    struct aq_error err = { 0 };
    struct stream *stream;

    if (listener_accept(listener, &unknown_ops, NULL, &stream, &err) < 0) {
        log_limited(&s->path->log, LOG_LEVEL_WARNING, "data: accept: %s", err.text);
        return;
    }
    if (s->caller_count >= DATA_GUESTS_MAX)
        channel_close(data_caller_remove(LIST_ENTRY(s->callers.next, struct data_caller, link)));
    data_server_call(s, stream, false);
}

/* ---- life ---- */

static int data_server_listen(struct data_server *s, const struct data_conf *conf,
                              struct aq_error *err)
{
    uint16_t first = conf->port ? conf->port : DATA_PORT;
    unsigned count = conf->port ? 1 : DATA_PORTS;
    char address[HOST_PORT_MAX];
    int r = -EADDRINUSE;

    for (unsigned i = 0; i < count && r == -EADDRINUSE; i++) {
        const struct listener_options options = {
            .address = host_port_write(conf->host, (uint16_t)(first + i), address), .tls = s->tls
        };

        r = listener_new(s->path->loop, &options, data_server_on_connection, s, &s->listener, err);
    }
    return r;
}

int data_server_new(struct data_path *path, const struct data_conf *conf, struct data_server **ret,
                    struct aq_error *err)
{
    const struct tls_options options = { .is_server = true,
                                         .cert_pem = conf->cert,
                                         .key_pem = conf->key,
                                         .ca_pem = conf->ca,
                                         .require_peer_cert = true,
                                         .tls13_only = true };
    struct data_server *s = aq_alloc(sizeof(*s));
    int r;

    *s = (struct data_server){ .path = path };
    list_init(&s->callers);
    list_init(&s->idle);
    list_init(&s->streams);
    s->reuse = connection_reuse_new(data_server_on_reusable, s);
    r = tls_context_new(&options, &s->tls, err);
    if (r == 0)
        r = data_server_listen(s, conf, err);
    if (r < 0) {
        data_server_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

uint16_t data_server_get_port(const struct data_server *server)
{
    return listener_get_port(server->listener);
}

size_t data_server_count(const struct data_server *server)
{
    return server->stream_count;
}

static void data_server_end_callers(struct list *callers)
{
    while (!list_is_empty(callers))
        channel_close(data_caller_remove(LIST_ENTRY(callers->next, struct data_caller, link)));
}

void data_server_free(struct data_server *s)
{
    if (!s)
        return;
    listener_close(s->listener);
    connection_reuse_end(s->reuse);
    data_server_end_callers(&s->callers);
    data_server_end_callers(&s->idle);
    while (!list_is_empty(&s->streams))
        data_stream_free(LIST_ENTRY(s->streams.next, struct data_stream, link));
    tls_context_free(s->tls);
    free(s);
}
