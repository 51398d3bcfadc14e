/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the agent's end: the leader that it looks for, the control connection, its streams */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/tls.h"
#include "link/address_walk.h"
#include "link/channel.h"
#include "link/idle_pool.h"
#include "link/link.h"
#include "link/link_stream.h"

#define RETRY_MIN_USEC (200 * USEC_PER_MSEC)
#define RETRY_MAX_USEC (10 * USEC_PER_SEC)
/* With several managers, one of them soon leads: the pause stays short. */
#define RETRY_AMONG_USEC (2 * USEC_PER_SEC)
#define CONNECT_AMONG_USEC (3 * USEC_PER_SEC)
/* Before the next address of a round, at most. */
#define STEP_USEC (20 * USEC_PER_MSEC)

struct link_client {
    struct link_client_conf conf; /* agent_id owned; addresses and PEM texts not kept */
    char *agent_id;
    const struct link_client_ops *ops;
    void *data;
    struct tls_context *tls;
    struct address_walk *walk;
    char *address;           /* of the try, or of the manager that welcomed us */
    char *leader;            /* to which the last refusal pointed; NULL = unknown */
    bool has_followed;       /* a refusal to the leader, in this round */
    bool is_redirected;      /* the last manager that answered does not lead */
    int64_t epoch;           /* the highest that was followed */
    int64_t commit;          /* the highest that an order of it followed */
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

static void client_replace(char **place, const char *text)
{
    char *copy = text ? aq_strdup(text) : NULL;

    free(*place);
    *place = copy;
}

/* ---- which manager is tried, and when ---- */

/* Between half and the whole of the time, so that a thousand agents do not come at once. */
static void client_wait(struct link_client *client, int64_t usec)
{
    struct uuid random = uuid_random();
    int64_t half = usec / 2;
    int64_t wait = half + (int64_t)(random.bytes[0] * 256 + random.bytes[1]) * half / 65536;

    (void)uv_timer_start(&client->timer, client_on_timer, (uint64_t)(wait / USEC_PER_MSEC), 0);
}

static bool client_is_among(const struct link_client *client)
{
    return client->is_redirected || address_walk_count(client->walk) > 1;
}

static void client_begin_round(struct link_client *client, const char *first, int64_t pause_usec)
{
    address_walk_begin(client->walk, first);
    client_replace(&client->address, address_walk_next(client->walk));
    client_wait(client, pause_usec);
}

/* The next address of the round at once; after the last one a pause, which doubles each time, and
 * another round.
 */
static void client_go_on(struct link_client *client)
{
    const char *next = address_walk_next(client->walk);
    int64_t pause = client->retry_usec, longest = client->conf.retry_max_usec;

    if (next) {
        client_replace(&client->address, next);
        client_wait(client, AQ_MIN(STEP_USEC, pause));
        return;
    }
    if (longest == 0)
        longest = client_is_among(client) ? RETRY_AMONG_USEC : RETRY_MAX_USEC;
    client->retry_usec = AQ_MIN(pause * 2, longest);
    client->has_followed = false;
    client_begin_round(client, client->leader, AQ_MIN(pause, longest));
}

/* Connections to a manager that is perhaps another one now are of no use. */
static void client_disconnect(struct link_client *client)
{
    channel_close(AQ_TAKE(client->channel));
    client->is_connected = false;
    idle_pool_clear(&client->idle);
}

static void client_tell_lost(struct link_client *client, const char *why)
{
    if (client->ops->on_disconnected)
        client->ops->on_disconnected(client->data, why);
}

/* A try has failed. */
static void client_fail(struct link_client *client, const char *why)
{
    client_disconnect(client);
    client_go_on(client);
    client_tell_lost(client, why);
}

/* The connection to a leader has ended. More often it is the network or a restart than another
 * leader, so it comes first in the round, unless it has fallen silent.
 */
static void client_lose(struct link_client *client, const char *why, bool is_silent)
{
    if (!client->is_connected) {
        client_fail(client, why);
        return;
    }
    client_disconnect(client);
    client_begin_round(client, is_silent ? NULL : client->address, client->conf.retry_min_usec);
    client_tell_lost(client, why);
}

/* Another manager leads, or will soon: one that is named is tried at once, but only once in a round,
 * since two managers may name each other.
 */
static void client_follow(struct link_client *client, const struct msg_refused *refused,
                          const char *why)
{
    bool follows = refused->leader && !client->has_followed;

    client_disconnect(client);
    client->is_redirected = true;
    client_replace(&client->leader, refused->leader);
    client->retry_usec = AQ_MAX(refused->retry_usec, client->retry_usec);
    if (follows) {
        client->has_followed = true;
        client_begin_round(client, client->leader, STEP_USEC);
    } else {
        client_go_on(client);
    }
    client_tell_lost(client, why);
}

/* ---- what managers say ---- */

static void client_give_up(struct link_client *client, const char *kind, const char *text)
{
    client_disconnect(client);
    client->is_stopped = true;
    client->ops->on_refused(client->data, kind, text ? text : "the manager gave no reason");
}

static void client_on_refused(struct link_client *client, const struct msg_refused *refused)
{
    char why[sizeof(((struct aq_error *)NULL)->text)];
    const char *text = refused->text ? refused->text : "no reason given";

    if (refused->retry_usec == 0) {
        client_give_up(client, refused->kind ? refused->kind : "refused", refused->text);
    } else if (refused->kind && strcmp(refused->kind, LINK_NOT_LEADER) == 0) {
        (void)snprintf(why, sizeof(why), "%s: %s", client->address, text);
        client_follow(client, refused, why);
    } else {
        (void)snprintf(why, sizeof(why), "the manager refused for now: %s", text);
        client_disconnect(client);
        client_begin_round(client, client->address,
                           AQ_MAX(refused->retry_usec, client->conf.retry_min_usec));
        client_tell_lost(client, why);
    }
}

/* May the manager of this welcome be followed? One without epochs is of an older version, beside
 * which no other manager can lead, or has its database in a file.
 */
static int client_check_epoch(struct link_client *client, int64_t epoch, struct aq_error *err)
{
    if (epoch == 0 || epoch == client->epoch)
        return 0;
    if (epoch < client->epoch)
        return aq_fail(err, ESTALE, "the manager at %s leads epoch %lld, and epoch %lld has begun",
                       client->address, (long long)epoch, (long long)client->epoch);
    if (client->ops->on_epoch && client->ops->on_epoch(client->data, epoch) < 0)
        return aq_fail(err, EIO, "cannot record epoch %lld of the manager at %s", (long long)epoch,
                       client->address);
    client->epoch = epoch;
    client->commit = 0;
    AQ_FAULT("link.epoch.followed");
    return 0;
}

static void client_take_managers(struct link_client *client, const struct link_manager *list,
                                 size_t count)
{
    const struct msg_managers *news = count ? address_walk_name(client->walk, list, count) : NULL;

    if (news && client->ops->on_managers)
        client->ops->on_managers(client->data, news->managers, news->manager_count);
}

static void client_on_welcome(struct link_client *client, const struct msg_welcome *welcome)
{
    struct aq_error err = { 0 };
    int r = client_check_epoch(client, welcome->epoch, &err);

    if (r < 0) {
        client_fail(client, err.text);
        return;
    }
    if (!welcome->is_resumed)
        peer_restart(&client->peer);
    else
        r = peer_acknowledge(&client->peer, (uint64_t)welcome->received_seq);
    if (r < 0 || welcome->protocol < LINK_PROTOCOL_MIN || welcome->protocol > LINK_PROTOCOL_MAX) {
        client_fail(client, "the manager's welcome makes no sense");
        return;
    }
    client->manager = welcome->incarnation;
    client->is_connected = true;
    client->has_followed = client->is_redirected = false;
    client->retry_usec = client->conf.retry_min_usec;
    client_replace(&client->leader, NULL);
    AQ_FAULT("link.welcome.received");
    channel_bind(client->channel, &client->peer, client->conf.ping_usec, client->conf.dead_usec);
    channel_limit_unacknowledged(client->channel, LINK_CLIENT_CUT_USEC);
    channel_flush(client->channel);
    client_take_managers(client, welcome->managers, welcome->manager_count);
    if (client->ops->on_connected)
        client->ops->on_connected(client->data, welcome);
}

/* An order of a manager that leads no more is acknowledged and not followed. */
static void client_hand_up(struct link_client *client, uint64_t seq, const struct message *msg)
{
    const struct message skipped = { .type = MSG_UNKNOWN };
    bool is_stale = message_is_order(msg->type) && msg->stamp.epoch
                    && msg->stamp.epoch < client->epoch;

    if (is_stale)
        log_limited(&client->peer.log, LOG_LEVEL_WARNING,
                    "link: refused '%s' of epoch %lld from %s; epoch %lld has begun",
                    message_type_name(msg->type), (long long)msg->stamp.epoch, client->address,
                    (long long)client->epoch);
    else if (message_is_order(msg->type) && msg->stamp.epoch == client->epoch)
        client->commit = AQ_MAX(client->commit, msg->stamp.commit);
    client->ops->on_message(client->data, seq, is_stale ? &skipped : msg);
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
        client_lose(client, msg->bye.text ? msg->bye.text : "the manager said bye", false);
        break;
    case MSG_WELCOME:
        if (!client->is_connected)
            client_on_welcome(client, &msg->welcome);
        break;
    case MSG_MANAGERS:
        if (client->is_connected)
            client_take_managers(client, msg->managers.managers, msg->managers.manager_count);
        break;
    default:
        if (client->is_connected)
            client_hand_up(client, seq, msg);
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
                   .version = ALIQUOT_VERSION,
                   .epoch = client->epoch,
                   .commit = client->commit },
    };
    struct aq_error err = { 0 };

    if (client->ops->on_greet)
        client->ops->on_greet(client->data, &msg.hello);
    msg.hello.agent_id = client->agent_id;
    if (channel_send(client->channel, &msg, &err) < 0)
        client_fail(client, err.text);
}

