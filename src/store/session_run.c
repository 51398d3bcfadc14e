/* SPDX-License-Identifier: Apache-2.0 */
/* session_run.c - attempts of a session after which it went back to the queue */
#include "store/transaction.h"

int session_run_add(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO session_runs (session_seq, number, started_at, ended_at,"
                        " reason, exit_code, rank, agent_id, kernel_attempt, text, used)"
                        " VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->run_ended.row);
    sql_put_int(q, e->run_ended.number);
    sql_put_time(q, e->run_ended.started_usec);
    sql_put_int(q, e->at_usec);
    sql_put_text(q, e->run_ended.reason);
    if (e->run_ended.has_exit)
        sql_put_int(q, e->run_ended.exit_code);
    else
        sql_put_null(q);
    sql_put_int(q, e->run_ended.rank);
    sql_put_text(q, e->run_ended.agent_id);
    sql_put_int(q, e->run_ended.kernel_attempt);
    sql_put_text(q, e->run_ended.text);
    sql_put_text(q, e->run_ended.usage);
    return sql_run(q, err);
}
