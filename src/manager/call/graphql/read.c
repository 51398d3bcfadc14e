/* SPDX-License-Identifier: Apache-2.0 */
/* What a request reads from the store: one thing after another, within its bytes. */
#include <errno.h>

#include "manager/call/graphql/resolve.h"

/* A read of a request that waits for the one before it. */
struct gql_read {
    struct gql_context *context;
    const struct arena *arena; /* the call's */
    store_tx_fn fn;
    store_done_fn done;
    void *data;
    struct gql_read *next;
};

static void gql_read_start_next(struct gql_context *context);

/* The next one begins before this one's result is used: its call is what keeps the request. */
static void gql_read_on_done(void *data, int r, const struct aq_error *err)
{
    struct gql_read *read = data;
    struct gql_context *context = read->context;

    context->is_reading = false;
    context->is_full |= r == -EMSGSIZE;
    gql_read_start_next(context);
    read->done(read->data, r, err); /* may end the request */
}

static int gql_read_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct gql_read *read = data;

    return read->fn(tx, read->data, err);
}

/* What is not worth reading fails with the error of the context. */
static bool gql_read_is_wanted(struct gql_context *context, const struct arena *arena)
{
    if (request_is_gone(context->req))
        aq_fail(&context->read_err, EPIPE, "the client has gone");
    else if (context->is_full)
        aq_fail_field(&context->read_err, EMSGSIZE, "limit",
                      "the lists before have taken all room for rows: ask for fewer");
    else if (arena_is_over(arena))
        aq_fail(&context->read_err, ENOMEM, "out of memory");
    else
        return true;
    return false;
}

static void gql_read_start_next(struct gql_context *context)
{
    struct gql_read *read = context->reads;

    if (!read)
        return;
    context->reads = read->next;
    context->is_reading = true;
    if (gql_read_is_wanted(context, read->arena))
        store_read(core_store(context->api->core), gql_read_run, gql_read_on_done, read);
    else
        gql_read_on_done(read, -context->read_err.code, &context->read_err);
}

int gql_read(struct gql_call *call, store_tx_fn fn, store_done_fn done, void *data)
{
    struct gql_context *context = call->context;
    struct gql_read *read = arena_alloc(call->arena, sizeof(*read));
    struct gql_read **last = &context->reads;

    *read = (struct gql_read){
        .context = context, .arena = call->arena, .fn = fn, .done = done, .data = data
    };
    if (context->reads)
        last = &context->last_read->next;
    *last = context->last_read = read;
    if (!context->is_reading)
        gql_read_start_next(context);
    return GQL_LATER;
}

int gql_set_room(const struct gql_context *context, struct store_query *query, struct aq_error *err)
{
    if (context->kept_bytes >= GQL_KEPT_MAX)
        return aq_fail_field(err, EMSGSIZE, "limit",
                             "the rows of all lists have more than %d bytes: ask for fewer",
                             GQL_KEPT_MAX);
    query->bytes_max = GQL_KEPT_MAX - context->kept_bytes;
    return 0;
}

void gql_keep(struct gql_context *context, struct arena *arena, struct store_page *page)
{
    struct gql_page *kept = arena_alloc(arena, sizeof(*kept));

    *kept = (struct gql_page){ .page = page, .next = context->pages };
    context->pages = kept;
    context->kept_bytes += page->arena.used;
}
