/* SPDX-License-Identifier: Apache-2.0 */
/* server_agents.c - the agents that a server knows: greeting, fencing and resuming them */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/server_internal.h"

static bool server_agent_is_former(const struct link_agent *agent, const struct uuid *incarnation)
{
    size_t count = AQ_MIN(agent->former_count, (size_t)LINK_FORMER_MAX);

    for (size_t i = 0; i < count; i++) {
        if (uuid_equals(&agent->former[i], incarnation))
            return true;
    }
    return false;
}

static struct link_agent *server_agent_find_or_add(struct link_server *server, const char *id)
{
    struct link_agent *agent = map_gets(&server->agents, id);

    if (agent)
        return agent;
    agent = aq_alloc(sizeof(*agent));
    agent->server = server;
    agent->id = aq_strdup(id);
    peer_init(&agent->peer);
    agent->peer.is_held = server->is_held;
    map_sets(&server->agents, id, agent);
    return agent;
}

static void server_agent_free(struct link_agent *agent)
{
    channel_close(agent->channel);
    peer_reset(&agent->peer);
    free(agent->id);
    free(agent);
}

void server_agents_free(struct link_server *server)
{
    for (size_t i = 0; i < server->agents.count; i++)
        server_agent_free(server->agents.entries[i].value);
    map_done(&server->agents);
}

static void server_agent_disconnect(struct link_agent *agent, bool orderly, const char *why)
{
    struct link_server *server = agent->server;

    channel_close(AQ_TAKE(agent->channel));
    server->connected--;
    server_streams_agent_gone(server, agent->id);
    if (server->ops->on_disconnected)
        server->ops->on_disconnected(server->data, agent->id, &agent->incarnation, orderly, why);
}

static void server_agent_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct link_agent *agent = data;
    struct link_server *server = agent->server;

    if (msg->type == MSG_BYE)
        server_agent_disconnect(agent, true, msg->bye.text ? msg->bye.text : "the agent said bye");
    else if (msg->type == MSG_STREAM_REFUSED)
        server_streams_refused(server, agent->id, &msg->stream_refused);
    else if (msg->type != MSG_UNKNOWN)
        server->ops->on_message(server->data, agent->id, msg);
    if (seq && agent->channel)
        agent->peer.handled_seq = seq;
}

static void server_agent_on_end(void *data, const char *why)
{
    server_agent_disconnect(data, false, why);
}

static void server_agent_send_fenced(struct channel *channel, const struct uuid *by)
{
    struct message msg = {
        .type = MSG_FENCED,
        .fenced = { .by = *by,
                    .text = "another agent process with the same identity has connected; two "
                            "hosts must not share one state folder or certificate" },
    };

    (void)channel_send(channel, &msg, NULL);
    channel_close(channel);
}

/* Make 'incarnation' the agent's; an older connection ends. */
static void server_agent_supersede(struct link_agent *agent, const struct uuid *incarnation)
{
    bool is_same = uuid_equals(&agent->incarnation, incarnation);
    struct channel *old = AQ_TAKE(agent->channel);

    if (old) {
        agent->server->connected--;
        server_streams_agent_gone(agent->server, agent->id);
    }
    if (old && is_same)
        channel_close(old); /* its network broke before ours noticed */
    else if (old)
        server_agent_send_fenced(old, incarnation);
    if (is_same || uuid_is_nil(&agent->incarnation))
        return;
    agent->former[agent->former_count++ % LINK_FORMER_MAX] = agent->incarnation;
}

/* True if both sides continue their queues. Otherwise the agent forgets its
 * own and ours is as new, perhaps with messages that it has not seen.
 */
