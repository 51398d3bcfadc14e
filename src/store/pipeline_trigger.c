/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.c - rows of triggers, and whether they are enabled */
#include "store/pipeline_trigger.h"

#include "store/list_query.h"

/* ---- switches ---- */

int pipeline_switch_read(struct store_tx *tx, const struct uuid *user_id, const char *name,
                         struct arena *arena, struct pipeline_switch_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT is_enabled, reason, access_key, options, changed_at FROM"
                        " pipeline_switches WHERE user_id = ? AND name = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    sql_put_text(q, name);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    row.q = q;
    *ret = (struct pipeline_switch_row){ .user_id = *user_id, .name = name };
    ret->is_enabled = sql_get_int(q) != 0;
    ret->reason = row_text(&row);
    ret->access_key = row_text(&row);
    ret->options = row_text(&row);
    ret->changed_usec = sql_get_int(q);
    return 1;
}

int pipeline_switch_write(struct store_tx *tx, const struct pipeline_switch_row *row,
                          struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO pipeline_switches (user_id, name, is_enabled, reason, access_key, options,"
        " changed_at) VALUES (?,?,?,?,?,?,?) ON CONFLICT (user_id, name) DO UPDATE SET"
        " is_enabled = excluded.is_enabled, reason = excluded.reason,"
        " access_key = excluded.access_key, options = excluded.options,"
        " changed_at = excluded.changed_at",
        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &row->user_id, user);
    sql_put_text(q, row->name);
    sql_put_int(q, row->is_enabled);
    sql_put_text(q, row->reason);
    sql_put_text(q, row->access_key);
    sql_put_text(q, row->options);
    sql_put_int(q, row->changed_usec);
    return sql_run(q, err);
}

/* ---- reading triggers ---- */

#define TRIGGER_COLUMNS                                                                     \
    "t.id, t.user_id, t.name, t.place, t.cron, t.zone, t.after_name, t.ends, t.overlap,"    \
    " t.missed, t.checked_at, t.next_at, t.last_at, t.last_result, s.is_enabled, s.reason," \
    " s.access_key, s.options, u.email"
#define TRIGGER_FROM                                                                        \
    "pipeline_triggers t JOIN users u ON u.id = t.user_id LEFT JOIN pipeline_switches s ON" \
    " s.user_id = t.user_id AND s.name = t.name"
#define TRIGGER_SELECT "SELECT " TRIGGER_COLUMNS " FROM " TRIGGER_FROM " WHERE "

static int trigger_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct pipeline_trigger_row *t = ret;

    (void)tx;
    (void)err;
    t->id = sql_get_uuid(row->q);
    t->user_id = sql_get_uuid(row->q);
    t->name = row_text(row);
    t->place = sql_get_int(row->q);
    t->cron = row_text(row);
    t->zone = row_text(row);
    t->after = row_text(row);
    t->ends = row_text(row);
    t->overlap = row_text(row);
    t->missed = row_text(row);
    t->checked_usec = sql_get_int(row->q);
    t->next_usec = sql_get_int(row->q);
    t->last_usec = sql_get_int(row->q);
    t->last_result = row_text(row);
    t->is_enabled = sql_get_int(row->q) != 0;
    t->reason = row_text(row);
    t->access_key = row_text(row);
    t->options = row_text(row);
    t->user_email = row_text(row);
    return 0;
}

/* All rows of a constant query, which asks for a user and a name unless they are NULL. */
static int trigger_read_all(struct store_tx *tx, const char *text, const struct uuid *user_id,
                            const char *name, struct arena *arena,
                            struct pipeline_trigger_list *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    if (user_id)
        sql_put_uuid(q, user_id, user);
    if (name)
        sql_put_text(q, name);
    row.q = q;
    *ret = (struct pipeline_trigger_list){ .items = NULL };
    while ((r = sql_step(q, err)) > 0) {
        struct pipeline_trigger_row trigger;

        (void)trigger_read_row(tx, &row, &trigger, err);
        (void)arena_append(arena, &ret->items, &ret->count, &trigger, sizeof(trigger));
    }
    return r;
}

