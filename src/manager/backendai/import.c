/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - the way of an import: parse, check, look up and hash, check again, save */
#include "manager/backendai/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/backendai/rows.h"

#define ERRORS_MAX 50   /* that are told */
#define PASSWORDS_MAX 4 /* that are hashed before others may use the thread */

const struct field backendai_import_fields[] = {
    { "tables", FIELD_OBJECT, FIELD_REQUIRED, offsetof(struct backendai_params, tables),
      .doc = "{\"users\": [{\"line\": where errors are, \"uuid\", \"email\", ...}], \"keypairs\","
             " ...}: rows of Backend.AI's tables" },
    { "plain_passwords", FIELD_BOOL, 0, offsetof(struct backendai_params, plain_passwords),
      .doc = "what is no hash by crypt(3) is a password, and not a hash of another kind" },
    { "dry_run", FIELD_BOOL, 0, offsetof(struct backendai_params, dry_run),
      .doc = "change nothing, say what would be done" },
    FIELD_END,
};

/* ---- the end ---- */

static void backendai_forget_check(struct backendai_import *import)
{
    struct map *const maps[] = { &import->domains,         &import->policies,
                                 &import->resource_groups, &import->projects,
                                 &import->project_names,   &import->users,
                                 &import->emails,          &import->usernames,
                                 &import->keypairs };

    for (size_t i = 0; i < AQ_COUNT(maps); i++) {
        map_done(maps[i]);
        *maps[i] = (struct map)MAP_INIT;
    }
    if (import->change)
        account_change_drop(import->change);
    import->change = NULL;
    backendai_attached_clear(&import->attached);
}

static void backendai_end(struct backendai_import *import, int r, const struct aq_error *err,
                          const struct strbuf *json)
{
    import->result.json = json;
    import->done(import->data, r, err, &import->result);
    backendai_forget_check(import);
    json_decref(import->errors);
    json_decref(import->tree);
    arena_done(&import->arena);
    free(import);
}

static void backendai_succeed(struct backendai_import *import)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    backendai_write_report(import, &w);
    backendai_end(import, 0, NULL, &out);
}

/* ---- the check ---- */

static void backendai_add_error(struct backendai_import *import, const char *table,
                                const struct backendai_row *row, const struct aq_error *err)
{
    if (import->error_count++ < ERRORS_MAX)
        (void)json_array_append_new(import->errors,
                                    json_pack("{s:s, s:I, s:s, s:s}", "table", table, "line",
                                              (json_int_t)row->line, "field", err->field, "msg",
                                              err->text));
}

static void backendai_check_table(struct backendai_import *import, enum backendai_table table)
{
    for (size_t i = 0; i < import->tables[table].count; i++) {
        struct backendai_row *row = &import->tables[table].items[i];
        struct aq_error failed = { 0 };

        row->outcome = BACKENDAI_TAKEN;
        row->note = row->label = NULL;
        if (backendai_kinds[table].take(import, row, &failed) < 0)
            backendai_add_error(import, backendai_kinds[table].table, row, &failed);
    }
}

/* All rows into a batch. What is wrong with rows is counted in error_count. */
static void backendai_check(struct backendai_import *import)
{
    backendai_forget_check(import);
    import->change = account_change_new(import->api, &import->arena, &account_domain);
    for (int table = 0; table < BACKENDAI_TABLE_COUNT; table++)
        backendai_check_table(import, (enum backendai_table)table);
    import->result.taken = backendai_count_taken(import);
}

/* With no error in a row: true. Otherwise the import has ended. */
static bool backendai_is_right(struct backendai_import *import)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *errors = NULL;
    struct aq_error err = { 0 };
    int r;

    backendai_check(import);
    if (import->error_count == 0)
        return true;
    errors = json_dump_text(import->errors, JSON_COMPACT);
    strbuf_addf(&out, "{\"errors\":%s,\"more\":%zu}", errors,
                import->error_count - json_array_size(import->errors));
    r = aq_fail_kind(&err, EINVAL, "invalid-api-params",
                     "%zu rows cannot be imported; nothing is changed", import->error_count);
    backendai_end(import, r, &err, &out);
    return false;
}

