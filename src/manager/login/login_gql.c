/* SPDX-License-Identifier: Apache-2.0 */
/* LoginSessionV2 and LoginHistoryV2: where the caller has logged in with a browser, who tried. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/login/login.h"
#include "manager/login/login_feature.h"
#include "store/audit_log.h"
#include "store/web_login.h"

/* ---- where ---- */

struct login_row {
    struct web_login login;
    const char *access_key;
};

static const struct filter_field login_fields[] = {
    { .name = "access_key",
      .type = FILTER_STRING,
      .offset = offsetof(struct login_row, access_key) },
    { .name = "created_at",
      .type = FILTER_TIME,
      .offset = offsetof(struct login_row, login.created_usec) },
    { .name = "last_accessed_at",
      .type = FILTER_TIME,
      .offset = offsetof(struct login_row, login.used_usec) },
};

static const char *login_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct login_row *)row)->login.id, scratch);
}

const struct gql_node login_node = {
    .type = SCHEMA_TYPE_LoginSessionV2,
    .id_of = login_id_of,
    .fields = login_fields,
    .field_count = AQ_COUNT(login_fields),
};

struct login_read {
    struct gql_call *call;
    struct store_page *page;
    struct web_login *logins;
    int count;
};

static int login_read_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct login_read *read = data;
    const struct gql_context *context = read->call->context;

    read->page = aq_alloc(sizeof(*read->page));
    read->count = web_login_list(tx, &context->who->user_id, clock_realtime_usec(),
                                 &read->page->arena, &read->logins, err);
    return AQ_MIN(read->count, 0);
}

static struct gql_value login_connect(struct login_read *read)
{
    struct gql_call *call = read->call;
    struct login_row *rows = arena_array(call->arena, (size_t)read->count + 1, sizeof(*rows));

    for (int i = 0; i < read->count; i++) {
        rows[i].login = read->logins[i];
        rows[i].access_key = rows[i].login.access_key;
    }
    return gql_node_connect(call, &login_node, rows, sizeof(*rows), (uint32_t)read->count);
}

static void login_on_read(void *data, int r, const struct aq_error *err)
{
    struct login_read *read = data;

    if (r < 0)
        gql_call_fail(read->call, "%s", err->text);
    else
        read->call->results[0] = login_connect(read);
    store_page_free(read->page);
    gql_call_done(read->call);
}

static int login_list(struct gql_call *call)
{
    struct login_read *read = arena_alloc(call->arena, sizeof(*read));

    read->call = call;
    return gql_read(call, login_read_run, login_on_read, read);
}

static const struct uuid *login_user_of(const void *parent)
{
    return &((const struct login_row *)parent)->login.user_id;
}

static int login_user(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_UserV2), login_user_of);
}

/* ---- ending one ---- */

struct login_end {
    struct gql_call *call;
    struct uuid id;
};

static int login_end_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct login_end *end = data;
    const struct gql_context *context = end->call->context;
    int r = web_login_end(tx, &end->id, &context->who->user_id, err);

    return r == 0 ? aq_fail(err, ENOENT, "there is no login of this id") : AQ_MIN(r, 0);
}

static void login_on_ended(void *data, int r, const struct aq_error *err)
{
    struct login_end *end = data;

    if (r < 0) {
        (void)mutation_fail(end->call, err);
    } else {
        api_say_login_ended(((const struct gql_context *)end->call->context)->req);
        login_tell_ended(mutation_api(end->call), &(struct msg_web_ended){ .login_id = end->id });
        end->call->results[0] = gql_object(end);
    }
    gql_call_done(end->call);
}

static int login_revoke(struct gql_call *call)
{
    struct login_end *end = arena_alloc(call->arena, sizeof(*end));

    end->call = call;
    (void)uuid_parse(call->args[0].text, &end->id); /* the scalar was read */
    store_write(core_store(mutation_api(call)->core), login_end_run, login_on_ended, end);
    return GQL_LATER;
}

/* ---- who tried: the objects are struct audit_row ---- */

static int login_attempt_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    const struct gql_context *context = fetch->call->context;
    const struct user *user = core_find_user(context->api->core, &context->who->user_id);

    (void)err;
    (void)id; /* nobody asks for one */
    fetch->query.action = "login";
    fetch->query.name = user ? arena_strdup(fetch->call->arena, user->email) : "";
    return 0;
}

static const char *login_attempt_id_of(const void *row, char scratch[64])
{
    (void)snprintf(scratch, 64, "%lld", (long long)((const struct audit_row *)row)->seq);
    return scratch;
}

static const struct newer_word login_attempt_words[] = {
    { "domainName", "domain" }, { "createdAt", "at" },   { "DOMAIN_NAME", "domain" },
    { "CREATED_AT", "at" },     { "RESULT", "outcome" },
};

const struct gql_node login_attempt_node = {
    .type = SCHEMA_TYPE_LoginHistoryV2,
    .id_of = login_attempt_id_of,
    .list = store_list_audit_log,
    .row_size = sizeof(struct audit_row),
    .narrow = login_attempt_narrow,
    .newer_words = login_attempt_words,
    .newer_word_count = AQ_COUNT(login_attempt_words),
};

static struct gql_value login_attempt_get_result(struct gql_get *get, const void *parent)
{
    const char *outcome = ((const struct audit_row *)parent)->entry.outcome;

    (void)get;
    return gql_enum(strcmp(outcome, "ok") == 0 ? 0 : strcmp(outcome, "blocked") == 0 ? 2 : 1);
}

#define LOGIN(name) SCHEMA_FIELD_LoginSessionV2_##name
#define ATTEMPT(name) SCHEMA_FIELD_LoginHistoryV2_##name

static const struct gql_entry login_entries[] = {
    { SCHEMA_FIELD_Queries_myLoginSessionsV2, GQL_CALL_COST(login_list, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_myLoginHistoryV2, GQL_CALL_COST(gql_node_list, NODES_COST, 1) },
    { SCHEMA_FIELD_Mutations_myRevokeLoginSession, GQL_CALL_COST(login_revoke, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_RevokeLoginSessionPayload_success, GQL_FIXED_BOOL(true) },
    { LOGIN(id), GQL_GET(gql_node_get_id) },
    { LOGIN(userId), GQL_UUID_AT(struct login_row, login.user_id) },
    { LOGIN(accessKey), GQL_TEXT_AT(struct login_row, access_key) },
    { LOGIN(createdAt), GQL_TIME_AT(struct login_row, login.created_usec) },
    { LOGIN(lastAccessedAt), GQL_TIME_AT(struct login_row, login.used_usec) },
    { LOGIN(user), GQL_CALL_COST(login_user, GQL_COST_READ / 10, 1) },
    { ATTEMPT(id), GQL_GET(gql_node_get_id) },
    { ATTEMPT(domainName), GQL_TEXT_AT(struct audit_row, entry.domain) },
    { ATTEMPT(result), GQL_GET(login_attempt_get_result) },
    { ATTEMPT(clientIp), GQL_TEXT_AT(struct audit_row, entry.address) },
    { ATTEMPT(failReason), GQL_ALWAYS_NULL },
    { ATTEMPT(createdAt), GQL_TIME_AT(struct audit_row, entry.at_usec) },
    NODE_CONNECTION(LoginSessionV2),
    NODE_CONNECTION(LoginHistoryV2),
};
GQL_ENTRIES_END(login);
