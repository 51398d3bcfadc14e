/* SPDX-License-Identifier: Apache-2.0 */
/* Many new users at once. */
#include "manager/account/user_import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/json_load.h"
#include "base/memory.h"

#define ERRORS_MAX 50   /* that are told */
#define PASSWORDS_MAX 4 /* that are hashed before others may use the thread: 0.1 s or so */

struct import_params {
    const json_t *users;
    bool dry_run;
};

struct import_row {
    int64_t line;
    const json_t *user;
    struct account_keys keys;

    bool exists;
    struct uuid existing; /* the user who is there already */
    size_t event;         /* of the user, in the batch; the keypair is the next */
    const char *password;
    char hash[PASSWORD_HASH_MAX];
};

struct user_import {
    struct api *api;
    struct arena arena;
    json_t *tree;
    struct import_params params;
    struct import_row *rows;
    size_t count, hashed;
    struct account_change *change;  /* of the last check */
    struct map emails, names, keys; /* of new users -> row */
    json_t *errors;
    size_t error_count;
    struct user_import_result result;
    struct audit_who by;
    user_import_fn *done;
    void *data;
};

static const struct field row_fields[] = {
    { "line", FIELD_INT, 0, offsetof(struct import_row, line), 0, 1000000000 },
    { "user", FIELD_OBJECT, FIELD_REQUIRED, offsetof(struct import_row, user) },
    { "access_key", FIELD_STR, 0, offsetof(struct import_row, keys.access_key), 1, 64 },
    { "secret_key", FIELD_STR, FIELD_SECRET, offsetof(struct import_row, keys.secret_key), 1, 64 },
    { "policy|resource_policy", FIELD_STR, 0, offsetof(struct import_row, keys.policy), 1, 256 },
    FIELD_END,
};

const struct field user_import_fields[] = {
    { "users", FIELD_JSON, FIELD_REQUIRED, offsetof(struct import_params, users),
      .doc = "1 to 2000 of {\"user\": what POST /aliquot/v1/users takes, \"line\": where errors"
             " are, \"access_key\", \"secret_key\", \"policy\": of the keypair}" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct import_params, dry_run),
      .doc = "change nothing, say what would be done" },
    FIELD_END,
};

/* ---- the end ---- */

static void import_end(struct user_import *import, int r, const struct aq_error *err,
                       const struct strbuf *json)
{
    import->result.json = json;
    import->done(import->data, r, err, &import->result);
    if (import->change)
        account_change_drop(import->change);
    map_done(&import->emails);
    map_done(&import->names);
    map_done(&import->keys);
    json_decref(import->errors);
    json_decref(import->tree);
    arena_done(&import->arena);
    free(import);
}

static void import_write_row(const struct user_import *import, const struct import_row *row,
                             struct jsonw *w)
{
    const char *email = json_string_value(json_object_get(row->user, "email"));
    const struct keypair *key = row->exists && row->keys.access_key
                                    ? core_find_keypair(import->api->core, row->keys.access_key)
                                    : NULL;

    jsonw_object_begin(w);
    jsonw_member_int(w, "line", row->line);
    jsonw_member_str(w, "email", email);
    jsonw_member_str(w, "status",
                     row->exists              ? "exists"
                     : import->params.dry_run ? "would-be-created"
                                              : "created");
    if (key && uuid_equals(&key->user_id, &row->existing))
        jsonw_member_str(w, "access_key", key->access_key);
    if (!row->exists && !import->params.dry_run) {
        jsonw_member_str(w, "access_key", row->keys.access_key);
        jsonw_member_str(w, "secret_key", row->keys.secret_key);
    }
    jsonw_object_end(w);
}

