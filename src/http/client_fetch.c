#include "http/client.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "http/client_inner.h"

/* An answer being collected. */
struct fetch {
    const struct message_head *head; /* lives until on_end() has returned */
    struct strbuf body;
    client_done_fn *on_done;
    void *data;
};

static void on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct fetch *fetch = data;

    (void)ex;
    fetch->head = head;
}

static void on_body(struct exchange *ex, const char *bytes, size_t len, void *data)
{
    struct fetch *fetch = data;

    (void)ex;
    strbuf_add(&fetch->body, bytes, len);
}

static void on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    struct fetch *fetch = data;
    struct client_response response = { fetch->head, fetch->body.data, fetch->body.len };
    struct aq_error own = *err;

    (void)ex;
    if (!own.code && !strbuf_ok(&fetch->body))
        (void)aq_fail(&own, ENOMEM, "no memory for an answer");
    fetch->on_done(fetch->data, own.code ? NULL : &response, &own);
}

static void free_fetch(void *data)
{
    struct fetch *fetch = data;

    strbuf_done(&fetch->body);
    free(fetch);
}

static const struct exchange_ops fetch_ops = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
};

int client_fetch(struct client *client, const struct client_request *request,
                 client_done_fn *on_done, void *data, struct exchange **ret, struct aq_error *err)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    struct exchange *ex = NULL;
    int r;

    if (!fetch)
        return aq_fail(err, ENOMEM, "no memory for an answer");
    strbuf_init(&fetch->body);
    fetch->on_done = on_done;
    fetch->data = data;
    r = client_send(client, request, &fetch_ops, fetch, &ex, err);
    if (r < 0) {
        free(fetch);
        return r;
    }
    ex->release = free_fetch;
    if (ret)
        *ret = ex;
    return 0;
}
