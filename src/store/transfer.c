/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of one database into another one. */
#include "store/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"

#define ROWS_AT_ONCE 2000
#define COLUMNS_MAX 64
#define KEYS_MAX 4

/* In the order of their references. What has no key is small, and copied whole. */
static const struct transfer_table {
    const char *name, *key;
} tables[] = {
    { "settings", NULL },
    { "managers", "name" },
    { "config_entries", "key" },
    { "slot_types", "name" },
    { "domains", "name" },
    { "projects", "id" },
    { "keypair_policies", "name" },
    { "resource_groups", "name" },
    { "users", "id" },
    { "memberships", "user_id, project_id" },
    { "keypairs", "access_key" },
    { "resource_group_access", "kind, whom, resource_group" },
    { "agents", "id" },
    { "agent_history", NULL },
    { "join_tokens", "hash" },
    { "agent_certs", "serial" },
    { "bookings", "id" },
    { "model_services", "id" },
    { "model_service_revisions", "service_id, number" },
    { "model_service_tokens", "id" },
    { "model_service_totals", "service_id, object" },
    { "model_service_history", "service_id, version" },
    { "arrays", "seq" },
    { "sessions", "seq" },
    { "session_totals", NULL },
    { "session_dependencies", "session_seq, depends_on" },
    { "array_dependencies", "session_seq, array_id, element" },
    { "kernels", "session_seq, rank" },
    { "allocations", "session_seq, rank, version, slot" },
    { "session_history", "session_seq, rank, version" },
    { "session_events", "number" },
    { "session_idle", "session_seq" },
    { "statistics_series", "owner, at" },
    { "session_attempts", "session_seq, number" },
    { "session_runs", "session_seq, number" },
    { "audit_log", "seq" },
    { "removed_usage", "session_seq, rank, version, slot" },
    { "retention_runs", "entity" },
    { "error_logs", "seq" },
    { "dotfiles", "kind, owner, path" },
    { "request_answers", "seq" },
    { "app_tokens", "hash" },
    { "folders", "id" },
    { "folder_shares", "folder_id, user_id" },
    { "folder_invitations", "id" },
    { "logins", "hash" },
    { "session_templates", "id" },
    { "pipelines", "id" },
    { "pipeline_runs", "id" },
    { "pipeline_tasks", "run_id, place" },
    { "pipeline_switches", "user_id, name" },
    { "pipeline_triggers", "id" },
};

const char *transfer_table_name(size_t i)
{
    return i < AQ_COUNT(tables) ? tables[i].name : NULL;
}

/* ---- one table ---- */

struct transfer_column {
    char name[48];
    char type; /* first letter of INTEGER, TEXT, BLOB */
};

struct transfer {
    struct sql *from, *to;
    const struct transfer_table *table;
    struct transfer_column columns[COLUMNS_MAX];
    size_t column_count;
    size_t keys[KEYS_MAX]; /* columns of the key, in its order */
    size_t key_count;
    store_move_report_fn report;
    void *data;
    struct pace *pace;
    int64_t done, total;
};

/* Those of the source: the target has the same. */
static int transfer_read_columns(struct transfer *t, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(t->from, t->from->ops->list_columns, &q, err);

    t->column_count = 0;
    if (r < 0)
        return r;
    sql_put_text(q, t->table->name);
    while ((r = sql_step(q, err)) > 0 && t->column_count < COLUMNS_MAX) {
        struct transfer_column *c = &t->columns[t->column_count++];

        (void)snprintf(c->name, sizeof(c->name), "%s", sql_get_text(q));
        c->type = sql_get_text(q)[0];
    }
    return r == 0 && t->column_count == 0
               ? aq_fail(err, EUCLEAN, "the database has no table %s", t->table->name)
               : r;
}

/* The columns that "a, b" names. */
static void transfer_find_keys(struct transfer *t)
{
    t->key_count = 0;
    for (const char *at = t->table->key; at && *at; at += strspn(at, ", ")) {
        size_t len = strcspn(at, ",");

        for (size_t i = 0; i < t->column_count; i++)
            if (strlen(t->columns[i].name) == len && strncmp(t->columns[i].name, at, len) == 0)
                t->keys[t->key_count++] = i;
        at += len;
    }
}

static void transfer_add_columns(const struct transfer *t, struct strbuf *sql)
{
    for (size_t i = 0; i < t->column_count; i++)
        strbuf_addf(sql, "%s%s", i ? ", " : "", t->columns[i].name);
}