static void import_succeed(struct user_import *import)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "dry_run", import->params.dry_run);
    jsonw_member_int(&w, "created", (int64_t)import->result.created);
    jsonw_member_int(&w, "existing", (int64_t)import->result.existing);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < import->count; i++)
        import_write_row(import, &import->rows[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    import_end(import, 0, NULL, &out);
}

/* ---- the check ---- */

static void import_add_error(struct user_import *import, const struct import_row *row,
                             const struct aq_error *err)
{
    if (import->error_count++ < ERRORS_MAX)
        (void)json_array_append_new(import->errors,
                                    json_pack("{s:I, s:s, s:s}", "line", (json_int_t)row->line,
                                              "field", err->field, "msg", err->text));
}

/* Two rows of the import that cannot both be. */
static int import_claim(struct map *map, const char *text, const char *field,
                        struct import_row *row, struct aq_error *err)
{
    const struct import_row *other = map_gets(map, text);

    if (other)
        return api_fail_param(err, field, "line %lld has '%.64s', too; leave one of them out",
                              (long long)other->line, text);
    map_sets(map, text, row);
    return 0;
}

/* True if the row is of a user who is there already. */
static bool import_find_existing(struct user_import *import, struct import_row *row)
{
    const char *email = json_string_value(json_object_get(row->user, "email"));
    const struct user *user = email ? core_find_user_by_email(import->api->core, email) : NULL;

    row->exists = user && user->status != USER_DELETED;
    if (row->exists)
        row->existing = user->id;
    import->result.existing += row->exists;
    return row->exists;
}

static int import_check_row(struct user_import *import, struct import_row *row,
                            struct aq_error *err)
{
    struct account_change *change = import->change;
    const struct user *user;
    int r;

    if (import_find_existing(import, row))
        return import_claim(&import->emails, json_string_value(json_object_get(row->user, "email")),
                            "email", row, err);
    row->event = change->batch->count;
    if ((r = account_change_row(change, NULL, row->user, err)) < 0)
        return r;
    row->password = AQ_TAKE(change->password);
    user = &change->batch->events[row->event].user.user;
    if ((r = import_claim(&import->emails, user->email, "email", row, err)) < 0
        || (r = import_claim(&import->names, user->username, "username", row, err)) < 0
        || (r = account_change_add_keypair(change, &row->keys, err)) < 0
        || (r = import_claim(&import->keys,
                             change->batch->events[row->event + 1].keypair.access_key, "access_key",
                             row, err))
               < 0)
        return r;
    import->result.created++;
    return 0;
}

/* All rows into a batch; 0, or an error of the import as a whole. What is wrong with rows is
 * counted in error_count.
 */
static void import_check(struct user_import *import)
{
    if (import->change)
        account_change_drop(import->change);
    map_done(&import->emails);
    map_done(&import->names);
    map_done(&import->keys);
    import->emails = import->names = import->keys = (struct map)MAP_INIT;
    import->result = (struct user_import_result){ .dry_run = import->params.dry_run };
    import->change = account_change_new(import->api, &import->arena, &account_user);
    for (size_t i = 0; i < import->count; i++) {
        struct aq_error failed = { 0 };

        if (import_check_row(import, &import->rows[i], &failed) < 0)
            import_add_error(import, &import->rows[i], &failed);
    }
}

/* With no error in a row: true. Otherwise the import has ended. */
static bool import_is_right(struct user_import *import)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *errors = NULL;
    struct aq_error err = { 0 };
    int r;

    import_check(import);
    if (import->error_count == 0)
        return true;
    errors = json_dump_text(import->errors, JSON_COMPACT);
    strbuf_addf(&out, "{\"errors\":%s,\"more\":%zu}", errors,
                import->error_count - json_array_size(import->errors));
    r = aq_fail_kind(&err, EINVAL, "invalid-api-params",
                     "%zu of %zu users cannot be imported; nothing is changed", import->error_count,
                     import->count);
    import_end(import, r, &err, &out);
    return false;
}

/* ---- passwords, then the batch ---- */

static void import_on_saved(void *data, int r, const struct aq_error *err)
{
    struct user_import *import = data;

    if (r < 0)
        import_end(import, r, err, NULL);
    else
        import_succeed(import);
}

