/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 client on a uv loop, with a pool of connections. */
#include "http/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/client_internal.h"

#define CONNECTIONS_MAX 32

struct client *client_new(uv_loop_t *loop, const struct client_options *options)
{
    struct client *client = aq_alloc(sizeof(*client));

    client->loop = loop;
    client->options = *options;
    if (!client->options.limits.head_max)
        client->options.limits = message_limits_default;
    if (!client->options.connections_max)
        client->options.connections_max = CONNECTIONS_MAX;
    if (options->tls)
        client->tls = tls_context_ref(options->tls);
    list_init(&client->exchanges);
    return client;
}

uv_loop_t *client_get_loop(const struct client *client)
{
    return client->loop;
}

static void client_pool_free(struct client_pool *pool)
{
    LIST_FOREACH(it, &pool->wires)
        wire_close(LIST_ENTRY(it, struct wire, link));
    map_done(&pool->owners);
    free(pool);
}

void client_free(struct client *client)
{
    struct aq_error err = { .code = 0 };

    if (!client)
        return;
    (void)aq_fail(&err, ECANCELED, "the client was closed");
    while (!list_is_empty(&client->exchanges)) {
        struct exchange *ex = LIST_ENTRY(client->exchanges.next, struct exchange, link);

        if (ex->wire)
            wire_close(ex->wire);
        ex->has_outcome = true;
        exchange_end(ex, &err);
    }
    for (size_t i = 0; i < client->pools.count; i++)
        client_pool_free(client->pools.entries[i].value);
    map_done(&client->pools);
    message_parser_free(client->spare);
    tls_context_free(client->tls);
    free(client);
}

/* ---- pools ---- */

static struct client_pool *client_pool_new(struct client *client, const struct address *address,
                                           const struct url *url)
{
    struct client_pool *pool = aq_alloc(sizeof(*pool));

    pool->client = client;
    pool->address = *address;
    pool->tls = url->tls;
    memcpy(pool->server_name, url->address.host, sizeof(pool->server_name));
    list_init(&pool->wires);
    list_init(&pool->queues);
    return pool;
}

/* The pool for this URL, made if there is none. */
static int client_pool_get(struct client *client, const struct url *url, const char *socket,
                           struct client_pool **ret, struct aq_error *err)
{
    struct address address = url->address;
    char key[2 * URL_HOST_MAX + URL_PATH_MAX + 16];
    struct client_pool *pool;
    int r;

    if (socket) {
        r = address_parse(socket, 0, &address, err);
        if (r < 0)
            return r;
    }
    (void)snprintf(key, sizeof(key), "%d %s %s %s %u", url->tls, url->address.host, address.host,
                   address.path, address.port);
    *ret = map_gets(&client->pools, key);
    if (*ret)
        return 0;
    pool = client_pool_new(client, &address, url);
    map_sets(&client->pools, key, pool);
    *ret = pool;
    return 0;
}

static int client_need_tls(struct client *client, struct aq_error *err)
{
    return client->tls ? 0 : tls_context_new(&(struct tls_options){ 0 }, &client->tls, err);
}

static struct wire *client_find_idle(struct client_pool *pool)
{
    struct wire *first = LIST_ENTRY(pool->wires.next, struct wire, link);

    return list_is_empty(&pool->wires) || first->exchange ? NULL : first;
}

static bool client_may_open(const struct client_pool *pool)
{
    const struct client_options *options = &pool->client->options;

    return pool->count < options->connections_max
           && (!options->connecting_max || pool->connecting < options->connecting_max);
}

/* Give the exchange an idle or new wire. 1 = there is none for it now. */
static int exchange_start(struct exchange *ex, struct aq_error *err)
{
    struct client_pool *pool = ex->pool;
    struct wire *idle = client_find_idle(pool);

    while (idle && ex->is_sent_once && !stream_is_quiet(idle->stream)) {
        wire_close(idle); /* the server has closed it, which would be the end of the exchange */
        idle = client_find_idle(pool);
    }
    if (idle) {
        wire_take(idle, ex);
        return 0;
    }
    return client_may_open(pool) ? wire_open(pool, ex, err) : 1;
}

