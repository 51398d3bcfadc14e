/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: writing and reading text/event-stream. */
#include "http/sse.h"

#include "http/server_internal.h"

void sse_begin(struct request *req, void (*on_drain)(struct request *req, void *data), void *data)
{
    request_add_header(req, "Cache-Control", "no-cache");
    request_add_header(req, "X-Accel-Buffering", "no");
    request_begin(req, 200, "text/event-stream", on_drain, data);
    request_set_keepalive(req, ":\n\n");
}

int sse_send(struct request *req, const char *event, const char *id, const char *data, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    sse_format(&text, event, id, data, len);
    return request_write(req, text.data, text.len);
}
