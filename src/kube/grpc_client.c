/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_client.c - see grpc_client.h */
#include "kube/grpc_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/defer.h"
#include "kube/grpc_session.h"

#define CONNECT_MSEC 5000

struct grpc_request {
    struct grpc_session session;
    struct defer *deadline;
    char *method;
    struct strbuf out; /* the message */
    size_t sent;
    char timeout[24]; /* grpc-timeout */
    const ProtobufCMessageDescriptor *kind;
    struct grpc_message answer;
    int status; /* of gRPC; negative = not told yet */
    struct strbuf text;
    bool is_closed; /* the stream is over: what there is decides */
    struct aq_error err;
    grpc_done_fn *on_done;
    void *data;
};

static void grpc_request_free(struct grpc_request *request)
{
    grpc_session_close(&request->session);
    defer_cancel(request->deadline);
    grpc_message_done(&request->answer);
    strbuf_done(&request->out);
    strbuf_done(&request->text);
    free(request->method);
    free(request);
}

void grpc_request_cancel(struct grpc_request *request)
{
    if (request)
        grpc_request_free(request);
}

static void grpc_request_finish(struct grpc_request *request)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const ProtobufCMessage *answer = NULL;
    grpc_done_fn *on_done = request->on_done;
    void *data = request->data;
    struct aq_error err = request->err;

    if (!err.code && request->status < 0)
        (void)aq_fail(&err, EPROTO, "the answer ends early");
    else if (!err.code && request->status != GRPC_OK)
        (void)aq_fail(&err, EREMOTEIO, "status %d: %.300s", request->status, request->text.data);
    if (!err.code)
        answer = grpc_message_decode(&request->answer, request->kind, &arena, &err);
    grpc_request_free(request);
    on_done(data, answer, &err);
}

static void grpc_request_fail(struct grpc_request *request, int code, const char *text)
{
    if (!request->err.code)
        (void)aq_fail(&request->err, code, "%s", text);
    grpc_request_finish(request);
}

static void grpc_request_on_deadline(void *data)
{
    struct grpc_request *request = data;

    request->deadline = NULL;
    grpc_request_fail(request, ETIMEDOUT, "no answer in time");
}

/* ---- HTTP/2 ---- */

static ssize_t grpc_request_on_room(nghttp2_session *h2, int32_t stream, uint8_t *buffer,
                                    size_t len, uint32_t *flags, nghttp2_data_source *source,
                                    void *data)
{
    struct grpc_request *request = data;

    (void)h2;
    (void)stream;
    (void)source;
    len = AQ_MIN(len, request->out.len - request->sent);
    memcpy(buffer, request->out.data + request->sent, len);
    request->sent += len;
    if (request->sent == request->out.len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

static int grpc_request_on_header(nghttp2_session *h2, const nghttp2_frame *frame,
                                  const uint8_t *name, size_t name_len, const uint8_t *value,
                                  size_t len, uint8_t flags, void *data)
{
    struct grpc_request *request = data;

    (void)h2;
    (void)flags;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (name_len == 7 && memcmp(name, ":status", 7) == 0
        && (len != 3 || memcmp(value, "200", 3) != 0) && !request->err.code)
        (void)aq_fail(&request->err, EPROTO, "HTTP status %.*s", (int)AQ_MIN(len, (size_t)3),
                      (const char *)value);
    if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0)
        request->status = grpc_status_read((const char *)value, len);
    if (name_len == 12 && memcmp(name, "grpc-message", 12) == 0) {
        strbuf_clear(&request->text);
        grpc_text_read((const char *)value, len, &request->text);
    }
    return 0;
}

static int grpc_request_on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                                const uint8_t *bytes, size_t len, void *data)
{
    struct grpc_request *request = data;

    (void)flags;
    if (!request->err.code && grpc_message_feed(&request->answer, bytes, len, &request->err) < 0)
        (void)nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    return 0;
}

