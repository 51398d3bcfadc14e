/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_server.c - see grpc_server.h */
#include "kube/grpc_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/listener.h"
#include "kube/grpc_session.h"

struct grpc_server {
    const struct grpc_method *methods;
    void *data;
    struct listener *listener;
    struct list connections;
    size_t count;
    uv_loop_t *loop;
};

struct grpc_connection {
    struct list link;
    struct grpc_server *server;
    struct grpc_session session;
    struct list calls;
    struct defer *closing; /* closes it from the loop */
};

struct grpc_call {
    struct list link;
    struct grpc_connection *connection;
    int32_t stream;
    const struct grpc_method *method; /* NULL = the path is none of ours */
    bool is_post, is_grpc;
    bool is_handled;  /* the handler has it */
    bool is_answered; /* the head of the answer is on its way */
    bool is_over;     /* the handler has said its last */
    struct grpc_message request;
    struct strbuf out, next; /* the message on its way, the one after it */
    size_t sent;             /* of 'out' */
    char status[8];
    struct strbuf text;
    void (*on_gone)(void *data);
    void *gone_data;
};

/* ---- connections ---- */

static void grpc_call_free(struct grpc_call *call)
{
    if (call->on_gone)
        call->on_gone(call->gone_data);
    list_remove(&call->link);
    grpc_message_done(&call->request);
    strbuf_done(&call->out);
    strbuf_done(&call->next);
    strbuf_done(&call->text);
    free(call);
}

static void grpc_connection_free(struct grpc_connection *c)
{
    LIST_FOREACH(link, &c->calls)
        grpc_call_free(LIST_ENTRY(link, struct grpc_call, link));
    list_remove(&c->link);
    c->server->count--;
    grpc_session_close(&c->session);
    defer_cancel(c->closing);
    free(c);
}

static void grpc_connection_on_closing(void *data)
{
    grpc_connection_free(data);
}

static void grpc_connection_flush(struct grpc_connection *c)
{
    if (grpc_session_flush(&c->session) < 0)
        defer_start(c->closing, 0);
}

static void grpc_connection_on_read(void *data, const char *bytes, size_t len)
{
    struct grpc_connection *c = data;

    if (grpc_session_read(&c->session, bytes, len) < 0)
        defer_start(c->closing, 0); /* what it is told of that may still go out */
}

static void grpc_connection_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    grpc_connection_free(data);
}

static void grpc_connection_on_drain(void *data)
{
    grpc_connection_flush(data);
}

/* ---- answers ---- */

