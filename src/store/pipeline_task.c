/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_task.c - rows of the tasks of pipelines' runs */
#include <errno.h>
#include <string.h>

#include "store/pipeline.h"
#include "store/transaction.h"

static const char *const pipeline_states[] = {
    [PIPELINE_WAITING] = "waiting",     [PIPELINE_RUNNING] = "running",
    [PIPELINE_SUCCEEDED] = "succeeded", [PIPELINE_FAILED] = "failed",
    [PIPELINE_SKIPPED] = "skipped",     [PIPELINE_CANCELLED] = "cancelled",
};

const char *pipeline_state_name(enum pipeline_state state)
{
    return pipeline_states[state];
}

static int pipeline_state_parse(const char *text, enum pipeline_state *ret)
{
    for (size_t i = 0; i < AQ_COUNT(pipeline_states); i++)
        if (strcmp(text, pipeline_states[i]) == 0) {
            *ret = (enum pipeline_state)i;
            return 0;
        }
    return -EINVAL;
}

static void pipeline_task_read_row(struct row *row, struct pipeline_task_row *ret)
{
    bool has_exit;

    *ret = (struct pipeline_task_row){ .place = sql_get_int(row->q), .name = row_text(row) };
    ROW_PARSE(row, pipeline_state_parse, &ret->state);
    ret->attempt = sql_get_int(row->q);
    ret->attempt_max = sql_get_int(row->q);
    ret->session_id = sql_get_uuid(row->q);
    ret->reason = row_text(row);
    ret->identity = row_text(row);
    ret->inputs = row_text(row);
    ret->outputs = row_text(row);
    ret->started_usec = sql_get_int(row->q);
    ret->ended_usec = sql_get_int(row->q);
    ret->has_session = !sql_get_is_null(row->q);
    if (!ret->has_session)
        return;
    ROW_PARSE(row, session_status_parse, &ret->session_status);
    ROW_PARSE(row, session_result_parse, &ret->session_result);
    ret->session_reason = row_text(row);
    ret->session_ended = !sql_get_is_null(row->q);
    (void)sql_get_int(row->q);
    has_exit = !sql_get_is_null(row->q);
    ret->exit_code = sql_get_int(row->q);
    if (!has_exit)
        ret->exit_code = -1;
    ret->session_data = row_text(row);
    ret->session_outputs = row_text(row);
}

int pipeline_tasks_read(struct store_tx *tx, const struct uuid *run_id, struct arena *arena,
                        struct pipeline_task_row **ret, size_t *ret_count, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char run[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT t.place, t.name, t.state, t.attempt, t.attempt_max, t.session_id,"
                        " t.reason, t.identity, t.inputs, t.outputs, t.started_at, t.ended_at,"
                        " s.status, s.result, s.reason, s.terminated_at, k.exit_code,"
                        " CASE WHEN s.reason = '" REASON_BAD_OUTPUT "' THEN s.status_data END,"
                        " CASE WHEN t.state = 'running' THEN k.outputs END FROM pipeline_tasks t"
                        " LEFT JOIN sessions s ON s.id = t.session_id LEFT JOIN kernels k ON"
                        " k.session_seq = s.seq AND k.rank = 0 WHERE t.run_id = ? ORDER BY t.place",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, run_id, run);
    row.q = q;
    *ret = NULL;
    *ret_count = 0;
    while ((r = sql_step(q, err)) > 0) {
        struct pipeline_task_row task;

        pipeline_task_read_row(&row, &task);
        (void)arena_append(arena, ret, ret_count, &task, sizeof(task));
    }
    return r < 0 ? r : row_check(&row, "a task of a pipeline", err);
}

