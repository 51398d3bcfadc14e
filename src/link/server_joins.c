/* SPDX-License-Identifier: Apache-2.0 */
/* server_joins.c - agents that ask to join: the question, and the answer later */
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "link/server_internal.h"

#define JOINS_MAX 64 /* each looks up a token in the database */

struct link_join {
    struct list link;
    struct link_server *server;
    struct channel *channel; /* NULL once the other side has gone */
    char *agent_id;
};

static void server_join_free(struct link_join *join)
{
    list_remove(&join->link);
    join->server->join_count--;
    channel_close(join->channel);
    free(join->agent_id);
    free(join);
}

static void server_joins_on_message(void *data, uint64_t seq, const struct message *msg)
{
    (void)data; /* nothing is expected before the answer */
    (void)seq;
    (void)msg;
}

static void server_joins_on_end(void *data, const char *why)
{
    struct link_join *join = data;

    (void)why;
    channel_close(AQ_TAKE(join->channel));
}

void server_joins_ask(struct link_server *server, struct channel *channel,
                      const struct msg_join *msg)
{
    static const struct channel_ops ops = { .on_message = server_joins_on_message,
                                            .on_end = server_joins_on_end };
    struct link_join *join;

    if (!server->ops->on_join) {
        server_refuse(channel, "token", "this manager takes no joining agents", 0);
        return;
    }
    if (msg->protocol_min > LINK_PROTOCOL_MAX || msg->protocol_max < LINK_PROTOCOL_MIN) {
        server_refuse(channel, "protocol",
                      "agent and manager have no protocol in common: upgrade "
                      "the older of the two",
                      0);
        return;
    }
    if (server->join_count >= JOINS_MAX) {
        server_refuse(channel, "refused", "too many machines join at this moment; try again", 0);
        return;
    }
    join = aq_alloc(sizeof(*join));
    join->agent_id = aq_strdup(msg->agent_id);
    join->server = server;
    join->channel = channel;
    list_add(&server->joins, &join->link);
    server->join_count++;
    channel_set_ops(channel, &ops, join);
    server->ops->on_join(server->data, join, msg);
}

bool link_join_is_local(const struct link_join *join)
{
    const char *address = join->channel ? channel_get_address(join->channel) : "";

    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

void link_join_accept(struct link_join *join, const char *cert, const struct link_join_keys *keys,
                      const char *note)
{
    struct message msg = { .type = MSG_JOINED };

    msg.joined = (struct msg_joined){ .cert = cert,
                                      .ca = pki_ca_cert(join->server->conf.ca),
                                      .agent_id = join->agent_id,
                                      .note = note };
    if (keys) {
        msg.joined.ca_key = keys->ca_key;
        msg.joined.seal_key = keys->seal_key;
        msg.joined.database = keys->database;
    }
    AQ_FAULT("link.join.accepted");
    if (join->channel)
        (void)channel_send(join->channel, &msg, NULL);
    server_join_free(join);
}

void link_join_refuse(struct link_join *join, const char *kind, const char *text)
{
    if (join->channel)
        server_refuse(AQ_TAKE(join->channel), kind, text, 0);
    server_join_free(join);
}

void server_joins_free(struct link_server *server)
{
    LIST_FOREACH(it, &server->joins)
        server_join_free(LIST_ENTRY(it, struct link_join, link));
}