/* The bytes of the answer, as HTTP/2 has room for them. */
static ssize_t grpc_call_on_room(nghttp2_session *h2, int32_t stream, uint8_t *buffer, size_t len,
                                 uint32_t *flags, nghttp2_data_source *source, void *data)
{
    struct grpc_call *call = source->ptr;

    (void)data;
    if (call->sent == call->out.len) {
        AQ_SWAP(call->out, call->next);
        strbuf_done(&call->next);
        call->sent = 0;
    }
    len = AQ_MIN(len, call->out.len - call->sent);
    if (len == 0 && !call->is_over)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(buffer, call->out.data + call->sent, len);
    call->sent += len;
    if (call->is_over && call->sent == call->out.len && call->next.len == 0) {
        const nghttp2_nv trailer[] = { grpc_header("grpc-status", call->status),
                                       grpc_header("grpc-message", call->text.data) };

        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(h2, stream, trailer, AQ_COUNT(trailer)) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return (ssize_t)len;
}

/* Send the head if it is not sent, else what follows it. */
static void grpc_call_go_on(struct grpc_call *call)
{
    nghttp2_session *h2 = call->connection->session.h2;
    const nghttp2_nv head[] = { grpc_header(":status", "200"),
                                grpc_header("content-type", "application/grpc") };
    const nghttp2_data_provider body = { .source.ptr = call, .read_callback = grpc_call_on_room };

    if (call->is_answered)
        (void)nghttp2_session_resume_data(h2, call->stream);
    else if (nghttp2_submit_response(h2, call->stream, head, AQ_COUNT(head), &body) != 0)
        defer_start(call->connection->closing, 0);
    call->is_answered = true;
    grpc_connection_flush(call->connection);
}

static void grpc_call_end(struct grpc_call *call, enum grpc_status status, const char *text)
{
    call->is_over = true;
    call->on_gone = NULL;
    (void)snprintf(call->status, sizeof(call->status), "%d", (int)status);
    grpc_text_write(text, &call->text);
}

void grpc_call_on_gone(struct grpc_call *call, void (*on_gone)(void *data), void *data)
{
    call->on_gone = on_gone;
    call->gone_data = data;
}

static void grpc_call_put(struct grpc_call *call, const ProtobufCMessage *message)
{
    struct strbuf *place = call->sent == call->out.len ? &call->out : &call->next;

    strbuf_clear(place);
    call->sent = place == &call->out ? 0 : call->sent;
    grpc_message_write(message, place);
}

void grpc_call_send(struct grpc_call *call, const ProtobufCMessage *message)
{
    grpc_call_put(call, message);
    grpc_call_go_on(call);
}

void grpc_call_reply(struct grpc_call *call, const ProtobufCMessage *message)
{
    grpc_call_put(call, message);
    grpc_call_end(call, GRPC_OK, "");
    grpc_call_go_on(call);
}

void grpc_call_fail(struct grpc_call *call, enum grpc_status status, const char *text)
{
    strbuf_done(&call->next);
    strbuf_truncate(&call->out, call->sent);
    grpc_call_end(call, status, text);
    grpc_call_go_on(call);
}

/* What is no gRPC is told so by HTTP alone. */
static void grpc_call_refuse(struct grpc_call *call, const char *http_status)
{
    const nghttp2_nv head[] = { grpc_header(":status", http_status) };

    grpc_call_end(call, GRPC_INTERNAL, "");
    if (nghttp2_submit_response(call->connection->session.h2, call->stream, head, AQ_COUNT(head),
                                NULL)
        != 0)
        defer_start(call->connection->closing, 0);
}

/* ---- requests ---- */

static void grpc_call_fail_request(struct grpc_call *call, const struct aq_error *err)
{
    char text[400];

    (void)snprintf(text, sizeof(text), "the request cannot be read: %s", err->text);
    log_warning("gRPC %s: %s", call->method ? call->method->path : "", text);
    grpc_call_fail(call,
                   err->code == EMSGSIZE     ? GRPC_RESOURCE_EXHAUSTED
                   : err->code == EOPNOTSUPP ? GRPC_UNIMPLEMENTED
                                             : GRPC_INTERNAL,
                   text);
}

/* The whole request has come. */
static void grpc_call_handle(struct grpc_call *call)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const ProtobufCMessage *request;
    struct aq_error err = { 0 };

    call->is_handled = true;
    if (!call->is_post || !call->is_grpc) {
        grpc_call_refuse(call, call->is_post ? "415" : "405");
        return;
    }
    if (!call->method) {
        grpc_call_fail(call, GRPC_UNIMPLEMENTED, "there is no such method");
        return;
    }
    request = grpc_message_decode(&call->request, call->method->request, &arena, &err);
    grpc_message_done(&call->request);
    if (request)
        call->method->handle(call->connection->server->data, call, request);
    else
        grpc_call_fail_request(call, &err);
}

static int grpc_call_on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    struct grpc_connection *c = data;
    struct grpc_call *call;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    call = aq_alloc(sizeof(*call));
    call->connection = c;
    call->stream = frame->hd.stream_id;
    strbuf_init(&call->out);
    strbuf_init(&call->next);
    strbuf_init(&call->text);
    list_add(&c->calls, &call->link);
    return nghttp2_session_set_stream_user_data(h2, call->stream, call);
}