/* ---- those that wait ---- */

static struct client_queue *client_queue_get(struct client_pool *pool, const char *owner)
{
    struct client_queue *queue = map_gets(&pool->owners, owner);

    if (queue)
        return queue;
    queue = aq_alloc(sizeof(*queue));
    queue->owner = aq_strdup(owner);
    list_init(&queue->exchanges);
    list_add(&pool->queues, &queue->link);
    map_sets(&pool->owners, owner, queue);
    return queue;
}

static void exchange_wait(struct exchange *ex, const char *owner)
{
    ex->queue = client_queue_get(ex->pool, owner ? owner : "");
    list_add(&ex->queue->exchanges, &ex->wait_link);
}

static void exchange_wait_no_more(struct exchange *ex)
{
    struct client_queue *queue = AQ_TAKE(ex->queue);

    if (!queue)
        return;
    list_remove(&ex->wait_link);
    if (!list_is_empty(&queue->exchanges))
        return;
    list_remove(&queue->link);
    (void)map_removes(&ex->pool->owners, queue->owner);
    free(queue->owner);
    free(queue);
}

/* One of each owner in turn. */
void pool_serve(struct client_pool *pool)
{
    struct aq_error err = { .code = 0 };

    while (!list_is_empty(&pool->queues) && (client_find_idle(pool) || client_may_open(pool))) {
        struct client_queue *queue = LIST_ENTRY(pool->queues.next, struct client_queue, link);
        struct exchange *ex = LIST_ENTRY(queue->exchanges.next, struct exchange, wait_link);
        int r = exchange_start(ex, &err);

        if (r > 0)
            return;
        list_remove(&queue->link);
        list_add(&pool->queues, &queue->link);
        exchange_wait_no_more(ex);
        if (r < 0)
            exchange_end(ex, &err);
    }
}

/* ---- exchanges ---- */

void exchange_free(struct exchange *ex)
{
    list_remove(&ex->link);
    exchange_wait_no_more(ex);
    defer_cancel(ex->timer);
    defer_cancel(ex->drain);
    strbuf_done(&ex->out);
    if (ex->release)
        ex->release(ex->data);
    free(ex);
}

void exchange_note_outcome(struct exchange *ex, int status)
{
    const struct client_options *options = &ex->client->options;
    const struct client_outcome outcome = { &ex->pool->address, status, ex->sent };

    if (options->on_outcome && !ex->has_outcome)
        options->on_outcome(options->outcome_data, &outcome);
    ex->has_outcome = true;
}

void exchange_end(struct exchange *ex, const struct aq_error *err)
{
    list_remove(&ex->link);
    exchange_wait_no_more(ex);
    exchange_note_outcome(ex, 0);
    ex->ops->on_end(ex, err, ex->data);
    exchange_free(ex);
}

static bool client_is_idempotent(enum method method)
{
    return method != METHOD_POST && method != METHOD_PATCH;
}

void exchange_fail(struct exchange *ex, bool reused, const struct aq_error *err)
{
    struct client_pool *pool = ex->pool;
    struct aq_error again = *err;

    if (reused && !ex->answered && !ex->retried && !ex->stream_body && !ex->is_sent_once
        && client_is_idempotent(ex->method)) {
        ex->retried = true;
        if (wire_open(pool, ex, &again) == 0)
            return;
    }
    exchange_end(ex, &again);
    pool_serve(pool);
}

void exchange_cancel(struct exchange *ex)
{
    struct client_pool *pool;

    if (!ex)
        return;
    pool = ex->pool;
    if (ex->wire)
        wire_close(ex->wire);
    exchange_free(ex);
    pool_serve(pool);
}

bool client_is_same_address(const struct address *a, const struct address *b)
{
    return a->is_unix == b->is_unix
           && (a->is_unix ? strcmp(a->path, b->path) == 0
                          : a->port == b->port && strcmp(a->host, b->host) == 0);
}

