/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - is the ledger what the kernels say? */
#include <errno.h>
#include <string.h>

#include "store/session_total.h"
#include "store/transaction.h"

/* Live rows of the ledger, in the order of kernels: read beside these in one pass, as a query for
 * each kernel takes a round trip to a server.
 */
struct audit_ledger {
    struct sql_stmt *q;
    int64_t seq, rank; /* of the kernel that the row belongs to */
    bool is_at_end;
};

static int audit_ledger_next(struct audit_ledger *ledger, struct aq_error *err)
{
    int r = sql_step(ledger->q, err);

    ledger->is_at_end = r <= 0;
    if (r > 0) {
        ledger->seq = sql_get_int(ledger->q);
        ledger->rank = sql_get_int(ledger->q);
    }
    return AQ_MIN(r, 0);
}

/* "+ 0" keeps the planners from walking all rows that ever were in the order of the primary key. */
static int audit_ledger_begin(struct audit_ledger *ledger, struct store_tx *tx,
                              struct aq_error *err)
{
    int r = sql_prepare_scan(tx->db,
                             "SELECT session_seq, rank, slot, amount, agent_id FROM allocations"
                             " WHERE free_at IS NULL ORDER BY session_seq + 0, rank, slot",
                             &ledger->q, err);

    return r < 0 ? r : audit_ledger_next(ledger, err);
}

/* Live rows of a kernel. */
static int audit_read_live(struct audit_ledger *ledger, int64_t seq, int64_t rank,
                           const char *agent_id, struct slots *ret_live, struct strbuf *wrong,
                           struct aq_error *err)
{
    int r = 0;

    while (r == 0 && !ledger->is_at_end
           && (ledger->seq < seq || (ledger->seq == seq && ledger->rank <= rank))) {
        if (ledger->seq == seq && ledger->rank == rank) {
            const char *slot = sql_get_text(ledger->q), *name;
            int64_t amount = sql_get_int(ledger->q);
            const char *agent = sql_get_text(ledger->q);

            name = slot_name_intern(slot, strlen(slot));
            if (!agent_id || strcmp(agent, agent_id) != 0)
                strbuf_addf(wrong, " holds %s on '%s';", slot, agent);
            if (!name || slots_get(ret_live, name) != 0 || slots_set(ret_live, name, amount) < 0)
                strbuf_addf(wrong, " holds %s twice;", slot);
        }
        r = audit_ledger_next(ledger, err);
    }
    return r;
}

static int audit_kernel(struct audit_ledger *ledger, struct row *row, struct strbuf *out,
                        struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf wrong = STRBUF_INIT;
    AQ_CLEANUP(slots_donep) struct slots requested = { 0 }, live = { 0 };
    int64_t seq = sql_get_int(row->q), rank = sql_get_int(row->q);
    const char *id = sql_get_text(row->q), *agent_id = sql_get_text(row->q);
    enum kernel_status status = KERNEL_PENDING;
    bool has_ended;
    int r;

    ROW_PARSE(row, kernel_status_parse, &status);
    row_slots(row, &requested);
    has_ended = sql_get_int(row->q) != 0;
    r = row_check(row, "kernels", err);
    if (r == 0)
        r = audit_read_live(ledger, seq, rank, agent_id, &live, &wrong, err);
    if (r < 0)
        return r;
    if (!kernel_is_holding(status) && live.count)
        strbuf_adds(&wrong, " holds resources;");
    if (kernel_is_holding(status) && has_ended)
        strbuf_adds(&wrong, " belongs to a session that has ended;");
    if (kernel_is_holding(status) && !agent_id)
        strbuf_adds(&wrong, " has no agent;");
    if (kernel_is_holding(status) && (!slots_le(&live, &requested) || !slots_le(&requested, &live)))
        strbuf_adds(&wrong, " holds another amount than it requested;");
    if (wrong.len)
        strbuf_addf(out, "kernel %s (%s) on '%s':%s\n", id, kernel_status_name(status),
                    agent_id ? agent_id : "", wrong.data);
    return wrong.len != 0;
}

/* Kernels that live or still have a live row. */
static int audit_read_kernels(struct store_tx *tx, struct audit_ledger *ledger, struct strbuf *out,
                              struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    int found = 0;
    int r = sql_prepare_scan(
        tx->db,
        "SELECT k.session_seq, k.rank, k.id, k.agent_id, k.status, k.requested, 0 FROM kernels k"
        " JOIN sessions s ON s.seq = k.session_seq WHERE s.terminated_at IS NULL UNION"
        " SELECT k.session_seq, k.rank, k.id, k.agent_id, k.status, k.requested,"
        " CASE WHEN s.terminated_at IS NULL THEN 0 ELSE 1 END"
        " FROM allocations l JOIN kernels k ON k.session_seq = l.session_seq AND k.rank = l.rank"
        " JOIN sessions s ON s.seq = k.session_seq WHERE l.free_at IS NULL ORDER BY 1, 2",
        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    while ((r = sql_step(q, err)) > 0) {
        r = audit_kernel(ledger, &row, out, err);
        if (r < 0)
            return r;
        found += r;
    }
    return r < 0 ? r : found;
}

static int audit_kernels(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    struct audit_ledger ledger = { .q = NULL };
    int r = audit_ledger_begin(&ledger, tx, err);

    if (r == 0)
        r = audit_read_kernels(tx, &ledger, out, err);
    sql_end(ledger.q);
    return r;
}

/* Sums by agent and slot against what the agent offers. */
static int audit_agents(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    int found = 0;
    int r = sql_prepare(
        tx->db,
        "SELECT l.agent_id, l.slot, SUM(l.amount), MAX(a.available) FROM allocations l"
        " LEFT JOIN agents a ON a.id = l.agent_id WHERE l.free_at IS NULL"
        " GROUP BY l.agent_id, l.slot ORDER BY l.agent_id, l.slot",
        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    while ((r = sql_step(q, err)) > 0) {
        AQ_CLEANUP(slots_donep) struct slots available = { 0 };
        const char *agent = sql_get_text(q), *slot = sql_get_text(q), *name;
        int64_t sum = sql_get_int(q), has;

        row_slots(&row, &available);
        r = row_check(&row, "agents", err);
        if (r < 0)
            return r;
        name = slot_name_intern(slot, strlen(slot));
        has = name ? slots_get(&available, name) : 0;
        if (sum > has) {
            strbuf_addf(out, "agent '%s': %lld of %s are held, it offers %lld\n", agent,
                        (long long)sum, slot, (long long)has);
            found++;
        }
    }
    return r < 0 ? r : found;
}

int store_audit_ledger(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    int kernels = audit_kernels(tx, out, err), agents, totals, arrays;

    if (kernels < 0)
        return kernels;
    if ((agents = audit_agents(tx, out, err)) < 0)
        return agents;
    if ((totals = session_total_audit(tx, out, err)) < 0)
        return totals;
    if ((arrays = array_audit(tx, out, err)) < 0)
        return arrays;
    return kernels + agents + totals + arrays;
}

int store_audit_file(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    return tx->db->ops->audit(tx->db, out, err);
}