static bool server_agent_resume(struct link_agent *agent, const struct msg_hello *hello)
{
    struct link_peer *peer = &agent->peer;
    bool knows_us = uuid_equals(&hello->peer_incarnation, &agent->server->conf.incarnation);

    if (!uuid_equals(&agent->incarnation, &hello->incarnation))
        peer_reset(peer);
    else if (knows_us && peer_acknowledge(peer, (uint64_t)hello->received_seq) == 0)
        return true;
    else if (knows_us || peer->acked_seq || peer->delivered_seq)
        peer_reset(peer);
    return uuid_is_nil(&hello->peer_incarnation);
}

static void server_agent_welcome(struct link_agent *agent, struct channel *channel,
                                 const struct msg_hello *hello, struct message *msg)
{
    static const struct channel_ops ops = { .on_message = server_agent_on_message,
                                            .on_end = server_agent_on_end };
    struct link_server *server = agent->server;
    struct aq_error err = { 0 };

    server_agent_supersede(agent, &hello->incarnation);
    msg->welcome.is_resumed = server_agent_resume(agent, hello);
    msg->welcome.received_seq = (int64_t)agent->peer.handled_seq;
    agent->incarnation = hello->incarnation;
    agent->channel = channel;
    server->connected++;
    channel_set_ops(channel, &ops, agent);
    if (channel_send(channel, msg, &err) < 0) {
        server_agent_disconnect(agent, false, err.text); /* it comes again */
        return;
    }
    AQ_FAULT("link.welcome.sent");
    channel_bind(channel, &agent->peer, server->conf.ping_usec, server->conf.dead_usec);
    channel_flush(channel);
    if (server->ops->on_connected)
        server->ops->on_connected(server->data, agent->id, &agent->incarnation);
}

/* The newest version both speak, or 0. */
static int64_t server_agents_choose_protocol(const struct msg_hello *hello)
{
    int64_t best = AQ_MIN(hello->protocol_max, (int64_t)LINK_PROTOCOL_MAX);

    return best >= hello->protocol_min && best >= LINK_PROTOCOL_MIN ? best : 0;
}

static void server_agents_refuse_protocol(struct channel *channel, const struct msg_hello *hello)
{
    char text[200];

    (void)snprintf(text, sizeof(text),
                   "the agent (version %s) speaks protocol %lld to %lld, this manager (version "
                   "%s) %d to %d: upgrade the older of the two",
                   hello->version ? hello->version : "unknown", (long long)hello->protocol_min,
                   (long long)hello->protocol_max, ALIQUOT_VERSION, LINK_PROTOCOL_MIN,
                   LINK_PROTOCOL_MAX);
    server_refuse(channel, "protocol", text, 0);
}

/* Another manager has led since: this one has been replaced and has not noticed yet, or its database
 * is an older copy.
 */
static void server_agents_refuse_epoch(struct link_server *server, struct channel *channel,
                                       const struct msg_hello *hello)
{
    char text[200];

    (void)snprintf(text, sizeof(text),
                   "'%.64s' has followed epoch %lld, this manager leads epoch %lld",
                   hello->agent_id, (long long)hello->epoch, (long long)server->conf.epoch);
    if (hello->epoch > server->ahead.epoch) {
        server->ahead.epoch = hello->epoch;
        (void)snprintf(server->ahead.agent_id, sizeof(server->ahead.agent_id), "%s",
                       hello->agent_id);
        log_limited(&server->log, LOG_LEVEL_ERR,
                    "link: refused a connection: %s; another manager has taken over, or the "
                    "database is an older copy. If it was put back on purpose, stop all managers, "
                    "run 'aliquot admin db mark-restored' and start them",
                    text);
    }
    server_refuse(channel, LINK_NOT_LEADER, text, USEC_PER_SEC);
}