static int grpc_request_on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *data)
{
    struct grpc_request *request = data;

    (void)h2;
    (void)stream;
    request->is_closed = true;
    if (code != NGHTTP2_NO_ERROR && request->status < 0 && !request->err.code)
        (void)aq_fail(&request->err, EPROTO, "the peer has reset the call: %s",
                      nghttp2_http2_strerror(code));
    return 0;
}

/* ---- the connection ---- */

static void grpc_request_on_open(void *data)
{
    struct grpc_request *request = data;
    const nghttp2_data_provider body = { .read_callback = grpc_request_on_room };
    const nghttp2_nv head[] = {
        grpc_header(":method", "POST"),
        grpc_header(":scheme", "http"),
        grpc_header(":path", request->method),
        grpc_header(":authority", "localhost"),
        grpc_header("te", "trailers"),
        grpc_header("grpc-timeout", request->timeout),
        grpc_header("content-type", "application/grpc"),
        grpc_header("user-agent", "aliquot/" ALIQUOT_VERSION),
    };

    if (nghttp2_submit_request(request->session.h2, NULL, head, AQ_COUNT(head), &body, NULL) < 0
        || grpc_session_flush(&request->session) < 0)
        grpc_request_fail(request, EPROTO, "the request cannot be sent");
}

static void grpc_request_on_read(void *data, const char *bytes, size_t len)
{
    struct grpc_request *request = data;
    int r = grpc_session_read(&request->session, bytes, len);

    if (request->is_closed)
        grpc_request_finish(request);
    else if (r < 0)
        grpc_request_fail(request, EPROTO, "the peer does not speak HTTP/2");
}

static void grpc_request_on_end(void *data, const struct aq_error *err)
{
    grpc_request_fail(data, err->code ? err->code : ECONNRESET,
                      err->code ? err->text : "the peer has closed the connection");
}

static void grpc_request_on_drain(void *data)
{
    struct grpc_request *request = data;

    if (grpc_session_flush(&request->session) < 0)
        grpc_request_fail(request, EPROTO, "the request cannot be sent");
}

static void grpc_request_open(struct grpc_request *request)
{
    const nghttp2_settings_entry settings[] = { { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 } };
    nghttp2_session_callbacks *callbacks = grpc_callbacks_new();

    nghttp2_session_callbacks_set_on_header_callback(callbacks, grpc_request_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, grpc_request_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, grpc_request_on_close);
    grpc_session_open(&request->session, false, callbacks, request, settings, AQ_COUNT(settings));
}

int grpc_request_send(uv_loop_t *loop, const struct grpc_request_conf *conf,
                      struct grpc_request **ret, struct aq_error *err)
{
    static const struct stream_ops ops = { .on_open = grpc_request_on_open,
                                           .on_read = grpc_request_on_read,
                                           .on_end = grpc_request_on_end,
                                           .on_drain = grpc_request_on_drain };
    const struct stream_options options = { .connect_msec = CONNECT_MSEC };
    AQ_CLEANUP(aq_freep) char *text = aq_format("unix:%s", conf->socket);
    struct grpc_request *request = aq_alloc(sizeof(*request));
    struct address address;
    int r = address_parse(text, 0, &address, err);

    if (r < 0) {
        free(request);
        return r;
    }
    *request = (struct grpc_request){ .kind = conf->answer,
                                      .status = -1,
                                      .on_done = conf->on_done,
                                      .data = conf->data,
                                      .method = aq_strdup(conf->method),
                                      .out = STRBUF_INIT,
                                      .text = STRBUF_INIT };
    (void)snprintf(request->timeout, sizeof(request->timeout), "%um", conf->msec);
    grpc_message_write(conf->message, &request->out);
    request->deadline = defer_call(loop, conf->msec, grpc_request_on_deadline, request);
    grpc_request_open(request);
    r = stream_connect(loop, &address, &options, &ops, request, &request->session.stream, err);
    if (r < 0)
        grpc_request_free(request);
    else
        *ret = request;
    return r;
}