static void client_on_end(void *data, const char *why)
{
    struct link_client *client = data;

    client_lose(client, why, client->channel && channel_is_silent(client->channel));
}

static struct channel_target client_get_target(const struct link_client *client)
{
    return (struct channel_target){ .address = client->address,
                                    .tls = client->tls,
                                    .connect_usec = client_is_among(client)
                                                        ? CONNECT_AMONG_USEC
                                                        : CHANNEL_GREETING_USEC };
}

static void client_connect(struct link_client *client)
{
    static const struct channel_ops ops = {
        .on_open = client_on_open,
        .on_message = client_on_message,
        .on_end = client_on_end,
    };
    const struct channel_target target = client_get_target(client);
    struct aq_error err = { 0 };

    if (channel_connect(client->conf.loop, &target, &ops, client, &client->channel, &err) < 0)
        client_fail(client, err.text);
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
    const struct channel_target target = client_get_target(client);

    return channel_connect(client->conf.loop, &target, &opening_ops, opening, &opening->channel,
                           err);
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
    struct link_client *client;
    int r;

    if (conf->address_count == 0)
        return aq_fail(err, EINVAL, "no address of a manager is known");
    client = aq_alloc(sizeof(*client));
    client->conf = *conf;
    client->conf.ping_usec = conf->ping_usec ? conf->ping_usec : LINK_PING_USEC;
    client->conf.dead_usec = conf->dead_usec ? conf->dead_usec : LINK_CLIENT_DEAD_USEC;
    client->conf.retry_min_usec = conf->retry_min_usec ? conf->retry_min_usec : RETRY_MIN_USEC;
    client->retry_usec = client->conf.retry_min_usec;
    client->ops = ops;
    client->data = data;
    list_init(&client->streams);
    idle_pool_init(&client->idle, conf->loop);
    client->reuse = connection_reuse_new(client_on_reusable, client);
    peer_init(&client->peer);
    client->epoch = conf->epoch;
    client->walk = address_walk_new(conf->addresses, conf->address_count, conf->is_fixed);
    client->agent_id = aq_strdup(conf->agent_id);
    client->timer.data = client;
    (void)uv_timer_init(conf->loop, &client->timer);
    r = client_make_tls(client, conf, err);
    if (r < 0) {
        connection_reuse_end(client->reuse);
        address_walk_free(client->walk);
        free(client->agent_id);
        uv_close((uv_handle_t *)&client->timer, client_on_closed);
        return r;
    }
    client_begin_round(client, NULL, 0);
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
    address_walk_free(client->walk);
    free(client->address);
    free(client->leader);
    free(client->agent_id);
    uv_close((uv_handle_t *)&client->timer, client_on_closed);
}

bool link_client_is_connected(const struct link_client *client)
{
    return client->is_connected;
}

const char *link_client_address(const struct link_client *client)
{
    return client->address;
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
