/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of users as newer clients send them: of one, and of several at once. What fails is
 * the call's error, or of several one of its 'failed'.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/account/mutation_props.h"
#include "manager/call/graphql/newer.h"
#include "manager/account/account_feature.h"

#define USERS_MAX 100 /* of one call */

struct user_v2_failure {
    struct uuid user_id;
    const char *message;
};

/* A call under way: its users one after the other. Also its payload. */
struct user_v2_change {
    struct gql_call *call;
    void (*start)(struct user_v2_change *c); /* the next one, of which one of the two below tells */
    struct gql_value items;                  /* a list */
    uint32_t at;                             /* which is next */
    bool is_one;                             /* what fails fails the call */
    struct uuid id;                          /* of the one under way */

    struct account_change *change;
    struct account_removal removal;
    struct store_query query; /* reads those that were changed */
    struct store_page *page;

    struct uuid *changed;
    struct user_v2_failure *failed;
    uint32_t changed_count, failed_count;
    const struct user_row *user;
    struct keypair keypair; /* of a new user */
};

/* ---- results ---- */

static void user_v2_finish(struct user_v2_change *c)
{
    c->call->results[0] = gql_object(c);
    gql_call_done(c->call);
}

static int user_v2_read_changed(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct user_v2_change *c = data;
    int r = gql_set_room(c->call->context, &c->query, err);

    return r < 0 ? r : store_list_users(tx, &c->query, &c->page, err);
}

static void user_v2_on_read(void *data, int r, const struct aq_error *err)
{
    struct user_v2_change *c = data;

    if (r == 0) {
        gql_keep(c->call->context, c->call->arena, c->page);
        c->user = c->page->users;
    }
    if (r < 0)
        (void)gql_call_fail(c->call, "%s", err->text);
    else if (c->is_one && !c->page->count)
        (void)gql_call_fail(c->call, "No such user.");
    else
        c->call->results[0] = gql_object(c);
    gql_call_done(c->call);
}

/* All are done: the rows are read that the payload shows. */
static void user_v2_show(struct user_v2_change *c)
{
    c->query = (struct store_query){ .ids = c->changed, .id_count = c->changed_count };
    if (!c->changed_count || !gql_call_selects(c->call, c->is_one ? "user" : "updatedUsers"))
        user_v2_finish(c);
    else
        (void)gql_read(c->call, user_v2_read_changed, user_v2_on_read, c);
}

static void user_v2_go_on(struct user_v2_change *c)
{
    if (c->at < c->items.count)
        c->start(c);
    else
        user_v2_show(c);
}

static void user_v2_on_failed(struct user_v2_change *c, const struct uuid *id,
                              const struct aq_error *err)
{
    char msg[MUTATION_REASON_MAX];

    mutation_write_reason(err, msg, sizeof(msg));
    if (c->is_one) {
        (void)gql_call_fail(c->call, "%s", msg);
        gql_call_done(c->call);
        return;
    }
    c->failed[c->failed_count++] = (struct user_v2_failure){ *id,
                                                             arena_strdup(c->call->arena, msg) };
    user_v2_go_on(c);
}

static void user_v2_on_changed(struct user_v2_change *c, const struct uuid *id)
{
    c->changed[c->changed_count++] = *id;
    user_v2_go_on(c);
}

/* ---- making and changing ---- */

static void user_v2_on_saved(void *data, int r, const struct aq_error *err)
{
    struct user_v2_change *c = data;

    if (r < 0)
        user_v2_on_failed(c, &c->id, err);
    else
        user_v2_on_changed(c, &c->id);
}

/* What the one who makes a user has to be told, before the store takes the batch. */
static void user_v2_keep_keypair(struct user_v2_change *c, const struct keypair *keypair)
{
    c->keypair = *keypair;
    c->keypair.policy = arena_strdup(c->call->arena, keypair->policy);
    c->keypair.ssh_public_key = NULL;
}

/* The error is of a parameter: call it as the input does. */
static void user_v2_name_field(const struct gql_call *call, const struct gql_type *type,
                               struct aq_error *err)
{
    char name[sizeof(err->field)];

    mutation_name_field(call, &account_user, "", err);
    for (uint32_t i = 0; i < type->input_count; i++) {
        newer_snake_case(type->inputs[i].name, name, sizeof(name));
        if (strcmp(name, err->field) == 0)
            (void)snprintf(err->field, sizeof(err->field), "%s", type->inputs[i].name);
    }
}

/* 'key' NULL: a new one, with a keypair. */
static int user_v2_fill(struct user_v2_change *c, const struct gql_type *type,
                        struct gql_value input, const char *key, struct aq_error *err)
{
    const struct user *user = key ? account_user.find(mutation_api(c->call)->core, key) : NULL;
    json_auto_t *given = NULL;
    int r = mutation_props_of(type, input, &account_user, user ? user->domain : NULL, &given, err);

