/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting a stream: looks the name up and tries its addresses in turn. */
#include "http/stream.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "http/stream_internal.h"

#define DEFAULT_MSEC 30000
#define TRIES_MAX 8

/* A look-up by getaddrinfo(3), which cannot always be called off. */
struct stream_dial_lookup {
    uv_getaddrinfo_t req;
    struct stream *stream; /* NULL = nobody waits */
};

struct stream_dial {
    struct sockaddr_storage tries[TRIES_MAX];
    size_t count, next;
    struct address address;
    struct stream_dial_lookup *lookup;
    struct defer *timeout, *start;
    unsigned half_msec; /* of the time until on_open() */
    bool is_second_half;
    bool (*may_reach)(void *data, const struct sockaddr *addr);
    void *reach_data;
    bool is_refused; /* an address that it may not reach was left out */
};

void stream_stop_dialling(struct stream *s)
{
    struct stream_dial *d = s->dial;

    if (!d)
        return;
    s->dial = NULL;
    defer_cancel(d->timeout);
    defer_cancel(d->start);
    if (d->lookup) {
        d->lookup->stream = NULL;
        (void)uv_cancel((uv_req_t *)&d->lookup->req);
    }
    free(d);
}

static void stream_dial_fail(struct stream *s, int code, const char *why)
{
    const struct address *to = &s->dial->address;
    struct aq_error err = { .code = 0 };

    if (to->is_unix)
        (void)aq_fail(&err, code, "cannot connect to %s: %s", to->path, why);
    else
        (void)aq_fail(&err, code, "cannot connect to %s port %u: %s", to->host, to->port, why);
    stream_stop_dialling(s);
    stream_end(s, &err);
}

static void stream_dial_try_next(struct stream *s, int last);

static void stream_dial_on_connect(uv_connect_t *req, int status)
{
    struct stream *s = req->handle->data;

    if (!s || s->closed || !s->dial) /* another attempt has taken over */
        return;
    if (status < 0) {
        stream_dial_try_next(s, status);
        return;
    }
    if (!s->tls)
        stream_stop_dialling(s);
    stream_connected(s);
    if (s->is_open && !s->tls && !s->closed && s->ops->on_open)
        s->ops->on_open(s->data);
}

/* Try the next address; 'last' is why the one before failed. */
static void stream_dial_try_next(struct stream *s, int last)
{
    struct stream_dial *d = s->dial;

    while (d->next < d->count) {
        const struct sockaddr *to = (const struct sockaddr *)&d->tries[d->next++];

        stream_renew_handle(s);
        last = uv_tcp_connect(&s->handle->connect, &s->handle->uv.tcp, to, stream_dial_on_connect);
        if (last == 0)
            return;
    }
    if (!d->count && d->is_refused)
        stream_dial_fail(s, EACCES, "this address may not be reached");
    else
        stream_dial_fail(s, -last, stream_error_text(-last));
}

static void stream_dial_add_try(struct stream_dial *d, const struct sockaddr *addr, size_t len)
{
    if (d->may_reach && !d->may_reach(d->reach_data, addr))
        d->is_refused = true;
    else if (d->count < TRIES_MAX && len <= sizeof(d->tries[0]))
        memcpy(&d->tries[d->count++], addr, len);
}

static void stream_dial_on_found(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct stream_dial_lookup *lookup = AQ_CONTAINER_OF(req, struct stream_dial_lookup, req);
    struct stream *s = lookup->stream;

    free(lookup);
    if (s) {
        s->dial->lookup = NULL;
        for (struct addrinfo *a = list; a; a = a->ai_next)
            stream_dial_add_try(s->dial, a->ai_addr, a->ai_addrlen);
        if (status < 0)
            stream_dial_fail(s, EHOSTUNREACH, stream_error_text(-status));
        else
            stream_dial_try_next(s, UV_EHOSTUNREACH);
    }
    uv_freeaddrinfo(list);
}

static int stream_dial_look_up(struct stream *s, struct aq_error *err)
{
    static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct stream_dial *d = s->dial;
    struct stream_dial_lookup *lookup = aq_alloc(sizeof(*lookup));
    char port[8];
    int r;

    (void)snprintf(port, sizeof(port), "%u", d->address.port);
    r = uv_getaddrinfo(s->loop, &lookup->req, stream_dial_on_found, d->address.host, port, &hints);
    if (r < 0) {
        free(lookup);
        return aq_fail(err, -r, "cannot look up '%s': %s", d->address.host, uv_strerror(r));
    }
    lookup->stream = s;
    d->lookup = lookup;
    return 0;
}

