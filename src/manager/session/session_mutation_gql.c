/* SPDX-License-Identifier: Apache-2.0 */
/* modify_compute_session: the name and the priority of a session that lives. */
#include <errno.h>
#include <string.h>

#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/session/session_feature.h"

struct session_mutation {
    struct gql_call *call;
    struct uuid id;
    const char *name; /* NULL = it stays */
    struct store_query query;
    struct store_page *page;
    const void *item;
    const char *client_id; /* NULL = none */
};

/* ---- the row afterwards ---- */

static int session_mutation_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_mutation *m = data;
    int r = gql_set_room(m->call->context, &m->query, err);

    return r < 0 ? r : store_list_sessions(tx, &m->query, &m->page, err);
}

static void session_mutation_on_read(void *data, int r, const struct aq_error *err)
{
    struct session_mutation *m = data;

    if (r < 0) {
        gql_call_fail(m->call, "%s", err->text);
    } else {
        gql_keep(m->call->context, m->call->arena, m->page);
        m->item = m->page->count ? &m->page->sessions[0] : NULL;
        m->call->results[0] = gql_object(m);
    }
    gql_call_done(m->call);
}

/* ---- the changes, one after the other ---- */

static void session_mutation_on_changed(void *data, int r, const struct aq_error *err)
{
    struct session_mutation *m = data;

    if (r == 0) {
        (void)gql_read(m->call, session_mutation_read, session_mutation_on_read, m);
        return;
    }
    gql_call_fail(m->call, "%s", err->text);
    gql_call_done(m->call);
}

static void session_mutation_on_prioritised(void *data, int r, const struct aq_error *err)
{
    const struct session_mutation *m = data;

    if (r < 0 || !m->name)
        session_mutation_on_changed(data, r, err);
    else
        core_rename_session(mutation_api(m->call)->core, &m->id, m->name, mutation_who(m->call),
                            session_mutation_on_changed, data);
}

/* One that lives, of the caller, or of whom an administrator sees. */
static const struct session *session_mutation_find(const struct gql_call *call,
                                                   struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const char *type, *text = gql_arg_member(call, "input", "id").text;
    const char *id = relay_global_id_parse(call->arena, text, &type);
    const struct session *s = NULL;
    struct uuid uuid;

    if (uuid_parse(id, &uuid) < 0)
        aq_fail(err, EINVAL, "id: '%.64s' is not a UUID", id);
    else if (!(s = core_find_session(context->api->core, &uuid))
             || !gql_session_is_modified_by(context->who, s))
        aq_fail(err, ENOENT, "there is no such session, or it has ended");
    return err->code ? NULL : s;
}

static int session_mutation_modify(struct gql_call *call)
{
    const struct api *api = mutation_api(call);
    struct gql_value priority = gql_arg_member(call, "input", "priority");
    struct gql_value name = gql_arg_member(call, "input", "name");
    struct session_mutation *m = arena_alloc(call->arena, sizeof(*m));
    const struct session *s;
    struct aq_error err = { 0 };

    if (api->is_frozen)
        return gql_call_fail(call, "the manager is frozen by an administrator; try later");
    if (!gql_is_given(name) && !gql_is_given(priority))
        return gql_call_fail(call, "input: nothing to change: give name or priority");
    if (!(s = session_mutation_find(call, &err)))
        return gql_call_fail(call, "%s", err.text);
    m->call = call;
    m->id = s->id;
    m->name = gql_is_given(name) ? name.text : NULL;
    m->client_id = gql_arg_member(call, "input", "clientMutationId").text;
    m->query = (struct store_query){ .ids = &m->id, .id_count = 1, .with_kernels = true };
    if (gql_is_given(priority))
        core_set_priority(api->core, &m->id, (int)priority.integer, mutation_who(call),
                          session_mutation_on_prioritised, m);
    else
        session_mutation_on_prioritised(m, 0, NULL);
    return GQL_LATER;
}

#define FIELD(name) SCHEMA_FIELD_ModifyComputeSessionPayload_##name

static const struct gql_entry session_mutation_entries[] = {
    { SCHEMA_FIELD_Mutations_modify_compute_session,
      GQL_CALL_COST(session_mutation_modify, GQL_COST_WRITE, 1) },
    { FIELD(item), GQL_OBJECT_AT(struct session_mutation, item) },
    { FIELD(clientMutationId), GQL_TEXT_AT(struct session_mutation, client_id) },
};
GQL_ENTRIES_END(session_mutation);