int pipeline_triggers_read(struct store_tx *tx, const struct uuid *user_id, const char *name,
                           struct arena *arena, struct pipeline_trigger_list *ret,
                           struct aq_error *err)
{
    return trigger_read_all(tx, TRIGGER_SELECT "t.user_id = ? AND t.name = ? ORDER BY t.place",
                            user_id, name, arena, ret, err);
}

int pipeline_triggers_read_after(struct store_tx *tx, const struct uuid *user_id, const char *after,
                                 struct arena *arena, struct pipeline_trigger_list *ret,
                                 struct aq_error *err)
{
    return trigger_read_all(tx,
                            TRIGGER_SELECT "t.user_id = ? AND t.after_name = ?"
                                           " AND s.is_enabled = 1 ORDER BY t.name, t.place",
                            user_id, after, arena, ret, err);
}

int pipeline_triggers_read_schedules(struct store_tx *tx, struct arena *arena,
                                     struct pipeline_trigger_list *ret, struct aq_error *err)
{
    return trigger_read_all(tx,
                            TRIGGER_SELECT "t.cron IS NOT NULL AND s.is_enabled = 1 ORDER BY"
                                           " t.zone, t.id",
                            NULL, NULL, arena, ret, err);
}

/* The row of a query with one parameter, if there is one. */
static int trigger_read_one(struct store_tx *tx, struct sql_stmt *q, struct arena *arena,
                            struct pipeline_trigger_row *ret, struct aq_error *err)
{
    struct row row = { .q = q, .arena = arena };
    int r = sql_step(q, err);

    if (r > 0)
        (void)trigger_read_row(tx, &row, ret, err);
    return r;
}

int pipeline_trigger_find_due(struct store_tx *tx, int64_t now_usec, struct arena *arena,
                              struct pipeline_trigger_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, TRIGGER_SELECT "t.next_at <= ? ORDER BY t.next_at, t.id LIMIT 1",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    return trigger_read_one(tx, q, arena, ret, err);
}