/* Literals and "localhost" need no look-up, and so no thread. */
static void stream_dial_add_literals(struct stream_dial *d)
{
    bool is_localhost = !strcasecmp(d->address.host, "localhost");
    struct sockaddr_in four;
    struct sockaddr_in6 six;

    if (uv_ip4_addr(is_localhost ? "127.0.0.1" : d->address.host, d->address.port, &four) == 0)
        stream_dial_add_try(d, (const struct sockaddr *)&four, sizeof(four));
    if (uv_ip6_addr(is_localhost ? "::1" : d->address.host, d->address.port, &six) == 0)
        stream_dial_add_try(d, (const struct sockaddr *)&six, sizeof(six));
}

/* Half of the time is enough for the first answer of a machine that is there, busy or not. */
static void stream_dial_on_timeout(void *data)
{
    struct stream *s = data;
    struct stream_dial *d = s->dial;

    d->timeout = NULL;
    if (s->connected && !d->is_second_half) {
        d->is_second_half = true;
        d->timeout = defer_call(s->loop, d->half_msec, stream_dial_on_timeout, s);
        return;
    }
    stream_dial_fail(s, ETIMEDOUT, "no answer in time");
}

static void stream_dial_on_start(void *data)
{
    struct stream *s = data;

    s->dial->start = NULL;
    if (s->kind == STREAM_UNIX)
        uv_pipe_connect(&s->handle->connect, &s->handle->uv.pipe, s->dial->address.path,
                        stream_dial_on_connect);
    else
        stream_dial_try_next(s, UV_EHOSTUNREACH);
}

static int stream_dial_address(struct stream *s, const struct address *address,
                               const struct stream_options *options, struct aq_error *err)
{
    unsigned msec = options->connect_msec ? options->connect_msec : DEFAULT_MSEC;
    struct stream_dial *d = aq_alloc(sizeof(*d));

    s->dial = d;
    d->address = *address;
    d->may_reach = options->may_reach;
    d->reach_data = options->reach_data;
    if (s->kind == STREAM_UNIX)
        stream_renew_handle(s);
    else
        stream_dial_add_literals(d);
    d->half_msec = AQ_MAX(msec / 2, 1);
    d->timeout = defer_call(s->loop, d->half_msec, stream_dial_on_timeout, s);
    if (s->kind == STREAM_TCP && !d->count && !d->is_refused)
        return stream_dial_look_up(s, err);
    /* A refusal must not be told from within stream_connect(). */
    d->start = defer_call(s->loop, 0, stream_dial_on_start, s);
    return 0;
}

int stream_connect(uv_loop_t *loop, const struct address *address,
                   const struct stream_options *options, const struct stream_ops *ops, void *data,
                   struct stream **ret, struct aq_error *err)
{
    enum stream_kind kind = address->is_unix ? STREAM_UNIX : STREAM_TCP;
    const char *name = options->server_name ? options->server_name : address->host;
    struct stream *s = stream_new(loop, kind, ops, data);
    int r = 0;

    if (options->tls)
        r = stream_new_tls(s, options->tls, name, err);
    if (r == 0)
        r = stream_dial_address(s, address, options, err);
    if (r < 0) {
        stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int stream_adopt(uv_loop_t *loop, int fd, const struct stream_ops *ops, void *data,
                 struct stream **ret, struct aq_error *err)
{
    struct stream *s = stream_new(loop, STREAM_TCP, ops, data);
    int r;

    stream_renew_handle(s);
    r = uv_tcp_open(&s->handle->uv.tcp, fd);
    if (r < 0) {
        stream_close(s);
        return aq_fail(err, -r, "cannot take over a connection: %s", uv_strerror(r));
    }
    stream_connected(s);
    *ret = s;
    return 0;
}

int stream_start_tls(struct stream *s, struct tls_context *tls, const char *server_name,
                     struct aq_error *err)
{
    int r = stream_new_tls(s, tls, server_name, err);

    if (r == 0)
        stream_connected(s);
    return r;
}
