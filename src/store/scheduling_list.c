/* SPDX-License-Identifier: Apache-2.0 */
/* scheduling_list.c - what scheduling made of sessions: their changes of status and the attempts
 * that failed, in the words of Backend.AI 26
 *
 * A placement is the change to SCHEDULED or RESERVED, and so not listed as an attempt, too.
 */
#include "store/list_query.h"

/* The step that led to a status, or that was tried: of tries of a step the detail begins with its
 * name, the others are passes of the scheduler.
 */
#define PHASE                                                                                \
    "CASE WHEN l.message LIKE '{\"step\":\"check-precondition\"%' THEN 'check-precondition'" \
    " WHEN l.message LIKE '{\"step\":\"start-sessions\"%' THEN 'start-sessions'"             \
    " WHEN l.is_attempt = 1 OR l.to_status IN ('SCHEDULED', 'RESERVED', 'DEPRIORITIZING')"   \
    " THEN 'schedule-sessions' WHEN l.to_status IN ('PREPARING', 'PULLING')"                 \
    " THEN 'check-precondition' WHEN l.to_status = 'PREPARED' THEN 'promote-to-prepared'"    \
    " WHEN l.to_status = 'CREATING' THEN 'start-sessions'"                                   \
    " WHEN l.to_status IN ('RUNNING', 'RUNNING_DEGRADED') THEN 'promote-to-running'"         \
    " WHEN l.to_status = 'RESTARTING' THEN 'restart-sessions'"                               \
    " WHEN l.to_status = 'PREEMPTED' THEN 'preempt-sessions'"                                \
    " WHEN l.to_status IN ('RESCHEDULING', 'PENDING') THEN 'reschedule-sessions'"            \
    " WHEN l.to_status = 'TERMINATED' THEN 'promote-to-terminated'"                          \
    " ELSE 'terminate-sessions' END"

/* A history begins with the creation, which is in the session's own row. */
#define FROM_STATUS                                                                    \
    "CASE WHEN l.is_attempt = 0 THEN COALESCE((SELECT p.status FROM session_history p" \
    " WHERE p.session_seq = l.seq AND p.rank = -1 AND p.version < l.number"            \
    " ORDER BY p.version DESC LIMIT 1), 'PENDING') END"

#define RESULT                                                                           \
    "CASE WHEN l.is_attempt = 1 OR l.to_status IN ('ERROR', 'CANCELLED') THEN 'FAILURE'" \
    " ELSE 'SUCCESS' END"

#define ERROR_CODE                           \
    "CASE WHEN l.is_attempt = 1 THEN l.kind" \
    " WHEN l.to_status IN ('ERROR', 'CANCELLED') THEN l.message END"

static const struct filter_field scheduling_list_fields[] = {
    { "session_id", "l.session_id", FILTER_UUID },
    { "phase", PHASE, FILTER_STRING },
    { "from_status", FROM_STATUS, FILTER_UPPER },
    { "to_status", "l.to_status", FILTER_UPPER },
    { "result", RESULT, FILTER_UPPER },
    { "error_code", ERROR_CODE, FILTER_STRING },
    { "message", "l.message", FILTER_STRING },
    { "created_at", "l.first_at", FILTER_TIME },
    { "updated_at", "l.last_at", FILTER_TIME },
};

static int scheduling_list_read(struct store_tx *tx, struct row *row, void *ret,
                                struct aq_error *err)
{
    struct scheduling_row *s = ret;
    const char **const texts[] = { &s->phase,  &s->from_status, &s->to_status,
                                   &s->result, &s->error_code,  &s->message };

    (void)tx;
    (void)err;
    s->session_id = sql_get_uuid(row->q);
    s->is_attempt = sql_get_int(row->q);
    s->number = sql_get_int(row->q);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        *texts[i] = row_text(row);
    s->attempts = sql_get_int(row->q);
    s->first_usec = sql_get_int(row->q);
    s->last_usec = sql_get_int(row->q);
    return 0;
}

static const struct list_table scheduling_list_table = {
    .what = "session_history",
    .columns = "l.session_id, l.is_attempt, l.number, " PHASE ", " FROM_STATUS
               ", l.to_status, " RESULT ", " ERROR_CODE
               ", l.message, l.attempts, l.first_at, l.last_at",
    .from = "(SELECT s.id AS session_id, h.session_seq AS seq, 0 AS is_attempt,"
            " h.version AS number, h.status AS to_status, CAST(NULL AS TEXT) AS kind,"
            " h.reason AS message, 1 AS attempts, h.at AS first_at, h.at AS last_at"
            " FROM session_history h JOIN sessions s ON s.seq = h.session_seq"
            " WHERE h.rank = -1 AND h.version > 1"
            " UNION ALL SELECT s.id, a.session_seq, 1, a.number, CAST(NULL AS TEXT), a.kind,"
            " a.detail, a.attempts, a.first_at, a.last_at FROM session_attempts a"
            " JOIN sessions s ON s.seq = a.session_seq WHERE a.kind <> 'placed') l",
    .order = "l.first_at DESC, l.seq DESC, l.is_attempt, l.number DESC",
    .tie = "l.seq, l.is_attempt, l.number",
    .fields = scheduling_list_fields,
    .field_count = AQ_COUNT(scheduling_list_fields),
    .row_size = sizeof(struct scheduling_row),
    .read = scheduling_list_read,
};

int store_list_scheduling(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                          struct aq_error *err)
{
    return list_run(tx, &scheduling_list_table, q, NULL, ret, err);
}