    if (r == 0)
        r = account_change_row(c->change, key, given, err);
    if (r == 0 && !key && (r = account_change_add_keypair(c->change, NULL, err)) == 0)
        user_v2_keep_keypair(c, &c->change->batch->events[1].keypair);
    if (r == 0)
        c->id = c->change->batch->events[0].user.user.id;
    return r;
}

static void user_v2_save(struct user_v2_change *c, const char *type_name, struct gql_value input,
                         const char *key)
{
    const struct gql_type *type = gql_type_find(&schema_schema, type_name, strlen(type_name));
    struct aq_error err = { 0 };

    c->change = account_change_new(mutation_api(c->call), c->call->arena, &account_user);
    if (user_v2_fill(c, type, input, key, &err) < 0) {
        account_change_drop(c->change);
        user_v2_name_field(c->call, type, &err);
        user_v2_on_failed(c, &c->id, &err);
    } else if (mutation_save_account(c->call, c->change, user_v2_on_saved, c, &err) < 0) {
        user_v2_on_failed(c, &c->id, &err);
    }
}

static void user_v2_start_create(struct user_v2_change *c)
{
    user_v2_save(c, "CreateUserV2Input", c->items.items[c->at++], NULL);
}

static void user_v2_start_update(struct user_v2_change *c)
{
    const struct gql_value *item = &c->items.items[c->at++];

    (void)uuid_parse(item->items[0].text, &c->id);
    user_v2_save(c, "UpdateUserV2Input", item->items[1], item->items[0].text);
}

/* ---- removing ---- */

static void user_v2_start_purge(struct user_v2_change *c)
{
    const char *key = c->items.items[c->at++].text;

    (void)uuid_parse(key, &c->id);
    c->removal = (struct account_removal){ .api = mutation_api(c->call),
                                           .arena = c->call->arena,
                                           .who = ((struct gql_context *)c->call->context)->who,
                                           .by = mutation_who(c->call),
                                           .kind = &account_user,
                                           .key = key,
                                           .purge = true,
                                           .done = user_v2_on_saved,
                                           .data = c };
    account_remove(&c->removal);
}

/* ---- root fields ---- */

static int user_v2_run(struct gql_call *call, void (*start)(struct user_v2_change *c),
                       struct gql_value items, bool is_one)
{
    struct user_v2_change *c = arena_alloc(call->arena, sizeof(*c));

    if (items.count > USERS_MAX)
        return gql_call_fail(call, "more than %d users at once", USERS_MAX);
    *c = (struct user_v2_change){ .call = call, .start = start, .items = items, .is_one = is_one };
    c->changed = arena_array(call->arena, items.count + 1, sizeof(*c->changed));
    c->failed = arena_array(call->arena, items.count + 1, sizeof(*c->failed));
    user_v2_go_on(c);
    return GQL_LATER;
}

static int user_v2_begin(struct gql_call *call, void (*start)(struct user_v2_change *c),
                         struct gql_value items, bool is_one)
{
    return mutation_may_or_fails(call) ? user_v2_run(call, start, items, is_one) : GQL_DONE;
}

static int user_v2_create(struct gql_call *call)
{
    return user_v2_begin(call, user_v2_start_create, gql_list(call->args, 1), true);
}

static int user_v2_update(struct gql_call *call)
{
    struct gql_value *item = arena_alloc(call->arena, sizeof(*item));

    *item = gql_list(call->args, 2);
    return user_v2_begin(call, user_v2_start_update, gql_list(item, 1), true);
}

/* The input of what people change of themselves; another member fails the call. A list of
 * addresses that is null goes.
 */
static int user_v2_read_mine(struct gql_call *call, struct gql_value *ret)
{
    static const char *const own[] = { "password", "fullName", "allowedClientIp" };
    const struct gql_type *type = call->field->args[0].type.type;
    struct gql_value *items = arena_array(call->arena, type->input_count, sizeof(*items));

    for (uint32_t i = 0; i < type->input_count; i++) {
        const char *name = type->inputs[i].name;
        size_t o = 0;

        items[i] = call->args[0].items[i];
        while (o < AQ_COUNT(own) && strcmp(own[o], name) != 0)
            o++;
        if (o == AQ_COUNT(own) && gql_is_given(items[i])) {
            (void)gql_call_fail(call, "%s: only administrators may change it", name);
            return -EPERM;
        }
        if (items[i].kind == GQL_NULL && strcmp(name, "allowedClientIp") == 0)
            items[i] = gql_list(NULL, 0);
    }
    *ret = call->args[0];
    ret->items = items;
    return 0;
}

static int user_v2_update_mine(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    struct gql_value *item = arena_array(call->arena, 3, sizeof(*item));
    char text[UUID_TEXT_MAX];

    item[0] = gql_list(item + 1, 2);
    item[1] = gql_text(arena_strdup(call->arena, uuid_format(&context->who->user_id, text)));
    return user_v2_read_mine(call, &item[2]) < 0
               ? GQL_DONE
               : user_v2_run(call, user_v2_start_update, gql_list(item, 1), true);
}

