/* SPDX-License-Identifier: Apache-2.0 */
/* server_internal.h - the manager's end from the inside: server.c greets,
 * server_agents.c keeps the agents, server_streams.c the streams
 */
#ifndef AQ_LINK_SERVER_INTERNAL_H
#define AQ_LINK_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "http/listener.h"
#include "link/channel.h"
#include "link/link.h"
#include "link/link_stream.h"
#include "link/manager_list.h"

#define LINK_FORMER_MAX 16

struct link_server {
    struct link_server_conf conf; /* texts not kept */
    const struct link_server_ops *ops;
    void *data;
    struct tls_context *tls;
    struct listener *listener;
    struct list guests;             /* struct server_guest: connected, not yet greeted */
    size_t guest_count;             /* of them without the idle */
    size_t idle_count;              /* have had a stream and wait for the next */
    struct connection_reuse *reuse; /* makes them of connections */
    struct list joins;              /* struct link_join: waiting for an answer */
    size_t join_count;
    struct map agents;  /* id -> struct link_agent */
    struct map streams; /* id text -> struct server_stream */
    size_t connected;
    struct manager_list managers;
    bool is_redirected; /* this manager does not lead */
    char *leader;       /* then: who does; NULL = not known */
    bool is_held;
    struct {
        int64_t epoch; /* the highest of those that follow a later epoch than ours; 0 = none do */
        char agent_id[128];
    } ahead;
    struct log_budget log; /* for strangers */
};

struct link_agent {
    struct link_server *server;
    char *id;
    struct uuid incarnation;
    struct uuid former[LINK_FORMER_MAX]; /* superseded incarnations, a ring */
    size_t former_count;
    struct link_peer peer;
    struct channel *channel; /* NULL while disconnected */
};

/* ---- server_agents.c ---- */

/* The first message of a control connection was a hello: take the channel
 * over, whatever comes of it.
 */
void server_agents_greet(struct link_server *server, struct channel *channel,
                         const struct msg_hello *hello);
/* All that are connected are told that another manager leads. */
void server_agents_redirect(struct link_server *server);
void server_agents_hold(struct link_server *server);
void server_agents_free(struct link_server *server);

/* Say why and close. */
void server_refuse(struct channel *channel, const char *kind, const char *text, int64_t retry_usec);
/* Refuse because this manager does not lead. */
void server_send_away(struct link_server *server, struct channel *channel);
/* Close without a word: to the agent whatever follows its stream_hello is data of the stream. */
void server_refuse_stream(struct channel *channel, const char *text);

/* ---- server_streams.c ---- */

/* The first message of a connection of 'agent_id' was a stream.hello: take it over. */
void server_streams_attach(struct link_server *server, struct channel *channel,
                           const char *agent_id, const struct msg_stream_hello *hello);
void server_streams_refused(struct link_server *server, const char *agent_id,
                            const struct msg_stream_refused *refused);
/* Those of the agent that have no connection yet will not get one. */
void server_streams_agent_gone(struct link_server *server, const char *agent_id);
/* All of the agent end, also those that have a connection. */
void server_streams_agent_out(struct link_server *server, const char *agent_id);
void server_streams_free(struct link_server *server);

/* ---- server_joins.c ---- */

void server_joins_ask(struct link_server *server, struct channel *channel,
                      const struct msg_join *msg);
void server_joins_free(struct link_server *server);

#endif
