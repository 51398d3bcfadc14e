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

    if (!requested)
        return aq_fail_oom(err);
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

struct holder {
    int64_t session_seq;
    int rank;
    uint32_t version;
    char agent_id[AGENT_ID_MAX + 1];
    struct slots requested;
};

static void kernel_ledger_holder_done(struct holder *h)
{
    slots_done(&h->requested);
}

static int kernel_ledger_take(struct store_tx *tx, const struct holder *h, int64_t at_usec,
                              struct aq_error *err)
{
    if (!h->agent_id[0])
        return aq_fail(err, EINVAL, "a kernel without an agent cannot hold resources");
    for (size_t i = 0; i < h->requested.count; i++) {
        const struct slot *slot = &h->requested.items[i];
        struct sql_stmt *q;
        int r;

        if (slot->amount == 0)
            continue;
        r = sql_prepare(tx->db,
                        "INSERT INTO allocations (session_seq, rank, version, slot,"
                        " agent_id, amount, taken_at) VALUES (?,?,?,?,?,?,?)",
                        &q, err);
        if (r < 0)
            return r;
        sql_put_int(q, h->session_seq);
        sql_put_int(q, h->rank);
        sql_put_int(q, h->version);
        sql_put_text(q, slot->name);
        sql_put_text(q, h->agent_id);
        sql_put_int(q, slot->amount);
        sql_put_int(q, at_usec);
        r = sql_run(q, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int kernel_ledger_free(struct store_tx *tx, const struct holder *h, int64_t at_usec,
                              struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE allocations SET free_at = ? WHERE session_seq = ?"
                        " AND rank = ? AND free_at IS NULL",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, at_usec);
    sql_put_int(q, h->session_seq);
    sql_put_int(q, h->rank);
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
    sql_put_text(q, c->alloc);
    sql_put_text(q, c->service_ports);
    sql_put_text(q, c->last_stat);
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

/* "session_seq, rank, version, agent_id, requested" of the row that was changed. */
static int kernel_ledger_read_holder(struct sql_stmt *q, struct holder *h, struct aq_error *err)
{
    struct row row = { .q = q };

    h->session_seq = sql_get_int(q);
    h->rank = (int)sql_get_int(q);
    h->version = (uint32_t)sql_get_int(q);
    row_bounded(&row, h->agent_id, sizeof(h->agent_id));
    row_slots(&row, &h->requested);
    return row_check(&row, "kernels", err);
}

/* Update the row; 'h' gets who it is. */
static int kernel_update_row(struct store_tx *tx, const struct event *e, struct holder *h,
                             struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    const struct event_kernel_status *c = &e->kernel_status;
    char id[UUID_TEXT_MAX];
    int r = sql_prepare(
        tx->db,
        "UPDATE kernels SET status = ?, version = version + 1, status_changed_at = ?,"
        " reason = CASE WHEN status = 'TERMINATING' AND reason IS NOT NULL THEN reason"
        "  ELSE COALESCE(?, CASE WHEN ? THEN NULL ELSE reason END) END,"
        " agent_id = CASE WHEN ? IS NULL THEN agent_id ELSE NULLIF(?, '') END,"
        " alloc = COALESCE(?, alloc), service_ports = COALESCE(?, service_ports),"
        " last_stat = COALESCE(?, last_stat),"
        " exit_code = COALESCE(?, exit_code),"
        " attempt = COALESCE(NULLIF(?, 0), attempt), terminated_at = ?"
        " WHERE id = ? AND status = ? AND version = ?"
        " RETURNING session_seq, rank, version, agent_id, requested",
        &q, err);

    if (r < 0)
        return r;
    kernel_put_change(q, e, id);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    if (r == 0)
        return aq_fail_kind(err, ESTALE, "stale",
                            "kernel %s is no longer %s (version %u); look "
                            "at it again",
                            uuid_format(&c->id, id), kernel_status_name(c->from),
                            (unsigned)c->version);
    return kernel_ledger_read_holder(q, h, err);
}

int kernel_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct event_kernel_status *c = &e->kernel_status;
    bool held = kernel_is_holding(c->from), holds = kernel_is_holding(c->to);
    AQ_CLEANUP(kernel_ledger_holder_done) struct holder h = { 0 };
    int r;

    if (!kernel_status_may_follow(c->from, c->to))
        return aq_fail(err, EINVAL, "a kernel does not go from %s to %s",
                       kernel_status_name(c->from), kernel_status_name(c->to));
    r = kernel_update_row(tx, e, &h, err);
    if (r == 0 && !held && holds)
        r = kernel_ledger_take(tx, &h, e->at_usec, err);
    if (r == 0 && held && !holds)
        r = kernel_ledger_free(tx, &h, e->at_usec, err);
    if (r < 0)
        return r;
    return history_add(tx, h.session_seq, h.rank, c->version + 1, e->at_usec,
                       kernel_status_name(c->to), c->reason, err);
}

/* ---- other amounts of what it holds ---- */

static int kernel_resize_row(struct store_tx *tx, const struct event *e, const char *requested,
                             struct holder *h, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int r = sql_prepare(
        tx->db,
        "UPDATE kernels SET requested = ?, alloc = COALESCE(?, alloc), version = version + 1"
        " WHERE id = ? AND status = 'RUNNING' AND version = ?"
        " RETURNING session_seq, rank, version, agent_id, requested",
        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, requested);
    sql_put_text(q, e->kernel_resized.alloc);
    sql_put_uuid(q, &e->kernel_resized.id, id);
    sql_put_int(q, e->kernel_resized.version);
    r = sql_step(q, err);
    if (r == 0)
        return aq_fail_kind(err, ESTALE, "stale",
                            "kernel %s is no longer RUNNING (version %u); "
                            "look at it again",
                            uuid_format(&e->kernel_resized.id, id),
                            (unsigned)e->kernel_resized.version);
    if (r < 0)
        return r;
    return kernel_ledger_read_holder(q, h, err);
}

int kernel_resize(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *requested = slots_to_column(&e->kernel_resized.requested);
    AQ_CLEANUP(kernel_ledger_holder_done) struct holder h = { 0 };
    int r = requested ? kernel_resize_row(tx, e, requested, &h, err) : aq_fail_oom(err);

    if (r == 0)
        r = kernel_ledger_free(tx, &h, e->at_usec, err);
    return r < 0 ? r : kernel_ledger_take(tx, &h, e->at_usec, err);
}
