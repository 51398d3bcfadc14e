/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the agent's end: the control connection, its retries, and its streams */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/tls.h"
#include "link/channel.h"
#include "link/idle_pool.h"
#include "link/link.h"
#include "link/link_stream.h"

#define RETRY_MIN_USEC (200 * USEC_PER_MSEC)
#define RETRY_MAX_USEC (10 * USEC_PER_SEC)

struct link_client {
    struct link_client_conf conf; /* host and agent_id owned; PEM texts not kept */
    char *host, *agent_id;
    const struct link_client_ops *ops;
    void *data;
    struct tls_context *tls;
    struct channel *channel; /* NULL between tries */
    bool is_connected;       /* welcomed */
    bool is_stopped;         /* refused for good */
    uv_timer_t timer;        /* until the next try */
    int64_t retry_usec;
    struct link_peer peer;
    struct uuid manager; /* incarnation that the counters are about */
    struct list streams; /* struct client_stream: not yet connected */
    struct idle_pool idle;
    struct connection_reuse *reuse; /* adds to it */
};

static void client_connect(struct link_client *client);

static void client_on_timer(uv_timer_t *timer)
{
    client_connect(timer->data);
}

/* Between half and the whole of the interval, so that a thousand agents do
 * not come back at once; the interval doubles each time.
 */
static void client_schedule(struct link_client *client)
{
    struct uuid random = uuid_random();
    int64_t half = client->retry_usec / 2;
    int64_t wait = half + (int64_t)(random.bytes[0] * 256 + random.bytes[1]) * half / 65536;

    client->retry_usec = AQ_MIN(client->retry_usec * 2, client->conf.retry_max_usec);
    (void)uv_timer_start(&client->timer, client_on_timer, (uint64_t)(wait / USEC_PER_MSEC), 0);
}

/* Connections to a manager that is perhaps another one now are of no use. */
static void client_disconnect(struct link_client *client)
{
    channel_close(AQ_TAKE(client->channel));
    client->is_connected = false;
    idle_pool_clear(&client->idle);
}

static void client_lose(struct link_client *client, const char *why)
{
    client_disconnect(client);
    client_schedule(client);
    if (client->ops->on_disconnected)
        client->ops->on_disconnected(client->data, why);
}

static void client_give_up(struct link_client *client, const char *kind, const char *text)
{
    client_disconnect(client);
    client->is_stopped = true;
    client->ops->on_refused(client->data, kind, text ? text : "the manager gave no reason");
}

static void client_on_refused(struct link_client *client, const struct msg_refused *refused)
{
    char why[sizeof(((struct aq_error *)NULL)->text)];

    if (refused->retry_usec == 0) {
        client_give_up(client, refused->kind ? refused->kind : "refused", refused->text);
        return;
    }
    (void)snprintf(why, sizeof(why), "the manager refused for now: %s",
                   refused->text ? refused->text : "no reason given");
    client->retry_usec = AQ_MAX(refused->retry_usec, client->conf.retry_min_usec);
    client_lose(client, why);
}

static void client_on_welcome(struct link_client *client, const struct msg_welcome *welcome)
{
    bool is_bad = false;

    if (!welcome->is_resumed)
        peer_restart(&client->peer);
    else
        is_bad = peer_acknowledge(&client->peer, (uint64_t)welcome->received_seq) < 0;
    if (is_bad || welcome->protocol < LINK_PROTOCOL_MIN || welcome->protocol > LINK_PROTOCOL_MAX) {
        client_lose(client, "the manager's welcome makes no sense");
        return;
    }
    client->manager = welcome->incarnation;
    client->is_connected = true;
    client->retry_usec = client->conf.retry_min_usec;
    AQ_FAULT("link.welcome.received");
    channel_bind(client->channel, &client->peer, client->conf.ping_usec, client->conf.dead_usec);
    channel_flush(client->channel);
    if (client->ops->on_connected)
        client->ops->on_connected(client->data, welcome);
}

static void client_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct link_client *client = data;

    switch (msg->type) {
    case MSG_FENCED:
        client_give_up(client, "fenced", msg->fenced.text);
        break;
    case MSG_REFUSED:
        client_on_refused(client, &msg->refused);
        break;
    case MSG_BYE:
        client_lose(client, msg->bye.text ? msg->bye.text : "the manager said bye");
        break;
    case MSG_WELCOME:
        if (!client->is_connected)
            client_on_welcome(client, &msg->welcome);
        break;
    default:
        if (client->is_connected)
            client->ops->on_message(client->data, seq, msg);
    }
}

