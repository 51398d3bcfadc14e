/* SPDX-License-Identifier: Apache-2.0 */
/* session_pending_queue: the sessions that wait in a resource group, in the order of the scheduler's
 * plan, which memory has; of all groups if it is "", as a page asks that lists no groups for managers
 * before 26.2. The objects are struct session_row.
 */
#include <stdlib.h>
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/session/session_feature.h"

struct session_queued {
    struct uuid id;
    size_t position; /* SIZE_MAX = it waits for something else than room */
    int64_t created_usec;
};

struct session_queue {
    struct session_queued *items;
    size_t count;
};

static bool session_queue_has(const struct gql_context *context, const char *group,
                              const struct session *s)
{
    return s->status == SESSION_PENDING && (!group[0] || strcmp(s->resource_group, group) == 0)
           && principal_sees_domain(context->who, s->domain);
}

static int session_queue_compare(const void *a, const void *b)
{
    const struct session_queued *x = a, *y = b;

    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return (x->created_usec > y->created_usec) - (x->created_usec < y->created_usec);
}

static void session_queue_load(struct gql_call *call, const char *group, struct session_queue *ret)
{
    const struct gql_context *context = call->context;
    struct core *core = context->api->core;
    size_t count = 0;

    for (const struct session *s = core_next_session(core, NULL); s; s = core_next_session(core, s))
        count += session_queue_has(context, group, s);
    *ret = (struct session_queue){ .items = arena_array(call->arena, count + 1,
                                                        sizeof(*ret->items)) };
    for (const struct session *s = core_next_session(core, NULL); s;
         s = core_next_session(core, s)) {
        struct core_start_estimate estimate = { 0 };

        if (!session_queue_has(context, group, s))
            continue;
        if (core_get_start_estimate(core, &s->id, &estimate) < 0 || estimate.position == 0)
            estimate.position = SIZE_MAX;
        ret->items[ret->count++] = (struct session_queued){ s->id, estimate.position,
                                                            s->created_usec };
    }
    qsort(ret->items, ret->count, sizeof(*ret->items), session_queue_compare);
}

/* The rows come in an order of the store's: into that of the ids. */
static void session_queue_on_read(const struct gql_fetch *fetch)
{
    struct store_page *page = fetch->page;
    size_t done = 0;

    for (size_t i = 0; i < fetch->query.id_count; i++)
        for (size_t k = done; k < page->count; k++)
            if (uuid_equals(&page->sessions[k].session.id, &fetch->query.ids[i])) {
                struct session_row row = page->sessions[k];

                page->sessions[k] = page->sessions[done];
                page->sessions[done++] = row;
            }
    page->first = fetch->query.offset;
}

/* Those of the part: ids for the query. */
static void session_queue_ask(struct gql_fetch *fetch, const struct session_queue *queue,
                              const struct relay_part *part)
{
    size_t first = (size_t)AQ_MIN(part->offset, (int64_t)queue->count);
    size_t count = AQ_MIN((size_t)part->limit, queue->count - first);
    struct uuid *ids = arena_array(fetch->call->arena, count + 1, sizeof(*ids));

    for (size_t i = 0; i < count; i++)
        ids[i] = queue->items[first + i].id;
    fetch->query.ids = ids;
    fetch->query.id_count = count;
    fetch->query.with_kernels = true;
    fetch->nothing = count == 0;
    fetch->total = (int64_t)queue->count;
}

static int session_queue_list(struct gql_call *call)
{
    const char *group = gql_arg_text(call,
                                     SCHEMA_ARG_Queries_session_pending_queue_resource_group_id);
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_CONNECTION, store_list_sessions,
                                            sizeof(struct session_row));
    struct session_queue queue;
    struct relay_part part;
    struct aq_error err = { 0 };

    if (gql_need(call->context, API_ADMIN, &err) < 0
        || relay_part_parse(call->arena, call->args[SCHEMA_ARG_Queries_session_pending_queue_first],
                            gql_null(), gql_null(), gql_null(),
                            call->args[SCHEMA_ARG_Queries_session_pending_queue_offset], NODES_MAX,
                            &part, &err)
               < 0)
        return gql_fetch_fail(fetch, &err);
    fetch->node = &session_node;
    fetch->on_read = session_queue_on_read;
    session_queue_load(call, group, &queue);
    session_queue_ask(fetch, &queue, &part);
    return gql_fetch_start(fetch);
}

static const struct gql_entry session_queue_entries[] = {
    { SCHEMA_FIELD_Queries_session_pending_queue,
      GQL_CALL_COST(session_queue_list, GQL_COST_WALK, GQL_ROWS_WHOLE) },
    NODE_CONNECTION(SessionPendingQueue),
};
GQL_ENTRIES_END(session_queue);