static bool server_header_is(const uint8_t *text, size_t len, const char *what)
{
    return strlen(what) == len && memcmp(text, what, len) == 0;
}

static int grpc_call_on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                               size_t name_len, const uint8_t *value, size_t len, uint8_t flags,
                               void *data)
{
    static const char type[] = "application/grpc";
    struct grpc_call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    const struct grpc_connection *c = data;

    (void)flags;
    if (!call || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (server_header_is(name, name_len, ":method"))
        call->is_post = server_header_is(value, len, "POST");
    else if (server_header_is(name, name_len, "content-type"))
        call->is_grpc = len >= sizeof(type) - 1 && memcmp(value, type, sizeof(type) - 1) == 0;
    else if (server_header_is(name, name_len, ":path"))
        for (const struct grpc_method *m = c->server->methods; m->path; m++)
            call->method = server_header_is(value, len, m->path) ? m : call->method;
    return 0;
}

static int grpc_call_on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                             const uint8_t *bytes, size_t len, void *data)
{
    struct grpc_call *call = nghttp2_session_get_stream_user_data(h2, stream);
    struct aq_error err = { 0 };

    (void)flags;
    (void)data;
    if (!call || call->is_handled || grpc_message_feed(&call->request, bytes, len, &err) == 0)
        return 0;
    call->is_handled = true;
    grpc_call_fail_request(call, &err);
    return 0;
}

static int grpc_call_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    struct grpc_call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

    (void)data;
    if (call && !call->is_handled && frame->hd.flags & NGHTTP2_FLAG_END_STREAM
        && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
        grpc_call_handle(call);
    return 0;
}

static int grpc_call_on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *data)
{
    struct grpc_call *call = nghttp2_session_get_stream_user_data(h2, stream);

    (void)code;
    (void)data;
    if (call)
        grpc_call_free(call);
    return 0;
}

/* ---- the server ---- */

static void grpc_connection_open(struct grpc_connection *c)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_CALLS_MAX },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
    };
    nghttp2_session_callbacks *callbacks = grpc_callbacks_new();

    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, grpc_call_on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, grpc_call_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, grpc_call_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, grpc_call_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, grpc_call_on_close);
    grpc_session_open(&c->session, true, callbacks, c, settings, AQ_COUNT(settings));
}

static void server_on_waiting(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_read = grpc_connection_on_read,
                                           .on_end = grpc_connection_on_end,
                                           .on_drain = grpc_connection_on_drain };
    struct grpc_server *server = data;
    struct grpc_connection *c = aq_alloc(sizeof(*c));
    struct stream *stream;

    if (listener_accept(listener, &ops, c, &stream, NULL) < 0) {
        free(c);
        listener_wait(listener);
        return;
    }
    c->server = server;
    c->session.stream = stream;
    list_init(&c->calls);
    list_add(&server->connections, &c->link);
    server->count++;
    c->closing = defer_new(server->loop, grpc_connection_on_closing, c);
    if (server->count > GRPC_CONNECTIONS_MAX)
        grpc_connection_free(c);
    else
        grpc_connection_open(c);
}

int grpc_server_new(const struct grpc_server_conf *conf, struct grpc_server **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *address = aq_format("unix:%s", conf->path);
    struct grpc_server *server = aq_alloc(sizeof(*server));
    const struct listener_options options = { .address = address };
    int r;

    *server = (struct grpc_server){ .methods = conf->methods,
                                    .data = conf->data,
                                    .loop = conf->loop };
    list_init(&server->connections);
    r = listener_new(conf->loop, &options, server_on_waiting, server, &server->listener, err);
    if (r < 0)
        free(server);
    else
        *ret = server;
    return r;
}

void grpc_server_free(struct grpc_server *server)
{
    if (!server)
        return;
    LIST_FOREACH(link, &server->connections)
        grpc_connection_free(LIST_ENTRY(link, struct grpc_connection, link));
    listener_close(server->listener);
    free(server);
}
