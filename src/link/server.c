/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the manager's end: connections until their first message says what they are */
#include "link/server_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"

#define GUESTS_MAX 256
#define IDLE_GUESTS_MAX 1024
#define AWAY_USEC (300 * USEC_PER_MSEC) /* a leader is found soon */
#define IDLE_USEC (90 * USEC_PER_SEC)   /* agents end theirs before: idle_pool.h */

/* A connection that has not said what it wants. */
struct server_guest {
    struct list link;
    struct link_server *server;
    struct channel *channel;
    uint64_t address; /* its hash */
    bool is_idle;     /* has had a stream */
};

static struct channel *server_guest_remove(struct server_guest *guest)
{
    struct channel *channel = guest->channel;

    list_remove(&guest->link);
    if (guest->is_idle)
        guest->server->idle_count--;
    else
        guest->server->guest_count--;
    free(guest);
    return channel;
}

void server_refuse(struct channel *channel, const char *kind, const char *text, int64_t retry_usec)
{
    struct message msg = { .type = MSG_REFUSED,
                           .refused = { .kind = kind, .text = text, .retry_usec = retry_usec } };

    (void)channel_send(channel, &msg, NULL);
    channel_close(channel);
}

void server_send_away(struct link_server *server, struct channel *channel)
{
    char text[80 + HOST_PORT_MAX];
    struct message msg = { .type = MSG_REFUSED,
                           .refused = { .kind = LINK_NOT_LEADER,
                                        .text = text,
                                        .retry_usec = AWAY_USEC,
                                        .leader = server->leader } };

    (void)snprintf(text, sizeof(text), "this manager does not lead; %s%s",
                   server->leader ? "the leader is at " : "no leader is known yet",
                   server->leader ? server->leader : "");
    (void)channel_send(channel, &msg, NULL);
    channel_close(channel);
}

void server_refuse_stream(struct channel *channel, const char *text)
{
    log_debug("link: a stream is refused: %s", text);
    channel_close(channel);
}

/* The agent that the connection's certificate names, or a reason against it. */
static bool server_identify(struct link_server *server, struct channel *channel,
                            struct tls_peer *ret, const char **ret_kind, const char **ret_text)
{
    if (!channel_get_peer(channel, ret)) {
        *ret_kind = "identity";
        *ret_text = "no certificate: join the cluster first (aliquot-agent join)";
        return false;
    }
    if (pki_is_revoked(server->conf.ca, ret->serial)) {
        *ret_kind = "revoked";
        *ret_text = "this agent's certificate was revoked: join again with a new token";
        return false;
    }
    return true;
}

static void server_on_first_message(void *data, uint64_t seq, const struct message *msg)
{
    struct server_guest *guest = data;
    struct link_server *server = guest->server;
    struct channel *channel = server_guest_remove(guest);
    struct tls_peer who;
    const char *kind, *text;

    (void)seq;
    if (server->is_redirected && msg->type != MSG_STREAM_HELLO) {
        server_send_away(server, channel);
    } else if (server->is_redirected) {
        server_refuse_stream(channel, "this manager does not lead");
    } else if (msg->type == MSG_JOIN) {
        server_joins_ask(server, channel, &msg->join);
    } else if (!server_identify(server, channel, &who, &kind, &text)) {
        if (msg->type == MSG_STREAM_HELLO)
            server_refuse_stream(channel, text);
        else
            server_refuse(channel, kind, text, 0);
    } else if (msg->type == MSG_STREAM_HELLO) {
        server_streams_attach(server, channel, who.common_name, &msg->stream_hello);
    } else if (msg->type != MSG_HELLO) {
        server_refuse(channel, "refused", "a connection begins with hello", 0);
    } else if (strcmp(msg->hello.agent_id, who.common_name) != 0) {
        server_refuse(channel, "identity", "the agent's id is not the name in its certificate", 0);
    } else {
        server_agents_greet(server, channel, &msg->hello);
    }
}

static void server_on_guest_end(void *data, const char *why)
{
    struct server_guest *guest = data;

    log_debug("link: a connection ended before its greeting: %s", why);
    channel_close(server_guest_remove(guest));
}

/* Is the connection a manager's, whose requests are taken here? Else a reason against it. */
static bool server_takes_http(struct link_server *server, struct channel *channel,
                              struct tls_peer *ret, const char **ret_text)
{
    const char *kind;

    if (!server_identify(server, channel, ret, &kind, ret_text))
        return false;
    if (strncmp(ret->common_name, LINK_MANAGER_PREFIX, strlen(LINK_MANAGER_PREFIX)) != 0)
        *ret_text = "it is not a manager's";
    else if (!server->ops->on_http)
        *ret_text = "this manager does not lead";
    else
        return true;
    return false;
}

static void server_on_http(void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT;
    struct server_guest *guest = data;
    struct link_server *server = guest->server;
    struct channel *channel = server_guest_remove(guest);
    struct tls_peer who;
    const char *text;

    if (!server_takes_http(server, channel, &who, &text)) {
        log_limited(&server->log, LOG_LEVEL_WARNING, "link: refused a connection with HTTP: %s",
                    text);
        channel_close(channel);
        return;
    }
    server->ops->on_http(server->data, channel_release(channel, &first), &first, who.common_name);
}

static const struct channel_ops guest_ops = {
    .on_http = server_on_http,
    .on_message = server_on_first_message,
    .on_end = server_on_guest_end,
};

/* A stream has ended: its connection is as a new one, whose agent is looked
 * at again when it says something.
 */
