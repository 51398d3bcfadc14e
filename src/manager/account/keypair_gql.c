/* SPDX-License-Identifier: Apache-2.0 */
/* KeyPair and its lists. The objects are struct keypair_row. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/call/graphql/resolve.h"
#include "manager/account/account_feature.h"

#define FIELD(name) SCHEMA_FIELD_KeyPair_##name
#define AT(how, member) GQL_##how##_AT(struct keypair_row, member)

/* ---- root fields ---- */

static struct gql_fetch *gql_keypair_fetch_new(struct gql_call *call, enum gql_shape shape)
{
    return gql_fetch_new(call, shape, store_list_keypairs, sizeof(struct keypair_row));
}

/* Without an argument the caller's own, for everyone. */
static int gql_keypair_get_one(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    const char *access_key = gql_arg_text(call, SCHEMA_ARG_Queries_keypair_access_key);
    struct gql_fetch *fetch = gql_keypair_fetch_new(call, GQL_ONE);

    gql_scope(context, &fetch->query);
    if (!access_key)
        access_key = context->who->access_key;
    if (fetch->query.access_key && strcmp(fetch->query.access_key, access_key) != 0)
        fetch->nothing = true;
    fetch->query.access_key = access_key;
    return gql_fetch_start(fetch);
}

/* Who is no administrator lists the own ones. */
static int gql_keypair_find_whose(const struct gql_context *context, const char **email,
                                  struct aq_error *err)
{
    const struct user *user = core_find_user(context->api->core, &context->who->user_id);

    if (principal_may(context->who->role, API_ADMIN))
        return 0;
    if (!user || (*email && strcmp(*email, user->email) != 0))
        return gql_need(context, API_ADMIN, err);
    *email = user->email;
    return 0;
}

static int gql_keypair_apply_args(struct gql_fetch *fetch, const char *domain, const char *email,
                                  int is_active, struct aq_error *err)
{
    const struct gql_context *context = fetch->call->context;
    struct store_query *query = &fetch->query;
    int r;

    if ((r = gql_keypair_find_whose(context, &email, err)) < 0)
        return r;
    if (!principal_is_superadmin(context->who))
        query->domain = context->who->domain;
    if (domain && query->domain && strcmp(domain, query->domain) != 0)
        fetch->nothing = true;
    else if (domain)
        query->domain = domain;
    query->name = email;
    query->is_active = is_active;
    return 0;
}

static int gql_keypair_list(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_keypair_fetch_new(call, GQL_PAGE);
    struct aq_error err = { 0 };

    fetch->query.order = "-created_at";
    if (gql_fetch_page_args(fetch, GQL_PAGE_MAX, &err) < 0
        || gql_keypair_apply_args(
               fetch, gql_arg_text(call, SCHEMA_ARG_Queries_keypair_list_domain_name),
               gql_arg_text(call, SCHEMA_ARG_Queries_keypair_list_email),
               gql_arg_active(call, SCHEMA_ARG_Queries_keypair_list_is_active), &err)
               < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

static int gql_keypair_list_all(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_keypair_fetch_new(call, GQL_MANY);
    struct aq_error err = { 0 };

    if (gql_keypair_apply_args(fetch, gql_arg_text(call, SCHEMA_ARG_Queries_keypairs_domain_name),
                               gql_arg_text(call, SCHEMA_ARG_Queries_keypairs_email),
                               gql_arg_active(call, SCHEMA_ARG_Queries_keypairs_is_active), &err)
        < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

/* ---- values ---- */

static const struct keypair *gql_keypair_key_of(const void *parent)
{
    return &((const struct keypair_row *)parent)->keypair;
}

static const struct core *gql_keypair_core_of(const struct gql_get *get)
{
    return ((const struct gql_context *)get->context)->api->core;
}

/* Nobody sees a secret but the one whose it is, and the one who has just made it. */
static struct gql_value gql_keypair_get_secret(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    const struct keypair *row = gql_keypair_key_of(parent);
    const struct keypair *key = core_find_keypair(gql_keypair_core_of(get), row->access_key);

    if (row->secret_key[0])
        return gql_copy(get, row->secret_key);
    if (!key || !uuid_equals(&key->user_id, &context->who->user_id))
        return gql_null();
    return gql_copy(get, key->secret_key);
}

static struct gql_value gql_keypair_get_full_name(struct gql_get *get, const void *parent)
{
    const struct user *user = core_find_user(gql_keypair_core_of(get),
                                             &gql_keypair_key_of(parent)->user_id);

    return gql_copy(get, user ? user->full_name : NULL);
}

static struct gql_value gql_keypair_get_concurrency(struct gql_get *get, const void *parent)
{
    AQ_CLEANUP(slots_donep) struct slots held = { 0 };
    size_t sessions;

    if (core_get_usage(gql_keypair_core_of(get), gql_keypair_key_of(parent)->access_key, &held,
                       &sessions)
        < 0)
        return gql_error(get->arena, "the slots of the sessions exceed 64 bits");
    return gql_int((int64_t)sessions);
}

static int gql_keypair_projects(struct gql_call *call)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;

    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct user *user = core_find_user(core,
                                                 &gql_keypair_key_of(call->parents[i])->user_id);
        size_t count = user ? user->project_count : 0;
        struct gql_value *names = arena_array(call->arena, count + 1, sizeof(*names));
        uint32_t found = 0;

        for (size_t g = 0; g < count; g++) {
            const struct project *project = core_find_project(core, &user->project_ids[g]);

            if (project)
                names[found++] = gql_text(arena_strdup(call->arena, project->name));
        }
        call->results[i] = gql_list(names, found);
    }
    return GQL_DONE;
}

/* What is not written yet counts, too. */
static struct gql_value gql_keypair_get_last_used(struct gql_get *get, const void *parent)
{
    int64_t saved = ((const struct keypair_row *)parent)->used_usec;
    int64_t seen = core_key_used(gql_keypair_core_of(get), gql_keypair_key_of(parent)->access_key);
    int64_t usec = AQ_MAX(saved, seen);

    return usec ? gql_text(clock_format_iso(usec, get->scratch)) : gql_null();
}

static const struct gql_entry keypair_entries[] = {
    { SCHEMA_FIELD_Queries_keypair, GQL_CALL_COST(gql_keypair_get_one, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_keypairs,
      GQL_CALL_COST(gql_keypair_list_all, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_keypair_list, GQL_CALL_COST(gql_keypair_list, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_KeyPairList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_KeyPairList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_UserInfo_full_name, GQL_GET(gql_keypair_get_full_name) },
    { FIELD(id), AT(CHARS, keypair.access_key) },
    { FIELD(user_id), AT(TEXT, user_email) },
    { FIELD(user_info), GQL_SELF },
    { FIELD(full_name), GQL_GET(gql_keypair_get_full_name) },
    { FIELD(secret_key), GQL_GET(gql_keypair_get_secret) },
    { FIELD(created_at), AT(TIME, created_usec) },
    { FIELD(last_used), GQL_GET(gql_keypair_get_last_used) },
    { FIELD(num_queries), GQL_FIXED_INT(0) },
    { FIELD(concurrency_used), GQL_GET(gql_keypair_get_concurrency) },
    { FIELD(projects), GQL_CALL_COST(gql_keypair_projects, 5, 1) },
};
GQL_ENTRIES_END(keypair);