static void client_on_open(void *data)
{
    struct link_client *client = data;
    struct message msg = {
        .type = MSG_HELLO,
        .hello = { .protocol_min = LINK_PROTOCOL_MIN,
                   .protocol_max = LINK_PROTOCOL_MAX,
                   .incarnation = client->conf.incarnation,
                   .peer_incarnation = client->manager,
                   .received_seq = (int64_t)client->peer.handled_seq,
                   .version = ALIQUOT_VERSION },
    };
    struct aq_error err = { 0 };

    if (client->ops->on_greet)
        client->ops->on_greet(client->data, &msg.hello);
    msg.hello.agent_id = client->agent_id;
    if (channel_send(client->channel, &msg, &err) < 0)
        client_lose(client, err.text);
}

static void client_on_end(void *data, const char *why)
{
    client_lose(data, why);
}

static void client_connect(struct link_client *client)
{
    static const struct channel_ops ops = {
        .on_open = client_on_open,
        .on_message = client_on_message,
        .on_end = client_on_end,
    };
    struct aq_error err = { 0 };

    if (channel_connect(client->conf.loop, client->host, client->conf.port, client->tls, &ops,
                        client, &client->channel, &err)
        < 0)
        client_lose(client, err.text);
}

/* ---- streams ---- */

/* A stream whose connection is being made, or was taken from the idle. */
struct client_stream {
    struct list link;
    struct link_client *client;
    struct channel *channel;
    struct defer *later;        /* a connection that was idle is used from the loop */
    struct link_stream *stream; /* NULL once its owner closed it */
    struct msg_stream_hello hello;
    char key[UUID_TEXT_MAX];
};

static void client_stream_free(struct client_stream *opening)
{
    list_remove(&opening->link);
    if (opening->stream)
        link_stream_on_gone(opening->stream, NULL, NULL);
    channel_close(opening->channel);
    defer_cancel(opening->later);
    free(opening);
}

static void client_stream_on_gone(void *owner, struct link_stream *stream)
{
    struct client_stream *opening = owner;

    (void)stream;
    opening->stream = NULL;
    client_stream_free(opening);
}

static void client_stream_fail(struct client_stream *opening, const char *why)
{
    struct link_stream *stream = opening->stream;
    struct aq_error err;

    (void)aq_fail(&err, ECONNABORTED, "%s", why);
    client_stream_free(opening);
    link_stream_fail(stream, &err);
}

static void client_stream_on_open(void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    struct client_stream *opening = data;
    struct link_stream *stream = opening->stream;
    struct message msg = { .type = MSG_STREAM_HELLO, .stream_hello = opening->hello };
    struct stream *connection;
    struct connection_reuse *reuse;
    struct aq_error err = { 0 };

    if (channel_send(opening->channel, &msg, &err) < 0) {
        client_stream_fail(opening, err.text);
        return;
    }
    connection = channel_release(AQ_TAKE(opening->channel), &rest);
    reuse = opening->hello.framed ? opening->client->reuse : NULL;
    client_stream_free(opening);
    link_stream_attach(stream, connection, &rest, reuse);
}

static void client_stream_on_message(void *data, uint64_t seq, const struct message *msg)
{
    (void)data; /* the manager says nothing before the stream is a stream */
    (void)seq;
    (void)msg;
}

static int client_stream_connect(struct client_stream *opening, struct aq_error *err);

static void client_stream_on_end(void *data, const char *why)
{
    struct client_stream *opening = data;
    struct aq_error err = { 0 };

    if (!opening->later) {
        client_stream_fail(opening, why);
        return;
    }
    defer_cancel(AQ_TAKE(opening->later)); /* the manager has just closed it: a new one */
    channel_close(AQ_TAKE(opening->channel));
    if (client_stream_connect(opening, &err) < 0)
        client_stream_fail(opening, err.text);
}

static const struct channel_ops opening_ops = {
    .on_open = client_stream_on_open,
    .on_message = client_stream_on_message,
    .on_end = client_stream_on_end,
};

static int client_stream_connect(struct client_stream *opening, struct aq_error *err)
{
    const struct link_client *client = opening->client;

    return channel_connect(client->conf.loop, client->host, client->conf.port, client->tls,
                           &opening_ops, opening, &opening->channel, err);
}

static void client_stream_on_taken(void *data)
{
    struct client_stream *opening = data;

    opening->later = NULL;
    client_stream_on_open(opening);
}

/* The connection was open before: greet from the loop, as after connecting. */
static void client_stream_reuse(struct client_stream *opening, struct stream *connection)
{
    uv_loop_t *loop = opening->client->conf.loop;

    opening->channel = channel_new(loop, connection, &opening_ops, opening);
    opening->later = defer_call(loop, 0, client_stream_on_taken, opening);
}