/* What the batch does not hold when it is checked: hashes; and the keys that were made. False if
 * there is no hash of a user who existed when passwords were hashed.
 */
static bool import_complete(struct user_import *import)
{
    struct event *events = import->change->batch->events;

    for (size_t i = 0; i < import->count; i++) {
        struct import_row *row = &import->rows[i];
        const struct keypair *key = &events[row->event + 1].keypair;

        if (row->exists)
            continue;
        if (row->password && !row->hash[0])
            return false;
        if (row->password)
            events[row->event].user.password_hash = aq_strdup(row->hash);
        row->keys.access_key = arena_strdup(&import->arena, key->access_key);
        row->keys.secret_key = arena_strdup(&import->arena, key->secret_key);
    }
    return true;
}

static void import_save(struct user_import *import)
{
    struct aq_error err = { 0 };

    if (!import_is_right(import))
        return;
    if (import->result.created == 0)
        import_succeed(import);
    else if (!import_complete(import))
        import_end(import, aq_fail(&err, EAGAIN, "users were removed meanwhile; try again"), &err,
                   NULL);
    else
        core_save(import->api->core, AQ_TAKE(import->change->batch), &import->by, import_on_saved,
                  import);
}

/* On a thread of the store, while the loop leaves the rows alone. */
static int import_hash_some(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct user_import *import = data;
    int r = 0;

    (void)tx;
    for (int n = 0; r == 0 && n < PASSWORDS_MAX && import->hashed < import->count;
         import->hashed++) {
        struct import_row *row = &import->rows[import->hashed];

        if (!row->password || row->exists)
            continue;
        r = password_hash(row->password, row->hash, err);
        n++;
    }
    return r;
}

static void import_hash(struct user_import *import);

static void import_on_hashed(void *data, int r, const struct aq_error *err)
{
    struct user_import *import = data;

    if (r < 0)
        import_end(import, r, err, NULL);
    else if (import->hashed < import->count)
        import_hash(import);
    else
        import_save(import);
}

static void import_hash(struct user_import *import)
{
    store_read(core_store(import->api->core), import_hash_some, import_on_hashed, import);
}

/* ---- the beginning ---- */

static int import_read_rows(struct user_import *import, struct aq_error *err)
{
    const json_t *users;
    size_t i;

    if (decode_object(user_import_fields, import->tree, &import->arena, &import->params, err) < 0)
        return -err->code;
    users = import->params.users;
    if (json_array_size(users) < 1 || json_array_size(users) > USER_IMPORT_MAX)
        return api_fail_param(err, "users", "must be a list of 1 to %d users", USER_IMPORT_MAX);
    import->rows = arena_array(&import->arena, json_array_size(users), sizeof(*import->rows));
    import->errors = json_array();
    for (i = 0; i < json_array_size(users); i++) {
        struct import_row *row = &import->rows[import->count++];
        const json_t *given = json_array_get(users, i);

        *row = (struct import_row){ .line = (int64_t)i + 1 };
        if (!json_is_object(given))
            return api_fail_param(err, "users", "user %zu is no object", i + 1);
        if (decode_object(row_fields, given, &import->arena, row, err) < 0)
            return aq_error_wrap(err, "user %zu", i + 1);
    }
    return 0;
}

void user_import_start(struct api *api, json_t *params, const struct audit_who *by,
                       user_import_fn *done, void *data)
{
    struct user_import *import = aq_alloc(sizeof(*import));
    struct aq_error err = { 0 };
    int r;

    *import = (struct user_import){
        .api = api, .tree = params, .by = *by, .done = done, .data = data
    };
    if ((r = import_read_rows(import, &err)) < 0)
        import_end(import, r, &err, NULL);
    else if (!import_is_right(import))
        return;
    else if (import->params.dry_run)
        import_succeed(import);
    else
        import_hash(import);
}
