/* SPDX-License-Identifier: Apache-2.0 */
/* A request whose whole answer is collected before it is given. */
#include "http/client.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "http/client_internal.h"

/* An answer being collected. */
struct client_fetch {
    const struct message_head *head; /* lives until client_fetch_on_end() has returned */
    struct strbuf body;
    client_done_fn *on_done;
    void *data;
};

static void client_fetch_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct client_fetch *fetch = data;

    (void)ex;
    fetch->head = head;
}

static void client_fetch_on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct client_fetch *fetch = data;

    (void)ex;
    strbuf_add(&fetch->body, bytes, len);
}

static void client_fetch_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct client_fetch *fetch = data;
    struct client_response response = { fetch->head, fetch->body.data, fetch->body.len };
    struct aq_error own = *err;

    (void)ex;
    fetch->on_done(fetch->data, own.code ? NULL : &response, &own);
}

static void client_fetch_free(void *data)
{
    struct client_fetch *fetch = data;

    strbuf_done(&fetch->body);
    free(fetch);
}

static const struct exchange_ops fetch_ops = {
    .on_head = client_fetch_on_head,
    .on_body = client_fetch_on_body,
    .on_end = client_fetch_on_end,
};

int client_fetch(struct client *client, const struct client_request *request,
                 client_done_fn *on_done, void *data, struct exchange **ret, struct aq_error *err)
{
    struct client_fetch *fetch = aq_alloc(sizeof(*fetch));
    struct exchange *ex = NULL;
    int r;

    strbuf_init(&fetch->body);
    fetch->on_done = on_done;
    fetch->data = data;
    r = client_send(client, request, &fetch_ops, fetch, &ex, err);
    if (r < 0) {
        free(fetch);
        return r;
    }
    ex->release = client_fetch_free;
    if (ret)
        *ret = ex;
    return 0;
}