static struct exchange *client_find_broken(const struct client *client)
{
    LIST_FOREACH(it, &client->exchanges)
        if (LIST_ENTRY(it, struct exchange, link)->is_broken)
            return LIST_ENTRY(it, struct exchange, link);
    return NULL;
}

/* What an owner asks anew, when told, is not marked. */
void client_break(struct client *client, const struct address *address, const struct aq_error *err)
{
    struct exchange *ex;

    LIST_FOREACH(it, &client->exchanges) {
        ex = LIST_ENTRY(it, struct exchange, link);
        ex->is_broken = ex->method == METHOD_GET
                        && client_is_same_address(&ex->pool->address, address);
    }
    while ((ex = client_find_broken(client))) {
        struct client_pool *pool = ex->pool;

        if (ex->wire)
            wire_close(ex->wire);
        exchange_end(ex, err);
        pool_serve(pool);
    }
}

/* Whole header lines without an empty one among them. */
static bool client_are_lines(const char *headers)
{
    while (*headers) {
        size_t len = strcspn(headers, "\r\n");

        if (!len || headers[len] != '\r' || headers[len + 1] != '\n')
            return false;
        headers += len + 2;
    }
    return true;
}

static void client_write_request(struct strbuf *out, const struct client_request *r,
                                 const struct url *url)
{
    strbuf_adds(out, r->verb ? r->verb : method_name(r->method));
    strbuf_addc(out, ' ');
    strbuf_adds(out, r->target ? r->target : url->target);
    strbuf_adds(out, " HTTP/1.1\r\nHost: ");
    strbuf_adds(out, r->host ? r->host : url->authority);
    strbuf_adds(out, "\r\n");
    strbuf_adds(out, r->headers ? r->headers : "");
    if (r->stream_body && r->is_sized)
        strbuf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)r->body_length);
    else if (r->stream_body)
        strbuf_adds(out, "Transfer-Encoding: chunked\r\n");
    else if (r->body_len || (r->method != METHOD_GET && r->method != METHOD_HEAD))
        strbuf_addf(out, "Content-Length: %zu\r\n", r->body_len);
    strbuf_adds(out, "\r\n");
    strbuf_add(out, r->body, r->body_len);
}

static struct exchange *client_exchange_new(struct client *client, struct client_pool *pool,
                                            const struct client_request *request,
                                            const struct exchange_ops *ops, void *data)
{
    struct exchange *ex = aq_alloc(sizeof(*ex));

    ex->client = client;
    ex->pool = pool;
    ex->ops = ops;
    ex->data = data;
    ex->method = request->method;
    ex->body_max = request->body_max;
    ex->answer_msec = request->answer_msec ? request->answer_msec : client->options.answer_msec;
    ex->stream_body = request->stream_body;
    ex->is_sized = request->is_sized;
    ex->is_sent_once = request->is_sent_once;
    ex->finished = !request->stream_body;
    strbuf_init(&ex->out);
    list_init(&ex->wait_link);
    list_add(&client->exchanges, &ex->link);
    return ex;
}

int client_send(struct client *client, const struct client_request *request,
                const struct exchange_ops *ops, void *data, struct exchange **ret,
                struct aq_error *err)
{
    struct exchange *ex;
    struct client_pool *pool = NULL;
    struct url url;
    int r;

    r = url_parse(request->url, &url, err);
    if (r == 0 && request->headers && !client_are_lines(request->headers))
        r = aq_fail(err, EINVAL, "malformed header lines in a request");
    if (r == 0 && url.tls)
        r = client_need_tls(client, err);
    if (r == 0)
        r = client_pool_get(client, &url, request->socket, &pool, err);
    if (r < 0)
        return r;
    ex = client_exchange_new(client, pool, request, ops, data);
    client_write_request(&ex->out, request, &url);
    r = exchange_start(ex, err);
    if (r < 0) {
        exchange_note_outcome(ex, 0);
        exchange_free(ex);
        return r;
    }
    if (r > 0)
        exchange_wait(ex, request->owner);
    if (ret)
        *ret = ex;
    return 0;
}
