/* SPDX-License-Identifier: Apache-2.0 */
/* total_resource_slot: what many sessions hold together. */
#include <errno.h>
#include <string.h>

#include "manager/call/graphql/resolve.h"
#include "manager/session/session_view.h"
#include "manager/session/session_feature.h"

struct session_total {
    struct gql_call *call;
    struct store_query query;
    struct slots occupied, requested; /* freed when they are texts */
    struct gql_value texts[2];
};

static int session_total_add(struct session_total *total, const struct store_page *page,
                             struct aq_error *err)
{
    for (size_t i = 0; i < page->count; i++) {
        AQ_CLEANUP(slots_donep) struct slots held = { 0 }, asked = { 0 };

        session_view_slots(&page->sessions[i], &held, &asked);
        if (slots_add(&total->occupied, &held) < 0 || slots_add(&total->requested, &asked) < 0)
            return aq_fail(err, EOVERFLOW, "the slots of all sessions exceed the range of a sum");
    }
    return 0;
}

static int session_total_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct session_total *total = data;
    int r = gql_set_room(total->call->context, &total->query, err);

    if (r < 0 || (r = store_list_sessions(tx, &total->query, &page, err)) < 0)
        return r;
    return session_total_add(total, page, err);
}

static void session_total_on_read(void *data, int r, const struct aq_error *err)
{
    struct session_total *total = data;
    struct gql_call *call = total->call;
    struct gql_get get = { .context = call->context, .arena = call->arena };

    if (r < 0) {
        gql_call_fail(call, "%s", err->text);
    } else {
        total->texts[0] = gql_slots(&get, &total->occupied);
        total->texts[1] = gql_slots(&get, &total->requested);
        call->results[0] = gql_object(total);
    }
    slots_done(&total->occupied);
    slots_done(&total->requested);
    gql_call_done(call);
}

/* Those that live, if nothing else is asked for. */
static int session_total_read_statuses(const struct gql_call *call, uint32_t *ret,
                                       struct aq_error *err)
{
    const struct gql_context *context = call->context;
    struct gql_value given = call->args[SCHEMA_ARG_Queries_total_resource_slot_statuses];
    int r = 0;

    *ret = 0;
    for (int i = 0; !gql_is_given(given) && i < SESSION_STATUS_COUNT; i++)
        *ret |= session_is_terminal((enum session_status)i) ? 0 : 1u << i;
    for (uint32_t i = 0; r == 0 && gql_is_given(given) && i < given.count; i++) {
        uint32_t one = 0;

        if (gql_is_given(given.items[i]))
            r = session_view_read_statuses(context->who, given.items[i].text, &one, err);
        *ret |= one;
    }
    return r;
}

static int session_total_get(struct gql_call *call)
{
    struct session_total *total = arena_alloc(call->arena, sizeof(*total));
    struct store_query query = {
        .filter = gql_arg_text(call, SCHEMA_ARG_Queries_total_resource_slot_filter),
        .domain = gql_arg_text(call, SCHEMA_ARG_Queries_total_resource_slot_domain_name),
        .resource_group = gql_arg_text(call,
                                       SCHEMA_ARG_Queries_total_resource_slot_resource_group_name),
        .detail = STORE_SESSION_BARE,
        .with_kernels = true,
    };
    struct aq_error err = { 0 };

    if (gql_need(call->context, API_SUPERADMIN, &err) < 0
        || session_total_read_statuses(call, &query.statuses, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    *total = (struct session_total){ .call = call, .query = query };
    return gql_read(call, session_total_read, session_total_on_read, total);
}

static const struct gql_entry session_total_entries[] = {
    { SCHEMA_FIELD_Queries_total_resource_slot,
      GQL_CALL_COST(session_total_get, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_TotalResourceSlot_occupied_slots, GQL_VALUE_AT(struct session_total, texts[0]) },
    { SCHEMA_FIELD_TotalResourceSlot_requested_slots,
      GQL_VALUE_AT(struct session_total, texts[1]) },
};
GQL_ENTRIES_END(session_total);
