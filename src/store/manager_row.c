/* SPDX-License-Identifier: Apache-2.0 */
/* manager_row.c - see manager_row.h */
#include "store/manager_row.h"

#include <errno.h>

#include "store/transaction.h"

static int manager_row_write(struct store_tx *tx, const char *text, const struct manager_row *row,
                             struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, row->name);
    sql_put_text(q, row->link);
    sql_put_text(q, row->api);
    sql_put_text(q, row->version);
    sql_put_int(q, row->joined_usec);
    return sql_change(q, err);
}

int manager_row_join(struct store_tx *tx, const struct manager_row *row, struct aq_error *err)
{
    int r = manager_row_write(tx,
                              "INSERT INTO managers (name, link, api, version, joined_at)"
                              " VALUES (?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET"
                              " link = excluded.link, api = excluded.api,"
                              " version = excluded.version, joined_at = excluded.joined_at",
                              row, err);

    return AQ_MIN(r, 0);
}

int manager_row_exists(struct store_tx *tx, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT 1 FROM managers WHERE name = ? AND link <> ''", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, name);
    return sql_step(q, err);
}

int manager_row_refresh(struct store_tx *tx, const struct manager_row *row, struct aq_error *err)
{
    return manager_row_write(tx,
                             "INSERT INTO managers (name, link, api, version, joined_at)"
                             " VALUES (?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET"
                             " link = excluded.link, api = excluded.api,"
                             " version = excluded.version WHERE managers.link <> ''",
                             row, err);
}

int manager_row_remove(struct store_tx *tx, const char *name, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE managers SET link = '', api = '', version = ''"
                        " WHERE name = ? AND link <> ''",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, name);
    return sql_change(q, err);
}

int manager_row_list(struct store_tx *tx, int (*visit)(void *data, const struct manager_row *row),
                     void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT name, link, api, version, joined_at FROM managers"
                        " WHERE link <> '' ORDER BY name",
                        &q, err);

    while (r >= 0 && (r = sql_step(q, err)) > 0) {
        struct row columns = { .q = q };
        struct manager_row row;

        row_bounded(&columns, row.name, sizeof(row.name));
        row_bounded(&columns, row.link, sizeof(row.link));
        row_bounded(&columns, row.api, sizeof(row.api));
        row_bounded(&columns, row.version, sizeof(row.version));
        row.joined_usec = sql_get_int(q);
        r = row_check(&columns, "managers", err);
        if (r == 0)
            r = visit(data, &row);
    }
    return r;
}

int manager_row_read_epoch(struct store_tx *tx, int64_t *ret_epoch, int64_t *ret_taken_usec,
                           struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT epoch, taken_at FROM manager_lease", &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r > 0) {
        *ret_epoch = sql_get_int(q);
        *ret_taken_usec = sql_get_int(q);
    }
    return AQ_MIN(r, 0);
}