void server_agents_greet(struct link_server *server, struct channel *channel,
                         const struct msg_hello *hello)
{
    struct message msg = { .type = MSG_WELCOME,
                           .welcome = { .protocol = server_agents_choose_protocol(hello),
                                        .incarnation = server->conf.incarnation,
                                        .version = ALIQUOT_VERSION,
                                        .at_usec = clock_realtime_usec(),
                                        .epoch = server->conf.epoch } };
    struct link_agent *agent = map_gets(&server->agents, hello->agent_id);
    struct aq_error err = { 0 };
    int64_t retry_usec = 0;

    if (msg.welcome.protocol == 0) {
        server_agents_refuse_protocol(channel, hello);
        return;
    }
    if (server->conf.epoch && hello->epoch > server->conf.epoch) {
        server_agents_refuse_epoch(server, channel, hello);
        return;
    }
    if (agent && server_agent_is_former(agent, &hello->incarnation)) {
        server_agent_send_fenced(channel, &agent->incarnation);
        return;
    }
    if (server->ops->on_hello
        && server->ops->on_hello(server->data, hello, &msg.welcome, &retry_usec, &err) < 0) {
        server_refuse(channel, err.kind ? err.kind : "refused", err.text, retry_usec);
        return;
    }
    /* The hello of a manager may have changed them. */
    msg.welcome.managers = server->managers.msg.managers.managers;
    msg.welcome.manager_count = server->managers.msg.managers.manager_count;
    agent = server_agent_find_or_add(server, hello->agent_id);
    server_agent_welcome(agent, channel, hello, &msg);
}

int64_t link_server_get_ahead(const struct link_server *server, const char **ret_agent_id)
{
    *ret_agent_id = server->ahead.agent_id;
    return server->ahead.epoch;
}

bool link_server_is_connected(const struct link_server *server, const char *agent_id)
{
    const struct link_agent *agent = map_gets(&server->agents, agent_id);

    return agent && agent->channel;
}

int64_t link_server_heard_usec(const struct link_server *server, const char *agent_id)
{
    const struct link_agent *agent = map_gets(&server->agents, agent_id);

    return agent ? agent->peer.heard_usec : 0;
}

int link_server_send(struct link_server *server, const char *agent_id, const struct message *msg,
                     struct aq_error *err)
{
    struct link_agent *agent = map_gets(&server->agents, agent_id);

    if (!agent)
        return aq_fail_kind(err, ENOTCONN, "service-unavailable", "agent '%s' has not connected",
                            agent_id);
    return link_send(&agent->peer,
                     server->is_held && message_is_order(msg->type) ? NULL : agent->channel, msg,
                     err);
}

void link_server_set_managers(struct link_server *server, const struct link_manager *list,
                              size_t count)
{
    struct aq_error err = { 0 };
    int r = manager_list_set(&server->managers, list, count, &err);

    if (r < 0)
        log_error("link: the list of managers stays as it was: %s", err.text);
    if (r <= 0)
        return;
    for (size_t i = 0; i < server->agents.count; i++) {
        const struct link_agent *agent = server->agents.entries[i].value;

        if (agent->channel)
            (void)channel_send(agent->channel, &server->managers.msg,
                               NULL); /* or by its next hello */
    }
}

void server_agents_redirect(struct link_server *server)
{
    for (size_t i = 0; i < server->agents.count;) {
        struct link_agent *agent = server->agents.entries[i].value;

        if (!agent->channel) {
            i++;
            continue;
        }
        server_send_away(server, AQ_TAKE(agent->channel));
        server_agent_disconnect(agent, false, "another manager leads");
        i = 0; /* the callback may have dropped agents */
    }
}

void server_agents_hold(struct link_server *server)
{
    for (size_t i = 0; i < server->agents.count; i++) {
        struct link_agent *agent = server->agents.entries[i].value;

        agent->peer.is_held = server->is_held;
        if (agent->channel && !server->is_held)
            channel_flush(agent->channel);
    }
}

void link_server_drop(struct link_server *server, const char *agent_id, const char *text)
{
    struct link_agent *agent = map_removes(&server->agents, agent_id);

    if (!agent)
        return;
    server_streams_agent_out(server, agent_id);
    if (agent->channel) {
        server->connected--;
        if (text)
            server_refuse(AQ_TAKE(agent->channel), "refused", text, 0);
    }
    server_agent_free(agent);
}
