/* SPDX-License-Identifier: Apache-2.0 */
/* stream_internal.h - what stream.c and stream_dial.c share */
#ifndef AQ_HTTP_STREAM_INTERNAL_H
#define AQ_HTTP_STREAM_INTERNAL_H

#include <netinet/in.h>

#include "http/defer.h"
#include "http/stream.h"
#include "http/tls_session.h"

enum stream_kind { STREAM_TCP, STREAM_UNIX, STREAM_MEMORY };

/* Lives until libuv has closed it, which may be longer than its stream: an
 * attempt to connect that failed is replaced by a fresh one.
 */
struct stream_handle {
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_connect_t connect;
};

struct stream_dial;

struct stream {
    uv_loop_t *loop;
    enum stream_kind kind;
    const struct stream_ops *ops;
    void *data;
    struct stream_handle *handle;  /* NULL for STREAM_MEMORY */
    struct tls_session *tls;       /* NULL = plain, or the peer has said nothing yet: */
    struct tls_context *tls_later; /* accepted, until its first byte has come */
    struct stream_dial *dial;      /* while connecting */
    struct defer *later;           /* calls stream_on_later(), and at last frees */
    struct strbuf pushed;          /* read, but to be given to on_read() again */
    struct strbuf out;             /* to be sent after 'flight' */
    struct strbuf flight;          /* with libuv while 'writing' */
    struct strbuf *memory_out;     /* STREAM_MEMORY */
    uv_write_t write;
    uv_shutdown_t shutdown;
    uint64_t sent;
    int failed;     /* errno to be told by on_later(); 0 = none */
    bool is_open;   /* connected; with TLS after the handshake */
    bool connected; /* the transport is */
    bool is_broken; /* its end is to be an error for the peer */
    bool paused, writing, ended, closed, shutting;
    char address[INET6_ADDRSTRLEN];
};

/* A stream without a handle. */
struct stream *stream_new(uv_loop_t *loop, enum stream_kind kind, const struct stream_ops *ops,
                          void *data);

/* Give it a fresh handle; one it had before is closed. */
void stream_renew_handle(struct stream *s);

/* The TLS session that its bytes go through from now on; 'server_name' as in tls_session.h. */
int stream_new_tls(struct stream *s, struct tls_context *tls, const char *server_name,
                   struct aq_error *err);

/* The transport is there: begin to read, and the TLS handshake. */
void stream_connected(struct stream *s);

/* Tell the owner that it is over; 'err' has code 0 for an orderly end. */
void stream_end(struct stream *s, const struct aq_error *err);

/* An error as text; short memory is called the same everywhere. */
const char *stream_error_text(int code);

/* Forget the attempt to connect, if there is one. */
void stream_stop_dialling(struct stream *s);

#endif