int link_client_open_stream(struct link_client *client, const struct msg_stream_open *open,
                            const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                            struct aq_error *err)
{
    struct client_stream *opening = aq_alloc(sizeof(*opening));
    struct stream *connection;
    int r;

    list_init(&opening->link);
    (void)snprintf(opening->key, sizeof(opening->key), "%s", open->key);
    opening->hello = (struct msg_stream_hello){ .stream_id = open->stream_id,
                                                .key = opening->key,
                                                .framed = open->reuse };
    opening->client = client;
    connection = open->reuse ? idle_pool_take(&client->idle) : NULL;
    if (connection) {
        client_stream_reuse(opening, connection);
    } else if ((r = client_stream_connect(opening, err)) < 0) {
        client_stream_free(opening);
        return r;
    }
    opening->stream = link_stream_new(client->conf.loop, &open->stream_id, ops, data);
    link_stream_on_gone(opening->stream, client_stream_on_gone, opening);
    list_add(&client->streams, &opening->link);
    *ret = opening->stream;
    return 0;
}

static void client_on_reusable(void *owner, struct stream *connection)
{
    struct link_client *client = owner;

    idle_pool_add(&client->idle, connection);
}

/* ---- life ---- */

static int client_make_tls(struct link_client *client, const struct link_client_conf *conf,
                           struct aq_error *err)
{
    /* Only the manager has a certificate of the authority for server use, so
     * its name need not match whatever the agent calls it.
     */
    const struct tls_options options = {
        .cert_pem = conf->cert,
        .key_pem = conf->key,
        .ca_pem = conf->ca,
        .tls13_only = true,
        .any_name = true,
    };

    return tls_context_new(&options, &client->tls, err);
}

static void client_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

int link_client_new(const struct link_client_conf *conf, const struct link_client_ops *ops,
                    void *data, struct link_client **ret, struct aq_error *err)
{
    struct link_client *client = aq_alloc(sizeof(*client));
    int r;

    client->conf = *conf;
    client->conf.ping_usec = conf->ping_usec ? conf->ping_usec : LINK_PING_USEC;
    client->conf.dead_usec = conf->dead_usec ? conf->dead_usec : LINK_DEAD_USEC;
    client->conf.retry_min_usec = conf->retry_min_usec ? conf->retry_min_usec : RETRY_MIN_USEC;
    client->conf.retry_max_usec = conf->retry_max_usec ? conf->retry_max_usec : RETRY_MAX_USEC;
    client->retry_usec = client->conf.retry_min_usec;
    client->ops = ops;
    client->data = data;
    list_init(&client->streams);
    idle_pool_init(&client->idle, conf->loop);
    client->reuse = connection_reuse_new(client_on_reusable, client);
    peer_init(&client->peer);
    client->host = aq_strdup(conf->host);
    client->agent_id = aq_strdup(conf->agent_id);
    client->timer.data = client;
    (void)uv_timer_init(conf->loop, &client->timer);
    r = client_make_tls(client, conf, err);
    if (r < 0) {
        connection_reuse_end(client->reuse);
        free(client->host);
        free(client->agent_id);
        uv_close((uv_handle_t *)&client->timer, client_on_closed);
        return r;
    }
    (void)uv_timer_start(&client->timer, client_on_timer, 0, 0);
    *ret = client;
    return 0;
}

void link_client_free(struct link_client *client)
{
    struct message bye = { .type = MSG_BYE, .bye = { .text = "the agent stops" } };

    if (!client)
        return;
    if (client->is_connected)
        (void)channel_send(client->channel, &bye, NULL);
    channel_close(client->channel);
    connection_reuse_end(client->reuse);
    idle_pool_clear(&client->idle);
    while (!list_is_empty(&client->streams)) {
        struct client_stream *opening = LIST_ENTRY(client->streams.next, struct client_stream,
                                                   link);

        link_stream_close(opening->stream);
    }
    peer_reset(&client->peer);
    tls_context_free(client->tls);
    free(client->host);
    free(client->agent_id);
    uv_close((uv_handle_t *)&client->timer, client_on_closed);
}

bool link_client_is_connected(const struct link_client *client)
{
    return client->is_connected;
}

int link_client_send(struct link_client *client, const struct message *msg, struct aq_error *err)
{
    return link_send(&client->peer, client->is_connected ? client->channel : NULL, msg, err);
}

void link_client_ack(struct link_client *client, uint64_t seq)
{
    if (seq <= client->peer.handled_seq || seq > client->peer.delivered_seq)
        return;
    client->peer.handled_seq = seq;
    if (client->is_connected)
        channel_acknowledge(client->channel);
}
