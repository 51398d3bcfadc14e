/* SPDX-License-Identifier: Apache-2.0 */
/* server_streams.c - the streams that a server has asked for, until they have a connection */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "link/server_internal.h"

struct server_stream {
    struct link_stream *stream;
    char *agent_id;
    char key[UUID_TEXT_MAX]; /* random, used once */
    struct uuid id;
};

static struct server_stream *server_streams_find(struct link_server *server, const struct uuid *id,
                                                 const char *agent_id)
{
    char text[UUID_TEXT_MAX];
    struct server_stream *found = map_gets(&server->streams, uuid_format(id, text));

    return found && strcmp(found->agent_id, agent_id) == 0 ? found : NULL;
}

static void server_streams_on_gone(void *owner, struct link_stream *stream)
{
    struct link_server *server = owner;
    char text[UUID_TEXT_MAX];
    struct server_stream *entry = map_removes(&server->streams,
                                              uuid_format(link_stream_id(stream), text));

    if (entry)
        free(entry->agent_id);
    free(entry);
}

static int server_streams_send_open(struct link_server *server, struct server_stream *entry,
                                    struct msg_stream_open *open, struct aq_error *err)
{
    struct message msg = { .type = MSG_STREAM_OPEN };

    open->stream_id = entry->id;
    open->key = entry->key;
    open->reuse = true;
    msg.stream_open = *open;
    open->key = NULL;
    return link_server_send(server, entry->agent_id, &msg, err);
}

int link_server_open_stream(struct link_server *server, const char *agent_id,
                            struct msg_stream_open *open, const struct link_stream_ops *ops,
                            void *data, struct link_stream **ret, struct aq_error *err)
{
    struct server_stream *entry = aq_alloc(sizeof(*entry));
    char text[UUID_TEXT_MAX];
    struct uuid key = uuid_random();
    int r;

    entry->agent_id = aq_strdup(agent_id);
    entry->id = uuid_random();
    (void)uuid_format(&key, entry->key);
    map_sets(&server->streams, uuid_format(&entry->id, text), entry);
    entry->stream = link_stream_new(server->conf.loop, &entry->id, ops, data);
    link_stream_on_gone(entry->stream, server_streams_on_gone, server);
    r = server_streams_send_open(server, entry, open, err);
    if (r < 0) {
        link_stream_close(entry->stream);
        return r;
    }
    *ret = entry->stream;
    return 0;
}

void server_streams_attach(struct link_server *server, struct channel *channel,
                           const char *agent_id, const struct msg_stream_hello *hello)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    struct server_stream *entry = server_streams_find(server, &hello->stream_id, agent_id);

    if (!entry || link_stream_is_attached(entry->stream) || strlen(hello->key) != strlen(entry->key)
        || CRYPTO_memcmp(hello->key, entry->key, strlen(entry->key)) != 0) {
        server_refuse_stream(channel, "nobody waits for it");
        return;
    }
    AQ_FAULT("link.stream.attached");
    link_stream_attach(entry->stream, channel_release(channel, &rest), &rest,
                       hello->framed ? server->reuse : NULL);
}

void server_streams_refused(struct link_server *server, const char *agent_id,
                            const struct msg_stream_refused *refused)
{
    struct server_stream *entry = server_streams_find(server, &refused->stream_id, agent_id);
    struct aq_error err;

    if (!entry || link_stream_is_attached(entry->stream))
        return;
    (void)aq_fail(&err, refused->kind && strcmp(refused->kind, "not-found") == 0 ? ENOENT : EINVAL,
                  "%s", refused->text ? refused->text : "the agent refused the stream");
    link_stream_fail(entry->stream, &err);
}

static void server_streams_end(struct link_server *server, const char *agent_id, bool attached,
                               const struct aq_error *err)
{
    /* ending one removes it, and its callback may end others: look again each time */
    for (size_t i = 0; i < server->streams.count;) {
        struct server_stream *entry = server->streams.entries[i].value;

        if (strcmp(entry->agent_id, agent_id) == 0
            && (attached || !link_stream_is_attached(entry->stream))) {
            link_stream_fail(entry->stream, err);
            i = 0;
        } else {
            i++;
        }
    }
}

void server_streams_agent_gone(struct link_server *server, const char *agent_id)
{
    struct aq_error err;

    (void)aq_fail_kind(&err, ENOTCONN, "service-unavailable", "agent '%s' has disconnected",
                       agent_id);
    server_streams_end(server, agent_id, false, &err);
}

void server_streams_agent_out(struct link_server *server, const char *agent_id)
{
    struct aq_error err;

    (void)aq_fail_kind(&err, ENOTCONN, "service-unavailable", "agent '%s' may not connect any more",
                       agent_id);
    server_streams_end(server, agent_id, true, &err);
}

void server_streams_free(struct link_server *server)
{
    while (server->streams.count) {
        struct server_stream *entry = server->streams.entries[0].value;

        link_stream_close(entry->stream);
    }
    map_done(&server->streams);
}