static int user_v2_update_several(struct gql_call *call)
{
    return user_v2_begin(call, user_v2_start_update, call->args[0].items[0], false);
}

static int user_v2_purge_several(struct gql_call *call)
{
    return user_v2_begin(call, user_v2_start_purge, call->args[0].items[0], false);
}

/* ---- values ---- */

static struct gql_value user_v2_get_updated(struct gql_get *get, const void *parent)
{
    const struct user_v2_change *c = parent;

    return gql_rows_of(get->arena, c->user, c->user ? (uint32_t)c->page->count : 0,
                       sizeof(*c->user));
}

static struct gql_value user_v2_get_failed(struct gql_get *get, const void *parent)
{
    const struct user_v2_change *c = parent;

    return gql_rows_of(get->arena, c->failed, c->failed_count, sizeof(*c->failed));
}

static struct gql_value user_v2_get_purged(struct gql_get *get, const void *parent)
{
    const struct user_v2_change *c = parent;
    struct gql_value *ids = arena_array(get->arena, c->changed_count + 1, sizeof(*ids));
    char text[UUID_TEXT_MAX];

    for (uint32_t i = 0; i < c->changed_count; i++)
        ids[i] = gql_copy(get, uuid_format(&c->changed[i], text));
    return gql_list(ids, c->changed_count);
}

#define MUTATION(name, fn)                                                  \
    {                                                                       \
        SCHEMA_FIELD_Mutations_##name, GQL_CALL_COST(fn, GQL_COST_WRITE, 1) \
    }
#define CHANGE_AT(how, member) GQL_##how##_AT(struct user_v2_change, member)
#define KEYPAIR(name) SCHEMA_FIELD_KeyPairGQL_##name

static const struct gql_entry user_v2_mutation_entries[] = {
    MUTATION(adminCreateUserV2, user_v2_create),
    MUTATION(adminUpdateUserV2, user_v2_update),
    MUTATION(updateUserV2, user_v2_update_mine),
    MUTATION(adminBulkUpdateUsersV2, user_v2_update_several),
    MUTATION(adminBulkPurgeUsersV2, user_v2_purge_several),
    { SCHEMA_FIELD_CreateUserV2Payload_user, CHANGE_AT(OBJECT, user) },
    { SCHEMA_FIELD_CreateUserV2Payload_keypair, GQL_SELF },
    { SCHEMA_FIELD_CreateKeypairPayload_keypair, GQL_SELF },
    { SCHEMA_FIELD_CreateKeypairPayload_secretKey, CHANGE_AT(CHARS, keypair.secret_key) },
    { KEYPAIR(id), CHANGE_AT(CHARS, keypair.access_key) },
    { KEYPAIR(accessKey), CHANGE_AT(CHARS, keypair.access_key) },
    { KEYPAIR(isActive), CHANGE_AT(BOOL, keypair.is_active) },
    { KEYPAIR(isAdmin), CHANGE_AT(BOOL, keypair.is_admin) },
    { KEYPAIR(resourcePolicy), CHANGE_AT(TEXT, keypair.policy) },
    { KEYPAIR(rateLimit), CHANGE_AT(INT32, keypair.rate_limit) },
    { KEYPAIR(user), CHANGE_AT(OBJECT, user) },
    { SCHEMA_FIELD_UpdateUserV2Payload_user, CHANGE_AT(OBJECT, user) },
    { SCHEMA_FIELD_BulkUpdateUsersV2Payload_updatedUsers, GQL_GET(user_v2_get_updated) },
    { SCHEMA_FIELD_BulkUpdateUsersV2Payload_failed, GQL_GET(user_v2_get_failed) },
    { SCHEMA_FIELD_BulkUpdateUserV2Error_userId, GQL_UUID_AT(struct user_v2_failure, user_id) },
    { SCHEMA_FIELD_BulkUpdateUserV2Error_message, GQL_TEXT_AT(struct user_v2_failure, message) },
    { SCHEMA_FIELD_BulkPurgeUsersV2Payload_purgedCount, CHANGE_AT(UINT32, changed_count) },
    { SCHEMA_FIELD_BulkPurgeUsersV2Payload_successes, GQL_GET(user_v2_get_purged) },
    { SCHEMA_FIELD_BulkPurgeUsersV2Payload_failed, GQL_GET(user_v2_get_failed) },
    { SCHEMA_FIELD_BulkPurgeUserV2Error_userId, GQL_UUID_AT(struct user_v2_failure, user_id) },
    { SCHEMA_FIELD_BulkPurgeUserV2Error_message, GQL_TEXT_AT(struct user_v2_failure, message) },
};
GQL_ENTRIES_END(user_v2_mutation);
