/* SPDX-License-Identifier: Apache-2.0 */
/* error_log.c - what went wrong in clients, as they report it themselves */
#include "store/error_log.h"

#include "store/list_query.h"

#define PRUNED_AT_A_TIME 100

/* The oldest of too many of this user. */
static int error_log_prune(struct store_tx *tx, const struct error_log *entry, struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "DELETE FROM error_logs WHERE seq IN (SELECT seq FROM error_logs"
                        " WHERE user_id = ? ORDER BY seq DESC LIMIT ? OFFSET ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &entry->user_id, user);
    sql_put_int(q, PRUNED_AT_A_TIME);
    sql_put_int(q, ERROR_LOGS_OF_USER);
    return sql_run(q, err);
}

int error_log_add(struct store_tx *tx, const struct error_log *entry, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO error_logs (seq, id, at, user_id, severity, source, message,"
                        " context_lang, context_env, request_url, request_status, traceback,"
                        " is_read, is_cleared)"
                        " VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM error_logs),"
                        " ?,?,?,?,?,?,?,?,?,?,?,0,0)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &entry->id, id);
    sql_put_int(q, entry->at_usec);
    sql_put_uuid(q, &entry->user_id, user);
    sql_put_text(q, entry->severity);
    sql_put_text(q, entry->source);
    sql_put_text(q, entry->message);
    sql_put_text(q, entry->context_lang);
    sql_put_text(q, entry->context_env);
    sql_put_text(q, entry->request_url);
    if (entry->request_status)
        sql_put_int(q, entry->request_status);
    else
        sql_put_null(q);
    sql_put_text(q, entry->traceback);
    r = sql_run(q, err);
    return r < 0 ? r : error_log_prune(tx, entry, err);
}

/* ---- the list ---- */

static int error_log_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct error_log *e = ret;

    (void)tx;
    (void)err;
    e->id = sql_get_uuid(row->q);
    e->at_usec = sql_get_int(row->q);
    e->user_id = sql_get_uuid(row->q);
    e->severity = row_text(row);
    e->source = row_text(row);
    e->message = row_text(row);
    e->context_lang = row_text(row);
    e->context_env = row_text(row);
    e->request_url = row_text(row);
    e->request_status = sql_get_int(row->q);
    e->traceback = row_text(row);
    e->is_read = sql_get_int(row->q);
    return 0;
}

static const struct list_table error_log_table = {
    .what = "error_logs",
    .columns = "l.id, l.at, l.user_id, l.severity, l.source, l.message, l.context_lang,"
               " l.context_env, l.request_url, l.request_status, l.traceback, l.is_read",
    .from = "error_logs l LEFT JOIN users u ON u.id = l.user_id",
    .order = "l.seq DESC",
    .tie = "l.seq",
    .domain = "u.domain",
    .user = "l.user_id",
    .row_size = sizeof(struct error_log),
    .read = error_log_read_row,
};

int store_list_error_logs(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                          struct aq_error *err)
{
    static const struct list_extra extra = { .where = "l.is_cleared = 0" };

    return list_run(tx, &error_log_table, q, &extra, ret, err);
}

/* ---- changes ---- */

int error_log_mark_read(struct store_tx *tx, const struct store_page *page, struct aq_error *err)
{
    const struct error_log *rows = page->rows;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < page->count; i++) {
        char id[UUID_TEXT_MAX];
        struct sql_stmt *q;

        r = sql_prepare(tx->db, "UPDATE error_logs SET is_read = 1 WHERE id = ?", &q, err);
        if (r < 0)
            return r;
        sql_put_uuid(q, &rows[i].id, id);
        r = sql_run(q, err);
    }
    return AQ_MIN(r, 0);
}

int error_log_clear(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                    const char *domain, struct aq_error *err)
{
    char id_text[UUID_TEXT_MAX], user[UUID_TEXT_MAX] = "";
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE error_logs SET is_cleared = 1 WHERE id = ? AND is_cleared = 0"
                        " AND (? = '' OR user_id = ?)"
                        " AND (? = '' OR user_id IN (SELECT id FROM users WHERE domain = ?))",
                        &q, err);

    if (r < 0)
        return r;
    if (user_id)
        (void)uuid_format(user_id, user);
    sql_put_uuid(q, id, id_text);
    sql_put_text(q, user);
    sql_put_text(q, user);
    sql_put_text(q, domain ? domain : "");
    sql_put_text(q, domain ? domain : "");
    return sql_change(q, err);
}