static void server_on_reusable(void *owner, struct stream *connection)
{
    struct link_server *server = owner;
    struct server_guest *guest;

    if (server->idle_count >= IDLE_GUESTS_MAX) {
        stream_close(connection);
        return;
    }
    guest = aq_alloc(sizeof(*guest));
    guest->server = server;
    guest->is_idle = true;
    stream_resume(connection);
    guest->channel = channel_new(server->conf.loop, connection, &guest_ops, guest);
    channel_set_patience(guest->channel, IDLE_USEC);
    list_add(&server->guests, &guest->link);
    server->idle_count++;
}

static uint64_t server_hash_address(const char *text)
{
    return text ? aq_hash(text, strlen(text)) : 0;
}

static void server_on_unknown_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void server_on_unknown_end(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
}

/* Of those that have said nothing yet, the oldest of the address that has most of them: an address
 * that fills the places pushes out its own, and an agent that comes finds one.
 */
static struct server_guest *server_find_silent(struct link_server *server)
{
    struct server_guest *found = NULL;
    size_t most = 0;

    LIST_FOREACH(it, &server->guests) {
        struct server_guest *guest = LIST_ENTRY(it, struct server_guest, link);
        size_t count = 0;

        if (guest->is_idle || (found && guest->address == found->address))
            continue;
        LIST_FOREACH(other, &server->guests)
            count += LIST_ENTRY(other, struct server_guest, link)->address == guest->address;
        if (count > most) {
            most = count;
            found = guest;
        }
    }
    return found;
}

static void server_on_connection(struct listener *listener, void *data)
{
    static const struct stream_ops unknown_peer_ops = {
        .on_read = server_on_unknown_read,
        .on_end = server_on_unknown_end,
    };
    struct link_server *server = data;
    struct server_guest *guest;
    struct aq_error err = { 0 };
    struct stream *stream;

    if (listener_accept(listener, &unknown_peer_ops, NULL, &stream, &err) < 0) {
        log_limited(&server->log, LOG_LEVEL_WARNING, "link: accept: %s", err.text);
        return;
    }
    if (server->guest_count >= GUESTS_MAX) {
        log_limited(&server->log, LOG_LEVEL_WARNING,
                    "link: too many connections that have not greeted, the oldest is closed");
        channel_close(server_guest_remove(server_find_silent(server)));
    }
    guest = aq_alloc(sizeof(*guest));
    guest->server = server;
    guest->address = server_hash_address(stream_get_address(stream));
    guest->channel = channel_new(server->conf.loop, stream, &guest_ops, guest);
    list_add(&server->guests, &guest->link);
    server->guest_count++;
}

/* The leaf with the authority behind it, so that a joining agent can check
 * the authority's fingerprint.
 */
static int server_make_tls(struct link_server *server, const struct link_server_conf *conf,
                           struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *chain = aq_format("%s%s", conf->cert, pki_ca_cert(conf->ca));
    const struct tls_options options = {
        .is_server = true,
        .cert_pem = chain,
        .key_pem = conf->key,
        .ca_pem = pki_ca_cert(conf->ca),
        .tls13_only = true,
    };

    return tls_context_new(&options, &server->tls, err);
}

static int server_listen(struct link_server *server, const struct link_server_conf *conf,
                         struct aq_error *err)
{
    char address[HOST_PORT_MAX];
    const struct listener_options options = {
        .address = host_port_write(conf->host, conf->port, address), .tls = server->tls
    };
    int r = listener_new(conf->loop, &options, server_on_connection, server, &server->listener,
                         err);

    return r < 0 ? (void)aq_error_wrap(err, "agent link"), r : 0;
}

int link_server_new(const struct link_server_conf *conf, const struct link_server_ops *ops,
                    void *data, struct link_server **ret, struct aq_error *err)
{
    AQ_CLEANUP(link_server_freep) struct link_server *server = aq_alloc(sizeof(*server));
    int r;

    server->conf = *conf;
    server->conf.ping_usec = conf->ping_usec ? conf->ping_usec : LINK_PING_USEC;
    server->conf.dead_usec = conf->dead_usec ? conf->dead_usec : LINK_DEAD_USEC;
    server->ops = ops;
    server->data = data;
    list_init(&server->guests);
    list_init(&server->joins);
    manager_list_init(&server->managers);
    server->reuse = connection_reuse_new(server_on_reusable, server);
    r = server_make_tls(server, conf, err);
    if (r == 0)
        r = server_listen(server, conf, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(server);
    return 0;
}

void link_server_free(struct link_server *server)
{
    if (!server)
        return;
    listener_close(server->listener);
    connection_reuse_end(server->reuse);
    LIST_FOREACH(it, &server->guests)
        channel_close(server_guest_remove(LIST_ENTRY(it, struct server_guest, link)));
    server_joins_free(server);
    server_streams_free(server);
    server_agents_free(server);
    manager_list_done(&server->managers);
    free(server->leader);
    tls_context_free(server->tls);
    free(server);
}

void link_server_redirect(struct link_server *server, const char *leader)
{
    char *copy = leader ? aq_strdup(leader) : NULL;

    free(server->leader);
    server->leader = copy;
    server->is_redirected = true;
    server_agents_redirect(server);
}

void link_server_hold(struct link_server *server, bool is_held)
{
    server->is_held = is_held;
    server_agents_hold(server);
}

uint16_t link_server_port(const struct link_server *server)
{
    return listener_get_port(server->listener);
}

size_t link_server_connection_count(const struct link_server *server)
{
    return server->connected;
}
