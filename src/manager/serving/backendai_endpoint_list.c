/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_endpoint_list.c - see backendai_endpoint_list.h */
#include "manager/serving/backendai_endpoint_list.h"

#include <errno.h>
#include <string.h>

#include "graphql/relay.h"

#define ENDED_BYTES_MAX ((size_t)16 << 20) /* a request has 32 MiB for all of its rows */

static bool endpoint_is_asked(const struct endpoint_query *q, const struct model_service *s)
{
    const struct gql_context *context = q->call->context;

    return serving_view_may(context->req, s) && (!q->id || uuid_equals(q->id, &s->id))
           && (!q->project_id || uuid_equals(q->project_id, &s->project_id))
           && (!q->user_id || uuid_equals(q->user_id, &s->user_id))
           && (!q->domain || (s->domain && strcmp(q->domain, s->domain) == 0));
}

struct endpoint_rows endpoint_collect(const struct endpoint_query *q)
{
    const struct api *api = ((const struct gql_context *)q->call->context)->api;
    struct arena *arena = q->call->arena;
    struct endpoint_rows rows = { .count = 0 };
    uint32_t live = 0;

    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));)
        live += endpoint_is_asked(q, s);
    if (!arena_has_room(arena, live + q->ended.count + 1, sizeof(*rows.items)))
        return rows;
    rows.items = arena_array(arena, live + q->ended.count + 1, sizeof(*rows.items));
    rows.count = live;
    for (const struct model_service *s = NULL;
         live && !arena_is_over(arena) && (s = core_next_service(api->core, s));)
        if (endpoint_is_asked(q, s))
            endpoint_fill(api, s, arena, &rows.items[--live]);
    if (live) { /* no room: the request fails, and rows that are not filled in are nobody's */
        rows.count = 0;
        return rows;
    }
    for (size_t i = 0; i < q->ended.count && !arena_is_over(arena); i++)
        if (endpoint_is_asked(q, &q->ended.items[i]))
            endpoint_fill(api, &q->ended.items[i], arena, &rows.items[rows.count++]);
    return rows;
}

/* store_tx_fn */
static int endpoint_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct endpoint_query *q = data;
    const struct gql_context *context = q->call->context;
    struct model_service_ended of = serving_view_ended(context->who, true);
    char id[UUID_TEXT_MAX];

    of.text = q->id ? uuid_format(q->id, id) : NULL;
    of.bytes_max = ENDED_BYTES_MAX;
    of.leaves_out = true;               /* clients cannot ask for fewer */
    model_service_rows_done(&q->ended); /* of a try before */
    return store_read_ended_model_services(tx, &of, &q->ended, err);
}

static void endpoint_on_read(void *data, int r, const struct aq_error *err)
{
    struct endpoint_query *q = data;
    struct endpoint_rows rows;

    if (r < 0) {
        gql_call_fail(q->call, "%s", err->text);
    } else {
        rows = endpoint_collect(q);
        q->answer(q->call, &rows);
    }
    model_service_rows_done(&q->ended);
    gql_call_done(q->call);
}

int endpoint_query_start(struct endpoint_query *q, bool with_ended)
{
    struct endpoint_rows rows;

    if (with_ended)
        return gql_read(q->call, endpoint_read_ended, endpoint_on_read, q);
    rows = endpoint_collect(q);
    q->answer(q->call, &rows);
    return GQL_DONE;
}

struct endpoint_query *endpoint_query_new(struct gql_call *call)
{
    struct endpoint_query *q = arena_alloc(call->arena, sizeof(*q));

    q->call = call;
    return q;
}

int endpoint_arg_uuid(const struct gql_call *call, const char *name, const struct uuid **ret,
                      struct aq_error *err)
{
    const struct gql_input_def *def = gql_input_find(call->field->args, call->field->arg_count,
                                                     name, strlen(name));
    const char *text = def ? gql_arg_text(call, (unsigned)(def - call->field->args)) : NULL;
    const char *type;
    struct uuid *id;

    *ret = NULL;
    if (!text)
        return 0;
    id = arena_alloc(call->arena, sizeof(*id));
    if (uuid_parse(relay_global_id_parse(call->arena, text, &type), id) < 0)
        return aq_fail(err, EINVAL, "%s: '%.64s' is not a UUID", name, text);
    *ret = id;
    return 0;
}
