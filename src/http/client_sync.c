/* SPDX-License-Identifier: Apache-2.0 */
/* The client for programs that wait: one private loop. */
#include "http/client_sync.h"

#include <stdlib.h>

#include "base/memory.h"

struct client_sync {
    uv_loop_t loop;
    struct client *client;
};

/* One answer being waited for. */
struct wait {
    struct client_reply *reply;
    client_sync_body_fn *on_body;
    void *data;
    bool done;
    int stopped; /* what on_body returned */
    struct aq_error err;
};

int client_sync_new(const struct client_options *options, struct client_sync **ret,
                    struct aq_error *err)
{
    struct client_sync *cs = aq_alloc(sizeof(*cs));
    int r;

    r = uv_loop_init(&cs->loop);
    if (r < 0) {
        free(cs);
        return aq_fail(err, -r, "cannot make an event loop: %s", uv_strerror(r));
    }
    cs->client = client_new(&cs->loop, options);
    *ret = cs;
    return 0;
}

void client_sync_free(struct client_sync *cs)
{
    if (!cs)
        return;
    client_free(cs->client);
    while (uv_run(&cs->loop, UV_RUN_ONCE))
        continue;
    (void)uv_loop_close(&cs->loop);
    free(cs);
}

uv_loop_t *client_sync_get_loop(struct client_sync *cs)
{
    return &cs->loop;
}

struct client *client_sync_get_client(struct client_sync *cs)
{
    return cs->client;
}

void client_reply_done(struct client_reply *reply)
{
    free(reply->content_type);
    strbuf_done(&reply->headers);
    strbuf_done(&reply->body);
    *reply = (struct client_reply)CLIENT_REPLY_INIT;
}

static void client_sync_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct wait *wait = data;
    struct client_reply *reply = wait->reply;
    const char *type = message_get_header(head, "Content-Type");

    (void)ex;
    reply->status = head->status;
    reply->content_type = aq_strdup(type ? type : "");
    for (size_t i = 0; i < head->header_count; i++)
        strbuf_addf(&reply->headers, "%s: %s\n", head->headers[i].name, head->headers[i].value);
}

static void client_sync_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct wait *wait = data;

    if (!wait->on_body || wait->reply->status / 100 != 2) {
        strbuf_add(&wait->reply->body, bytes, len);
        return;
    }
    wait->stopped = wait->on_body(wait->data, bytes, len);
    if (wait->stopped) {
        wait->done = true;
        exchange_cancel(ex);
    }
}

static void client_sync_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct wait *wait = data;

    (void)ex;
    wait->done = true;
    wait->err = *err;
}

static const struct exchange_ops wait_ops = {
    .on_head = client_sync_on_head,
    .on_body = client_sync_on_body,
    .on_end = client_sync_on_end,
};

int client_sync_stream(struct client_sync *cs, const struct client_request *request,
                       client_sync_body_fn *body_fn, void *data, struct client_reply *ret,
                       struct aq_error *err)
{
    struct client_reply reply = CLIENT_REPLY_INIT;
    struct wait wait = { .reply = &reply, .on_body = body_fn, .data = data };
    int r;

    r = client_send(cs->client, request, &wait_ops, &wait, NULL, err);
    if (r < 0)
        return r;
    while (!wait.done)
        (void)uv_run(&cs->loop, UV_RUN_ONCE);
    if (wait.err.code) {
        client_reply_done(&reply);
        if (err)
            *err = wait.err;
        return -wait.err.code;
    }
    *ret = reply;
    return wait.stopped;
}
