/* SPDX-License-Identifier: Apache-2.0 */
/* sse.h - server-sent events: writing and reading text/event-stream */
#ifndef AQ_HTTP_SSE_H
#define AQ_HTTP_SSE_H

#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "http/server.h"

/* Begin an event stream as the answer. The server sends a comment after every
 * 15 s of silence (server_limits.keepalive_msec). Then sse_send() and at last request_end().
 */
void sse_begin(struct request *req, void (*on_drain)(struct request *req, void *data), void *data);

/* One event; 'event' and 'id' may be NULL, line breaks in 'data' are split
 * into data lines. Errors as request_write(): a reader that is too slow gets
 * -ENOBUFS, and the writer then ends the stream.
 */
int sse_send(struct request *req, const char *event, const char *id, const char *data, size_t len);

/* The text of one event. */
void sse_format(struct strbuf *out, const char *event, const char *id, const char *data,
                size_t len);

struct sse_event {
    const char *event; /* "message" where it has none */
    const char *data;
    size_t data_len;
    const char *id;  /* last id seen, "" if none */
    long retry_msec; /* last retry seen, -1 if none */
};

/* Nonzero stops the feeding. */
typedef int sse_event_fn(void *data, const struct sse_event *event);

struct sse_reader;

/* 'event_max' bounds the bytes of one event. */
struct sse_reader *sse_reader_new(size_t event_max, sse_event_fn *on_event, void *data);
void sse_reader_free(struct sse_reader *reader);
AQ_DEFINE_CLEANUP(struct sse_reader, sse_reader_free)

/* 0, the callback's result, -EMSGSIZE for an event beyond the bound. */
int sse_reader_feed(struct sse_reader *reader, const char *bytes, size_t len,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
