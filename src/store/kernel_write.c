/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_write.c - kernels and the ledger of what they hold
 *
 * A kernel takes its slots when it enters a holding state and frees them when
 * it leaves the last one, in the transaction of the status change.
 */
#include <errno.h>

#include "store/transaction.h"

int kernel_insert(struct store_tx *tx, int64_t session_seq, const struct kernel *k,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *requested = slots_to_column(&k->requested);
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    if (kernel_is_holding(k->status))
        return aq_fail(err, EINVAL, "a new kernel holds nothing yet");
    r = sql_prepare(
        tx->db,
        "INSERT INTO kernels (session_seq, rank, id, role, role_index, status, version, attempt,"
        " agent_id, requested, alloc, service_ports, status_changed_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        &q, err);
    if (r < 0)
        return r;
    sql_put_int(q, session_seq);
    sql_put_int(q, k->rank);
    sql_put_uuid(q, &k->id, id);
    sql_put_text(q, k->role);
    sql_put_int(q, k->index);
    sql_put_text(q, kernel_status_name(k->status));
    sql_put_int(q, k->version);
    sql_put_int(q, k->attempt);
    sql_put_text(q, k->agent_id);
    sql_put_text(q, requested);
    sql_put_text(q, k->alloc);
    sql_put_text(q, k->service_ports);
    sql_put_int(q, k->status_changed_usec);
    return sql_run(q, err);
}

/* ---- ledger ---- */

/* All that the kernel requests, on its agent. */
static int kernel_ledger_take(struct store_tx *tx, const struct uuid *id, int64_t at_usec,
                              struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at)"
        " SELECT k.session_seq, k.rank, k.version, r.key, k.agent_id, CAST(r.value AS BIGINT), ?"
        " FROM kernels k, json_each(k.requested) r"
        " WHERE k.id = ? AND CAST(r.value AS BIGINT) <> 0",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, at_usec);
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}

static int kernel_ledger_free(struct store_tx *tx, const struct uuid *id, int64_t at_usec,
                              struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE allocations SET free_at = ? WHERE free_at IS NULL"
                        " AND session_seq = (SELECT session_seq FROM kernels WHERE id = ?)"
                        " AND rank = (SELECT rank FROM kernels WHERE id = ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, at_usec);
    sql_put_uuid(q, id, text);
    sql_put_text(q, text);
    return sql_run(q, err);
}

/* ---- status ---- */

static void kernel_put_change(struct sql_stmt *q, const struct event *e, char id[UUID_TEXT_MAX])
{
    const struct event_kernel_status *c = &e->kernel_status;

    sql_put_text(q, kernel_status_name(c->to));
    sql_put_int(q, e->at_usec);
    sql_put_text(q, c->reason);
    sql_put_int(q, c->to == KERNEL_RUNNING);
    sql_put_text(q, c->agent_id); /* "" becomes null in SQL */
    sql_put_text(q, c->agent_id);
    sql_put_text(q, c->alloc); /* the same */
    sql_put_text(q, c->alloc);
    sql_put_text(q, c->service_ports);
    sql_put_text(q, c->last_stat);
    sql_put_text(q, c->outputs);
    if (c->has_exit)
        sql_put_int(q, c->exit_code);
    else
        sql_put_null(q);
    sql_put_int(q, c->attempt);
    sql_put_time(q, kernel_is_terminal(c->to) ? e->at_usec : 0);
    sql_put_uuid(q, &c->id, id);
    sql_put_text(q, kernel_status_name(c->from));
    sql_put_int(q, c->version);
}

static int kernel_fail_stale(const struct uuid *id, const char *from, uint32_t version,
                             struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    return aq_fail(err, ESTALE,
                   "kernel %s is no longer %s (version %u); look "
                   "at it again",
                   uuid_format(id, text), from, (unsigned)version);
}

/* sql_refuse_fn */
static int kernel_refuse_status(const void *of, int r, struct aq_error *err)
{
    const struct event_kernel_status *c = &((const struct event *)of)->kernel_status;

    return r == -ENODATA ? kernel_fail_stale(&c->id, kernel_status_name(c->from), c->version, err)
                         : r;
}

static int kernel_update_row(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "UPDATE kernels SET status = ?, version = version + 1, status_changed_at = ?,"
        " reason = CASE WHEN status = 'TERMINATING' AND reason IS NOT NULL THEN reason"
        "  ELSE COALESCE(?, CASE WHEN ? THEN NULL ELSE reason END) END,"
        " agent_id = CASE WHEN CAST(? AS TEXT) IS NULL THEN agent_id ELSE NULLIF(?, '') END,"
        " alloc = CASE WHEN CAST(? AS TEXT) IS NULL THEN alloc ELSE NULLIF(?, '') END,"
        " service_ports = COALESCE(?, service_ports),"
        " last_stat = COALESCE(?, last_stat), outputs = COALESCE(?, outputs),"
        " exit_code = COALESCE(?, exit_code),"
        " attempt = COALESCE(NULLIF(?, 0), attempt), terminated_at = ?"
        " WHERE id = ? AND status = ? AND version = ?",
        &q, err);

    if (r < 0)
        return r;
    kernel_put_change(q, e, id);
    return sql_change_one(q, kernel_refuse_status, e, err);
}

int kernel_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct event_kernel_status *c = &e->kernel_status;
    bool held = kernel_is_holding(c->from), holds = kernel_is_holding(c->to);
    int r;

    if (!kernel_status_may_follow(c->from, c->to))
        return aq_fail(err, EINVAL, "a kernel does not go from %s to %s",
                       kernel_status_name(c->from), kernel_status_name(c->to));
    r = kernel_update_row(tx, e, err);
    if (r == 0 && !held && holds)
        r = kernel_ledger_take(tx, &c->id, e->at_usec, err);
    if (r == 0 && held && !holds)
        r = kernel_ledger_free(tx, &c->id, e->at_usec, err);
    if (r < 0)
        return r;
    return history_add_kernel(tx, &c->id, c->version + 1, e->at_usec, kernel_status_name(c->to),
                              c->reason, err);
}

/* ---- other amounts of what it holds ---- */

/* sql_refuse_fn */
static int kernel_refuse_resize(const void *of, int r, struct aq_error *err)
{
    const struct event *e = of;

    return r == -ENODATA
               ? kernel_fail_stale(&e->kernel_resized.id, "RUNNING", e->kernel_resized.version, err)
               : r;
}

int kernel_resize(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *requested = slots_to_column(&e->kernel_resized.requested);
    const struct uuid *kernel = &e->kernel_resized.id;
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    r = sql_prepare(
        tx->db,
        "UPDATE kernels SET requested = ?, alloc = COALESCE(?, alloc), version = version + 1"
        " WHERE id = ? AND status = 'RUNNING' AND version = ?",
        &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, requested);
    sql_put_text(q, e->kernel_resized.alloc);
    sql_put_uuid(q, kernel, id);
    sql_put_int(q, e->kernel_resized.version);
    r = sql_change_one(q, kernel_refuse_resize, e, err);
    if (r == 0)
        r = kernel_ledger_free(tx, kernel, e->at_usec, err);
    return r < 0 ? r : kernel_ledger_take(tx, kernel, e->at_usec, err);
}
