/* SPDX-License-Identifier: Apache-2.0 */
/* Talk to a server without a socket, for tests and fuzzing. */
#include "http/loopback.h"

#include <stdlib.h>

#include "base/memory.h"
#include "http/server_internal.h"

struct loopback {
    struct strbuf output;
    struct server *server;
    struct connection *conn; /* may be gone: see loopback_find() */
};

struct loopback *loopback_new(struct server *server)
{
    struct loopback *lb = aq_alloc(sizeof(*lb));

    strbuf_init(&lb->output);
    lb->server = server;
    server->ready.is_unlimited = true; /* nobody runs the loop between two sends */
    lb->conn = connection_new(server);
    lb->conn->stream = stream_memory(server->loop, &lb->output, &connection_ops, lb->conn);
    server_start_connection(lb->conn);
    return lb;
}

/* The connection, if its stream is still there. */
static struct connection *loopback_find(const struct loopback *lb)
{
    LIST_FOREACH(it, &lb->server->connections)
        if (LIST_ENTRY(it, struct connection, all) == lb->conn)
            return lb->conn->stream ? lb->conn : NULL;
    return NULL;
}

void loopback_send(struct loopback *lb, const void *bytes, size_t len)
{
    struct connection *conn = loopback_find(lb);

    if (conn)
        stream_memory_feed(conn->stream, bytes, len);
}

void loopback_settle(struct loopback *lb)
{
    do
        (void)uv_run(lb->server->loop, UV_RUN_NOWAIT);
    while (uv_is_active((uv_handle_t *)lb->server->ready.idle));
}

void loopback_hang_up(struct loopback *lb)
{
    struct connection *conn = loopback_find(lb);

    if (conn)
        stream_memory_end(conn->stream);
}

struct strbuf *loopback_get_output(struct loopback *lb)
{
    return &lb->output;
}

bool loopback_is_closed(const struct loopback *lb)
{
    struct connection *conn = loopback_find(lb);

    return !conn || conn->state == CONNECTION_LINGER;
}

void loopback_free(struct loopback *lb)
{
    struct connection *conn;

    if (!lb)
        return;
    loopback_hang_up(lb);
    conn = loopback_find(lb); /* the end may wait for its turn, and 'output' goes now */
    if (conn)
        connection_drop(conn);
    strbuf_done(&lb->output);
    free(lb);
}
