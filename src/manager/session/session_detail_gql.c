/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of sessions that few clients request and that a further read of the store answers, for all
 * sessions of a list at once. The objects are struct session_row.
 */
#include "base/clock.h"
#include "manager/session/session_attempts.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "manager/call/graphql/resolve.h"

struct session_detail {
    struct gql_call *call;
    struct store_query query;
    struct store_page *page;
    struct gql_value (*get)(struct gql_call *call, const struct session_row *row);
};

static int session_detail_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_detail *detail = data;
    int r = gql_set_room(detail->call->context, &detail->query, err);

    return r < 0 ? r : store_list_sessions(tx, &detail->query, &detail->page, err);
}

static void session_detail_on_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct session_detail *detail = data;
    struct gql_call *call = detail->call;

    page = r < 0 ? NULL : detail->page;
    if (r < 0)
        gql_call_fail(call, "%s", err->text);
    for (uint32_t i = 0; page && i < call->count && !arena_is_over(call->arena); i++) {
        const struct uuid *id = &((const struct session_row *)call->parents[i])->session.id;
        const struct session_row *row = NULL;

        for (size_t k = 0; k < page->count && !row; k++)
            row = uuid_equals(&page->sessions[k].session.id, id) ? &page->sessions[k] : NULL;
        call->results[i] = row ? detail->get(call, row) : gql_null();
    }
    gql_call_done(call);
}

/* 'query' says what is read of each session. */
static int session_detail_start(struct gql_call *call, struct store_query query,
                                struct gql_value (*get)(struct gql_call *call,
                                                        const struct session_row *row))
{
    struct session_detail *detail = arena_alloc(call->arena, sizeof(*detail));
    struct uuid *ids = arena_array(call->arena, call->count, sizeof(*ids));

    if (call->count > STORE_IDS_MAX)
        return gql_call_fail(call, "%s: of %d sessions at most", call->field->name, STORE_IDS_MAX);
    for (uint32_t i = 0; i < call->count; i++)
        ids[i] = ((const struct session_row *)call->parents[i])->session.id;
    query.ids = ids;
    query.id_count = call->count;
    *detail = (struct session_detail){ .call = call, .query = query, .get = get };
    return gql_read(call, session_detail_read, session_detail_on_read, detail);
}

static struct gql_value session_detail_get_scheduled(struct gql_call *call,
                                                     const struct session_row *row)
{
    char text[CLOCK_ISO_MAX];

    if (!row->scheduled_usec)
        return gql_null();
    return gql_text(arena_strdup(call->arena, clock_format_iso(row->scheduled_usec, text)));
}

static int session_detail_scheduled(struct gql_call *call)
{
    return session_detail_start(
        call, (struct store_query){ .detail = STORE_SESSION_BARE, .with_scheduled = true },
        session_detail_get_scheduled);
}

static struct gql_value session_detail_get_summary(struct gql_call *call,
                                                   const struct session_row *row)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_attempts_write_summary(core, row, &w);
    return out.len == 4 ? gql_null() /* "null" */
                        : gql_text(arena_strdup(call->arena, out.data));
}

static int session_detail_summary(struct gql_call *call)
{
    return session_detail_start(call,
                                (struct store_query){ .detail = STORE_SESSION_WHOLE,
                                                      .with_kernels = true,
                                                      .with_runs = true },
                                session_detail_get_summary);
}

static struct gql_value session_detail_get_waits(struct gql_call *call,
                                                 const struct session_row *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_view_dependencies(row->dependencies, row->dependency_count, &w);
    return gql_text(arena_strdup(call->arena, out.data));
}

static int session_detail_waits_for(struct gql_call *call)
{
    return session_detail_start(
        call, (struct store_query){ .detail = STORE_SESSION_BARE, .with_dependencies = true },
        session_detail_get_waits);
}

#define FIELD(name) SCHEMA_FIELD_ComputeSession_##name

static const struct gql_entry session_detail_entries[] = {
    { FIELD(scheduled_at), GQL_CALL_COST(session_detail_scheduled, GQL_COST_READ / 10, 1) },
    { FIELD(summary), GQL_CALL_COST(session_detail_summary, GQL_COST_READ, 1) },
    { FIELD(waits_for), GQL_CALL_COST(session_detail_waits_for, GQL_COST_READ, 1) },
};
GQL_ENTRIES_END(session_detail);