static int transfer_prepare_insert(struct transfer *t, struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    strbuf_addf(&sql, "INSERT INTO %s (", t->table->name);
    transfer_add_columns(t, &sql);
    strbuf_adds(&sql, ") VALUES (");
    for (size_t i = 0; i < t->column_count; i++)
        strbuf_adds(&sql, i ? ",?" : "?");
    strbuf_addc(&sql, ')');
    return sql_prepare_kept(t->to, sql.data, ret, err);
}

/* "(a, b) > (?,?)" */
static void transfer_add_after(const struct transfer *t, struct strbuf *sql)
{
    strbuf_addf(sql, " WHERE (%s) > (", t->table->key);
    for (size_t i = 0; i < t->key_count; i++)
        strbuf_adds(sql, i ? ",?" : "?");
    strbuf_addc(sql, ')');
}

static int transfer_prepare_select(struct transfer *t, bool is_first, struct sql_stmt **ret,
                                   struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    strbuf_adds(&sql, "SELECT ");
    transfer_add_columns(t, &sql);
    strbuf_addf(&sql, " FROM %s", t->table->name);
    if (t->table->key) {
        if (!is_first)
            transfer_add_after(t, &sql);
        strbuf_addf(&sql, " ORDER BY %s LIMIT %d", t->table->key, ROWS_AT_ONCE);
    }
    return sql_prepare_once(t->from, sql.data, ret, err);
}

/* ---- values ---- */

/* A key as it was read last, to go on after it. */
struct transfer_value {
    char type;
    int64_t number;
    char *bytes;
    size_t len;
};

struct transfer_place {
    struct transfer_value values[KEYS_MAX];
    size_t count;
};

static void transfer_place_done(struct transfer_place *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->values[i].bytes);
    p->count = 0;
}

static void transfer_put(struct sql_stmt *q, const struct transfer_value *v)
{
    if (v->type == 'I')
        sql_put_int(q, v->number);
    else if (v->type == 'B')
        sql_put_blob(q, v->bytes, v->len);
    else
        sql_put_text(q, v->bytes);
}

/* The next column, borrowed; 0 for null. */
static struct transfer_value transfer_get(struct sql_stmt *q, char type)
{
    struct transfer_value v = { .type = type };

    if (sql_get_is_null(q)) {
        (void)sql_get_text(q);
        v.type = 'T';
    } else if (type == 'I') {
        v.number = sql_get_int(q);
    } else if (type == 'B') {
        v.bytes = (char *)(uintptr_t)sql_get_blob(q, &v.len);
    } else {
        v.bytes = (char *)(uintptr_t)sql_get_text(q);
        v.len = strlen(v.bytes);
    }
    return v;
}

static void transfer_remember(const struct transfer_value *v, struct transfer_value *kept)
{
    free(kept->bytes);
    *kept = *v;
    if (!v->bytes)
        return;
    kept->bytes = aq_alloc(v->len + 1);
    memcpy(kept->bytes, v->bytes, v->len);
}

/* ---- rows ---- */

static int transfer_row(struct transfer *t, struct sql_stmt *from, struct sql_stmt *to,
                        struct transfer_place *place, struct aq_error *err)
{
    struct transfer_value values[COLUMNS_MAX];

    for (size_t i = 0; i < t->column_count; i++) {
        values[i] = transfer_get(from, t->columns[i].type);
        transfer_put(to, &values[i]);
    }
    place->count = t->key_count;
    for (size_t i = 0; i < t->key_count; i++)
        transfer_remember(&values[t->keys[i]], &place->values[i]);
    t->done++;
    return sql_run_kept(to, err);
}

/* The rows after 'place', as many as belong into one transaction; how many there were. */
static int transfer_page(struct transfer *t, struct sql_stmt *to, bool is_first,
                         struct transfer_place *place, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *from = NULL;
    int count = 0, r = transfer_prepare_select(t, is_first, &from, err);

    if (r < 0)
        return r;
    for (size_t i = 0; !is_first && i < place->count; i++)
        transfer_put(from, &place->values[i]);
    while ((r = sql_step(from, err)) > 0) {
        if ((r = transfer_row(t, from, to, place, err)) < 0)
            return r;
        count++;
    }
    return r < 0 ? r : count;
}

