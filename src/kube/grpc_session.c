/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_session.c - see grpc_session.h */
#include "kube/grpc_session.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define TOGETHER_MAX 4096 /* an answer is three frames, and each write wakes the peer */

nghttp2_nv grpc_header(const char *name, const char *value)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                         .value = (uint8_t *)(uintptr_t)value,
                         .namelen = strlen(name),
                         .valuelen = strlen(value) };
}

nghttp2_session_callbacks *grpc_callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = NULL;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        memory_is_short();
    return callbacks;
}

void grpc_session_open(struct grpc_session *session, bool is_server,
                       nghttp2_session_callbacks *callbacks, void *data,
                       const nghttp2_settings_entry *settings, size_t count)
{
    nghttp2_option *option = NULL;
    int r;

    if (nghttp2_option_new(&option) != 0)
        memory_is_short();
    /* kubelets before 1.26 send the socket's path as :authority */
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_option_set_max_send_header_block_length(option, GRPC_HEADERS_MAX);
    r = is_server ? nghttp2_session_server_new2(&session->h2, callbacks, data, option)
                  : nghttp2_session_client_new2(&session->h2, callbacks, data, option);
    if (r != 0 || nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE, settings, count) != 0)
        memory_is_short();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

void grpc_session_close(struct grpc_session *session)
{
    nghttp2_session_del(session->h2);
    stream_close(session->stream);
    *session = (struct grpc_session){ .stream = NULL };
}

struct together {
    uint8_t bytes[TOGETHER_MAX];
    size_t len;
};

static int grpc_session_send(struct grpc_session *session, struct together *together)
{
    size_t len = together->len;

    together->len = 0;
    return len ? stream_write(session->stream, together->bytes, len) : 0;
}

/* What leaves no room for the frame is sent before, and so is a large one by itself. */
static int grpc_session_add(struct grpc_session *session, struct together *together,
                            const uint8_t *bytes, size_t len)
{
    int r = len > TOGETHER_MAX - together->len ? grpc_session_send(session, together) : 0;

    if (r < 0 || len > TOGETHER_MAX)
        return r < 0 ? r : stream_write(session->stream, bytes, len);
    memcpy(together->bytes + together->len, bytes, len);
    together->len += len;
    return 0;
}

/* Errors of stream_write(); -EPROTO. */
static int grpc_session_write(struct grpc_session *session)
{
    struct together together;
    const uint8_t *bytes;
    ssize_t len = 1;
    int r = 0;

    together.len = 0;
    while (r == 0 && stream_queued(session->stream) + together.len < GRPC_QUEUE_MAX
           && (len = nghttp2_session_mem_send(session->h2, &bytes)) > 0)
        r = grpc_session_add(session, &together, bytes, (size_t)len);
    if (r == 0)
        r = grpc_session_send(session, &together);
    return r == 0 && len < 0 ? -EPROTO : r;
}

int grpc_session_flush(struct grpc_session *session)
{
    int r;

    if (session->is_reading)
        return 0;
    r = grpc_session_write(session);
    if (r == -EPIPE)
        return 0; /* the stream's end says why */
    if (r < 0)
        return -EPROTO;
    if (stream_queued(session->stream) >= GRPC_QUEUE_MAX)
        stream_pause(session->stream); /* it shall read before it asks more */
    else if (stream_is_paused(session->stream))
        stream_resume(session->stream);
    return nghttp2_session_want_read(session->h2) || nghttp2_session_want_write(session->h2)
               ? 0
               : -EPROTO;
}

int grpc_session_read(struct grpc_session *session, const char *bytes, size_t len)
{
    ssize_t got;

    session->is_reading = true;
    got = nghttp2_session_mem_recv(session->h2, (const uint8_t *)bytes, len);
    session->is_reading = false;
    if (grpc_session_flush(session) < 0 || got < 0)
        return -EPROTO;
    return 0;
}