int pipeline_trigger_find(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                          struct pipeline_trigger_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char buf[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db, TRIGGER_SELECT "t.id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, buf);
    return trigger_read_one(tx, q, arena, ret, err);
}

static const struct filter_field trigger_fields[] = {
    { "pipeline", "t.name", FILTER_STRING },    { "cron", "t.cron", FILTER_STRING },
    { "zone", "t.zone", FILTER_STRING },        { "after", "t.after_name", FILTER_STRING },
    { "user_email", "u.email", FILTER_STRING }, { "next_at", "t.next_at", FILTER_TIME },
    { "last_at", "t.last_at", FILTER_TIME },
};

static const struct list_table trigger_table = {
    .what = "triggers of pipelines",
    .columns = TRIGGER_COLUMNS,
    .from = TRIGGER_FROM,
    .order = "t.name, t.place, t.id",
    .tie = "t.id",
    .fields = trigger_fields,
    .field_count = AQ_COUNT(trigger_fields),
    .domain = "u.domain",
    .user = "t.user_id",
    .name = "t.name",
    .id = "t.id",
    .row_size = sizeof(struct pipeline_trigger_row),
    .read = trigger_read_row,
};

int store_list_pipeline_triggers(struct store_tx *tx, const struct folder_viewer *who, bool all,
                                 const struct store_query *query, struct store_page **ret,
                                 struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct list_extra extra = PIPELINE_EXTRA(who, all, user, "t.place >= 0", "t.user_id");

    return list_run(tx, &trigger_table, query, &extra, ret, err);
}

/* ---- changing triggers ---- */

int pipeline_triggers_remove(struct store_tx *tx, const struct uuid *user_id, const char *name,
                             struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM pipeline_triggers WHERE user_id = ? AND name = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    sql_put_text(q, name);
    return sql_run(q, err);
}

int pipeline_trigger_insert(struct store_tx *tx, const struct pipeline_trigger_row *row,
                            struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO pipeline_triggers (id, user_id, name, place, cron, zone,"
                        " after_name, ends, overlap, missed, checked_at, next_at, last_at,"
                        " last_result) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &row->id, id);
    sql_put_uuid(q, &row->user_id, user);
    sql_put_text(q, row->name);
    sql_put_int(q, row->place);
    sql_put_text(q, row->cron);
    sql_put_text(q, row->zone);
    sql_put_text(q, row->after);
    sql_put_text(q, row->ends);
    sql_put_text(q, row->overlap);
    sql_put_text(q, row->missed);
    sql_put_int(q, row->checked_usec);
    sql_put_time(q, row->next_usec);
    sql_put_time(q, row->last_usec);
    sql_put_text(q, row->last_result);
    return sql_run(q, err);
}

int pipeline_trigger_update(struct store_tx *tx, const struct pipeline_trigger_row *row,
                            struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE pipeline_triggers SET checked_at = ?, next_at = ?, last_at = ?,"
                        " last_result = ? WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, row->checked_usec);
    sql_put_time(q, row->next_usec);
    sql_put_time(q, row->last_usec);
    sql_put_text(q, row->last_result);
    sql_put_uuid(q, &row->id, id);
    return sql_run(q, err);
}

/* ---- numbers ---- */

/* The first column of a query that has one row. */
static int trigger_read_number(struct sql_stmt *q, int64_t *ret, struct aq_error *err)
{
    int r = sql_step(q, err);

    *ret = r > 0 ? sql_get_int(q) : 0;
    return AQ_MIN(r, 0);
}

int pipeline_triggers_count(struct store_tx *tx, const struct uuid *user_id, int64_t *ret,
                            struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT COUNT(*) FROM pipeline_triggers t JOIN pipeline_switches s ON"
                        " s.user_id = t.user_id AND s.name = t.name WHERE t.user_id = ?"
                        " AND s.is_enabled = 1",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    return trigger_read_number(q, ret, err);
}

int pipeline_triggers_next(struct store_tx *tx, int64_t *ret_usec, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct uuid ended;
    int r = pipeline_run_find_ended(tx, &ended, err);

    *ret_usec = 1;
    if (r != 0)
        return AQ_MIN(r, 0);
    r = sql_prepare(tx->db, "SELECT MIN(next_at) FROM pipeline_triggers WHERE next_at IS NOT NULL",
                    &q, err);
    return r < 0 ? r : trigger_read_number(q, ret_usec, err);
}

/* ---- runs ---- */

int pipeline_run_note_end(struct store_tx *tx, const struct pipeline_run_row *run,
                          struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE pipeline_runs SET follow_at = ? WHERE id = ? AND EXISTS (SELECT 1"
                        " FROM pipeline_triggers t JOIN pipeline_switches s ON s.user_id ="
                        " t.user_id AND s.name = t.name WHERE t.user_id = ? AND t.after_name = ?"
                        " AND s.is_enabled = 1)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, run->ended_usec);
    sql_put_uuid(q, &run->id, id);
    sql_put_uuid(q, &run->user_id, user);
    sql_put_text(q, run->name);
    return sql_run(q, err);
}

int pipeline_run_find_ended(struct store_tx *tx, struct uuid *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT id FROM pipeline_runs WHERE follow_at IS NOT NULL ORDER BY"
                        " follow_at, id LIMIT 1",
                        &q, err);

    if (r == 0 && (r = sql_step(q, err)) > 0)
        *ret = sql_get_uuid(q);
    return r;
}

int pipeline_run_clear_end(struct store_tx *tx, const struct uuid *run_id, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE pipeline_runs SET follow_at = NULL WHERE id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, run_id, id);
    return sql_run(q, err);
}

int pipeline_runs_read_live(struct store_tx *tx, const struct uuid *user_id, const char *name,
                            struct arena *arena, struct uuid_list *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT id FROM pipeline_runs WHERE user_id = ? AND name = ?"
                        " AND ended_at IS NULL ORDER BY number",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    sql_put_text(q, name);
    *ret = (struct uuid_list){ .items = NULL };
    while ((r = sql_step(q, err)) > 0) {
        struct uuid id = sql_get_uuid(q);

        (void)arena_append(arena, &ret->items, &ret->count, &id, sizeof(id));
    }
    return r;
}

int pipeline_runs_count_triggered(struct store_tx *tx, const struct uuid *user_id,
                                  int64_t since_usec, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT COUNT(*) FROM pipeline_runs WHERE user_id = ?"
                        " AND started_by IS NOT NULL AND created_at > ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    sql_put_int(q, since_usec);
    return trigger_read_number(q, ret, err);
}
