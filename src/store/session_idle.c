/* SPDX-License-Identifier: Apache-2.0 */
/* session_idle.c - how long sessions are kept while nobody uses them */
#include "store/entity.h"
#include "store/transaction.h"

/* One that there is stays. */
static int session_idle_insert(struct store_tx *tx, const struct uuid *session,
                               struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO session_idle (session_seq, busy, active_at, began_at,"
                        " extended_at, extension, extensions, exempted_at, exemption)"
                        " SELECT s.seq, 0, 0, 0, 0, 0, 0, 0, 0 FROM sessions s"
                        " WHERE s.id = ? AND s.terminated_at IS NULL"
                        " ON CONFLICT (session_seq) DO NOTHING",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, session, id);
    return sql_run(q, err);
}

/* 'values' are those of the parameters of 'set'. */
static int session_idle_update(struct store_tx *tx, const struct uuid *session, const char *text,
                               const int64_t *values, size_t count, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        sql_put_int(q, values[i]);
    sql_put_uuid(q, session, id);
    return sql_run(q, err);
}

#define SESSION_IDLE_UPDATE(set) \
    "UPDATE session_idle SET " set " WHERE session_seq = (SELECT seq FROM sessions WHERE id = ?)"

int session_idle_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct session_idle *to = &e->session_idle.to;
    const struct uuid *id = &e->session_idle.id;
    const int64_t use[] = { to->is_busy, to->active_usec, to->began_usec };
    const int64_t extension[] = { to->extended_usec, to->extension_usec, to->extensions_usec };
    const int64_t exemption[] = { to->exempted_usec, to->exemption_usec };
    unsigned what = e->session_idle.what;
    int r = what ? session_idle_insert(tx, id, err) : 0;

    if (r >= 0 && what & SESSION_IDLE_USE)
        r = session_idle_update(
            tx, id, SESSION_IDLE_UPDATE("busy = ?, active_at = ?, began_at = ?"), use, 3, err);
    if (r >= 0 && what & SESSION_IDLE_EXTENSION)
        r = session_idle_update(
            tx, id, SESSION_IDLE_UPDATE("extended_at = ?, extension = ?, extensions = ?"),
            extension, 3, err);
    if (r >= 0 && what & SESSION_IDLE_EXEMPTION)
        r = session_idle_update(tx, id, SESSION_IDLE_UPDATE("exempted_at = ?, exemption = ?"),
                                exemption, 2, err);
    return AQ_MIN(r, 0);
}

void session_idle_read_row(struct row *row, struct event *e)
{
    struct session_idle *to = &e->session_idle.to;

    e->session_idle.what = SESSION_IDLE_USE | SESSION_IDLE_EXTENSION | SESSION_IDLE_EXEMPTION;
    e->session_idle.id = sql_get_uuid(row->q);
    to->is_busy = sql_get_int(row->q) != 0;
    to->active_usec = sql_get_int(row->q);
    to->began_usec = sql_get_int(row->q);
    to->extended_usec = sql_get_int(row->q);
    to->extension_usec = sql_get_int(row->q);
    to->extensions_usec = sql_get_int(row->q);
    to->exempted_usec = sql_get_int(row->q);
    to->exemption_usec = sql_get_int(row->q);
}