int pipeline_task_find_same(struct store_tx *tx, const struct uuid *user_id, const char *identity,
                            const char *inputs, struct arena *arena, struct pipeline_task_row *ret,
                            struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    const char *outputs;
    int r = sql_prepare(tx->db,
                        "SELECT t.session_id, t.started_at, t.ended_at, t.outputs, r.name,"
                        " r.number FROM pipeline_tasks t JOIN pipeline_runs r ON r.id = t.run_id"
                        " WHERE t.identity = ? AND COALESCE(t.inputs, '') = ?"
                        " AND t.state = 'succeeded' AND r.user_id = ?"
                        " ORDER BY t.ended_at DESC, r.id LIMIT 1",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, identity);
    sql_put_text(q, inputs ? inputs : "");
    sql_put_uuid(q, user_id, user);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    *ret = (struct pipeline_task_row){ .state = PIPELINE_SUCCEEDED,
                                       .attempt = 1,
                                       .inputs = inputs };
    ret->session_id = sql_get_uuid(q);
    ret->started_usec = sql_get_int(q);
    ret->ended_usec = sql_get_int(q);
    if ((outputs = sql_get_text(q)))
        ret->outputs = arena_strdup(arena, outputs);
    {
        AQ_CLEANUP(strbuf_donep) struct strbuf reason = STRBUF_INIT;

        strbuf_addf(&reason, "as in %s.", sql_get_text(q));
        strbuf_addi(&reason, sql_get_int(q));
        ret->reason = arena_strdup(arena, reason.data);
    }
    return 1;
}

int pipeline_task_write(struct store_tx *tx, const struct uuid *run_id,
                        const struct pipeline_task_row *row, struct aq_error *err)
{
    char run[UUID_TEXT_MAX], session[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO pipeline_tasks (run_id, place, name, state, attempt, attempt_max, session_id,"
        " reason, identity, inputs, outputs, started_at, ended_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT (run_id, place) DO UPDATE SET state = excluded.state,"
        " attempt = excluded.attempt, attempt_max = excluded.attempt_max,"
        " session_id = excluded.session_id, reason = excluded.reason,"
        " inputs = excluded.inputs, outputs = excluded.outputs,"
        " started_at = excluded.started_at, ended_at = excluded.ended_at",
        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, run_id, run);
    sql_put_int(q, row->place);
    sql_put_text(q, row->name);
    sql_put_text(q, pipeline_states[row->state]);
    sql_put_int(q, row->attempt);
    sql_put_int(q, row->attempt_max);
    if (uuid_is_nil(&row->session_id))
        sql_put_null(q);
    else
        sql_put_uuid(q, &row->session_id, session);
    sql_put_text(q, row->reason);
    sql_put_text(q, row->identity);
    sql_put_text(q, row->inputs);
    sql_put_text(q, row->outputs);
    sql_put_time(q, row->started_usec);
    sql_put_time(q, row->ended_usec);
    return sql_run(q, err);
}

int pipeline_tasks_remove(struct store_tx *tx, const struct uuid *run_id, struct aq_error *err)
{
    char run[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM pipeline_tasks WHERE run_id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, run_id, run);
    return sql_run(q, err);
}

int pipeline_task_start(struct store_tx *tx, const struct uuid *run_id, int64_t place,
                        int64_t attempt, const struct uuid *session_id, const char *inputs,
                        int64_t at_usec, struct aq_error *err)
{
    char run[UUID_TEXT_MAX], session[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE pipeline_tasks SET state = 'running', session_id = ?,"
                        " inputs = ?, started_at = ?, reason = NULL WHERE run_id = ? AND place = ?"
                        " AND attempt = ? AND state = 'waiting' AND EXISTS (SELECT 1 FROM"
                        " pipeline_runs r WHERE r.id = run_id AND r.is_cancelled = 0"
                        " AND r.ended_at IS NULL)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, session_id, session);
    sql_put_text(q, inputs);
    sql_put_int(q, at_usec);
    sql_put_uuid(q, run_id, run);
    sql_put_int(q, place);
    sql_put_int(q, attempt);
    if ((r = sql_change(q, err)) < 0)
        return r;
    return r > 0 ? 0 : aq_fail(err, ESTALE, "the task was started or cancelled meanwhile");
}