/* The key of the last row that has arrived; 1, or 0 if there is none. */
static int transfer_read_place(struct transfer *t, struct transfer_place *place,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    strbuf_addf(&sql, "SELECT %s FROM %s ORDER BY ", t->table->key, t->table->name);
    for (size_t i = 0; i < t->key_count; i++)
        strbuf_addf(&sql, "%s%s DESC", i ? ", " : "", t->columns[t->keys[i]].name);
    strbuf_adds(&sql, " LIMIT 1");
    r = sql_prepare_once(t->to, sql.data, &q, err);
    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    place->count = t->key_count;
    for (size_t i = 0; i < t->key_count; i++) {
        struct transfer_value v = transfer_get(q, t->columns[t->keys[i]].type);

        transfer_remember(&v, &place->values[i]);
    }
    return 1;
}

static int transfer_write_page(struct transfer *t, struct sql_stmt *to, bool is_first,
                               struct transfer_place *place, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *clear = t->table->key ? NULL
                                                     : aq_format("DELETE FROM %s", t->table->name);
    int count, r = sql_run_script(t->to, t->to->ops->begin_write, err);

    if (r == 0 && !t->table->key)
        r = sql_run_script(t->to, clear, err);
    if (r < 0)
        return r;
    count = transfer_page(t, to, is_first, place, err);
    AQ_FAULT("store.transfer.written");
    if (count >= 0 && (r = sql_settle(t->to, err)) == 0)
        r = sql_run_script(t->to, "COMMIT", err);
    if (count < 0 || r < 0) {
        (void)sql_run_script(t->to, "ROLLBACK", NULL);
        return AQ_MIN(count, r);
    }
    if (t->report)
        t->report(t->data, t->table->name, t->done, t->total);
    pace_step(t->pace);
    return count;
}

static int transfer_copy_table(struct transfer *t, struct aq_error *err)
{
    AQ_CLEANUP(transfer_place_done) struct transfer_place place = { .count = 0 };
    AQ_CLEANUP(sql_endp) struct sql_stmt *to = NULL;
    int has_some = 0, r = transfer_read_columns(t, err);

    transfer_find_keys(t);
    if (r == 0 && t->table->key)
        has_some = r = transfer_read_place(t, &place, err);
    if (r < 0 || (r = transfer_prepare_insert(t, &to, err)) < 0)
        return r;
    do {
        r = transfer_write_page(t, to, !has_some, &place, err);
        has_some = 1;
    } while (t->table->key && r == ROWS_AT_ONCE);
    return AQ_MIN(r, 0);
}

/* ---- all tables ---- */

int transfer_count_table(struct sql *db, const char *name, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *query = aq_format("SELECT COUNT(*) FROM %s", name);
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, query, &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

int transfer_count(struct sql *db, int64_t *ret, struct aq_error *err)
{
    *ret = 0;
    for (size_t i = 0; i < AQ_COUNT(tables); i++) {
        int64_t count = 0;
        int r = transfer_count_table(db, tables[i].name, &count, err);

        if (r < 0)
            return r;
        *ret += count;
    }
    return 0;
}

int transfer_copy(struct sql *from, struct sql *to, store_move_report_fn report, void *data,
                  struct pace *pace, struct aq_error *err)
{
    struct transfer t = { .from = from, .to = to, .report = report, .data = data, .pace = pace };
    int r = transfer_count(from, &t.total, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(tables); i++) {
        int64_t before = 0;

        t.table = &tables[i];
        if (t.table->key)
            r = transfer_count_table(to, t.table->name, &before, err);
        t.done += before;
        if (r == 0)
            r = transfer_copy_table(&t, err);
        if (r < 0)
            (void)aq_error_wrap(err, "table %s", t.table->name);
    }
    return r;
}

int transfer_compare(struct sql *from, struct sql *to, struct pace *pace, struct strbuf *out,
                     struct aq_error *err)
{
    int found = 0;

    for (size_t i = 0; i < AQ_COUNT(tables); i++) {
        int64_t mine = 0, other = 0;
        int r = transfer_count_table(from, tables[i].name, &mine, err);

        if (r == 0)
            r = transfer_count_table(to, tables[i].name, &other, err);
        if (r < 0)
            return r;
        if (mine != other) {
            strbuf_addf(out, "table %s: %lld rows, the copy has %lld\n", tables[i].name,
                        (long long)mine, (long long)other);
            found++;
        }
        pace_step(pace);
    }
    return found;
}
