/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - every status change, for good */
#include <errno.h>

#include "base/memory.h"
#include "store/query.h"
#include "store/transaction.h"

/* 'select' puts what comes before the version, of the session or kernel with the id. */
static int history_add(struct store_tx *tx, const char *select, const struct uuid *id,
                       uint32_t version, int64_t at_usec, const char *status, const char *reason,
                       struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, select, &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, version);
    sql_put_int(q, at_usec);
    sql_put_text(q, status);
    sql_put_text(q, reason);
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}

#define HISTORY_INSERT \
    "INSERT INTO session_history (session_seq, rank, version, at, status, reason)"

int history_add_session(struct store_tx *tx, const struct uuid *id, uint32_t version,
                        int64_t at_usec, const char *status, const char *reason,
                        struct aq_error *err)
{
    return history_add(tx, HISTORY_INSERT " SELECT seq, -1, ?, ?, ?, ? FROM sessions WHERE id = ?",
                       id, version, at_usec, status, reason, err);
}

int history_add_kernel(struct store_tx *tx, const struct uuid *id, uint32_t version,
                       int64_t at_usec, const char *status, const char *reason,
                       struct aq_error *err)
{
    return history_add(
        tx, HISTORY_INSERT " SELECT session_seq, rank, ?, ?, ?, ? FROM kernels WHERE id = ?", id,
        version, at_usec, status, reason, err);
}

/* A history begins with the creation, which is in the session's own row. */
#define HISTORY_OF_ID                                                            \
    "(SELECT h.at, h.rank, h.version, h.status, h.reason FROM session_history h" \
    "  JOIN sessions s ON s.seq = h.session_seq WHERE s.id = ?"                  \
    " UNION SELECT created_at, -1, 1, 'PENDING', NULL FROM sessions WHERE id = ?) h"

static int history_count(struct store_tx *tx, const char *id, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT COUNT(*) FROM " HISTORY_OF_ID, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    sql_put_text(q, id);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    *ret = sql_get_int(q);
    return 0;
}

int store_list_history(struct store_tx *tx, const struct uuid *session_id, struct store_page **ret,
                       struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    struct row row = { 0 };
    int r;

    r = history_count(tx, uuid_format(session_id, id), &page->total, err);
    if (r == 0)
        r = sql_prepare(tx->db,
                        "SELECT at, rank, version, status, reason FROM " HISTORY_OF_ID
                        " ORDER BY at, version, rank",
                        &q, err);
    if (r < 0)
        return r;
    page->history = arena_array(&page->arena, (size_t)page->total, sizeof(*page->history));
    row = (struct row){ .q = q, .arena = &page->arena };
    sql_put_text(q, id);
    sql_put_text(q, id);
    while ((r = sql_step(q, err)) > 0 && (int64_t)page->count < page->total) {
        struct history_row *h = &page->history[page->count++];
        int64_t rank;

        h->at_usec = sql_get_int(q);
        rank = sql_get_int(q);
        h->is_kernel = rank >= 0;
        h->kernel_rank = rank >= 0 ? (uint32_t)rank : 0;
        h->version = (uint32_t)sql_get_int(q);
        h->status = row_text(&row);
        h->reason = row_text(&row);
    }
    if (r == 0)
        r = row_check(&row, "session_history", err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}
