/* SPDX-License-Identifier: Apache-2.0 */
/* Coarse series of what kernels and agents used. */
#include "store/series.h"

#include <errno.h>

#include "store/transaction.h"

int series_add(struct store_tx *tx, const struct series_row *row, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO statistics_series (owner, at, until_at, data)"
                        " VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, row->owner);
    sql_put_int(q, row->at_usec);
    sql_put_int(q, row->until_usec);
    sql_put_text(q, row->data);
    return sql_run(q, err);
}

static int series_read_rows(struct sql_stmt *q,
                            int (*take)(void *data, const struct series_row *row), void *data,
                            struct aq_error *err)
{
    int r;

    while ((r = sql_step(q, err)) > 0) {
        struct series_row got = { .data = NULL };
        struct row row = { .q = q };

        row_bounded(&row, got.owner, sizeof(got.owner));
        got.at_usec = sql_get_int(q);
        got.until_usec = sql_get_int(q);
        got.data = sql_get_text(q);
        if ((r = row_check(&row, "statistics_series", err)) < 0)
            return r;
        if ((r = take(data, &got)) < 0)
            return r;
    }
    return r;
}

int series_read(struct store_tx *tx, const char *owner, int64_t from_usec, int64_t to_usec, int max,
                int (*take)(void *data, const struct series_row *row), void *data,
                struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT owner, at, until_at, data FROM statistics_series"
                        " WHERE owner = ? AND at >= ? AND at < ? ORDER BY at LIMIT ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, owner);
    sql_put_int(q, from_usec);
    sql_put_int(q, to_usec);
    sql_put_int(q, max);
    return series_read_rows(q, take, data, err);
}

int series_read_live(struct store_tx *tx, int (*take)(void *data, const struct series_row *row),
                     void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT r.owner, r.at, r.until_at, r.data FROM sessions s"
                        " JOIN kernels k ON k.session_seq = s.seq"
                        " JOIN statistics_series r ON r.owner = k.id"
                        " WHERE s.terminated_at IS NULL AND k.terminated_at IS NULL"
                        " ORDER BY r.owner, r.at",
                        &q, err);

    return r < 0 ? r : series_read_rows(q, take, data, err);
}