/* ---- saving ---- */

static void backendai_on_saved(void *data, int r, const struct aq_error *err)
{
    struct backendai_import *import = data;

    if (r < 0) {
        backendai_end(import, r, err, NULL);
        return;
    }
    backendai_apply_attached(import);
    backendai_succeed(import);
}

static bool backendai_are_hashed(const struct backendai_import *import)
{
    const struct backendai_rows *users = &import->tables[BACKENDAI_USERS];

    for (size_t i = 0; i < users->count; i++)
        if (users->items[i].needs_hash && !users->items[i].hash)
            return false; /* existed when passwords were hashed */
    return true;
}

static void backendai_save(struct backendai_import *import)
{
    struct aq_error err = { 0 };
    int r = 0;

    if (!backendai_is_right(import))
        return;
    if (import->params.dry_run || import->result.taken == 0) {
        backendai_succeed(import);
        return;
    }
    if (!backendai_are_hashed(import))
        r = aq_fail(&err, EAGAIN, "users were removed meanwhile; try again");
    if (r < 0) {
        backendai_end(import, r, &err, NULL);
        return;
    }
    backendai_add_attached(import);
    core_save(import->api->core, AQ_TAKE(import->change->batch), &import->by, backendai_on_saved,
              import);
}

/* ---- what the check does not find in memory, and passwords ---- */

static int backendai_hash_row(struct backendai_import *import, struct backendai_row *row,
                              struct aq_error *err)
{
    char hash[PASSWORD_HASH_MAX];
    int r = password_hash(row->password, hash, err);

    if (r < 0)
        return r;
    row->hash = arena_strdup(&import->arena, hash);
    return 0;
}

/* store_tx_fn; the loop leaves the rows alone meanwhile. */
static int backendai_look_up(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct backendai_import *import = data;
    const struct backendai_rows *users = &import->tables[BACKENDAI_USERS];
    int r = import->hashed == 0 ? backendai_look_up_grants(tx, import, err) : 0;

    for (int n = 0; r == 0 && n < PASSWORDS_MAX && import->hashed < users->count;
         import->hashed++) {
        struct backendai_row *row = &users->items[import->hashed];

        if (!row->needs_hash || import->params.dry_run)
            continue;
        r = backendai_hash_row(import, row, err);
        n++;
    }
    return r;
}

static void backendai_start_look_up(struct backendai_import *import);

static void backendai_on_looked_up(void *data, int r, const struct aq_error *err)
{
    struct backendai_import *import = data;

    if (r < 0)
        backendai_end(import, r, err, NULL);
    else if (import->hashed < import->tables[BACKENDAI_USERS].count)
        backendai_start_look_up(import);
    else
        backendai_save(import);
}

static void backendai_start_look_up(struct backendai_import *import)
{
    store_read(core_store(import->api->core), backendai_look_up, backendai_on_looked_up, import);
}

/* ---- the beginning ---- */

/* store_tx_fn */
static int backendai_parse(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct backendai_import *import = data;

    (void)tx;
    return decode_large_json(import->text, import->text_len, BACKENDAI_VALUES_MAX, &import->tree,
                             err);
}

static void backendai_on_parsed(void *data, int r, const struct aq_error *err)
{
    struct backendai_import *import = data;
    struct aq_error failed = { 0 };

    if (r == 0) {
        err = &failed;
        r = backendai_read_rows(import, &failed);
    }
    import->errors = json_array();
    if (r < 0)
        backendai_end(import, r, err, NULL);
    else if (backendai_is_right(import))
        backendai_start_look_up(import);
}

void backendai_import_start(struct api *api, const char *text, size_t len,
                            const struct audit_who *by, backendai_done_fn *done, void *data)
{
    struct backendai_import *import = aq_alloc(sizeof(*import));

    *import = (struct backendai_import){
        .api = api, .text = text, .text_len = len, .by = *by, .done = done, .data = data
    };
    store_read(core_store(api->core), backendai_parse, backendai_on_parsed, import);
}
