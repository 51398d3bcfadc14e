/* SPDX-License-Identifier: Apache-2.0 */
/* session_write.c - rows of sessions: written and changed */
#include <errno.h>
#include <string.h>

#include "store/session_total.h"
#include "store/transaction.h"

/* ---- creation ---- */

static int session_fail_name_taken(const char *name, struct aq_error *err)
{
    return aq_fail_field(err, EEXIST, "name",
                         "a live session is already called '%s'; choose "
                         "another name or end that one",
                         name);
}

/* sql_refuse_fn: ids are random, what is there already is the name */
static int session_refuse_insert(const void *of, int r, struct aq_error *err)
{
    const struct session *s = of;

    return r == -EEXIST ? session_fail_name_taken(s->name, err) : r;
}

static int session_insert_row(struct store_tx *tx, const struct session *s, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX], array[UUID_TEXT_MAX];
    char booking[UUID_TEXT_MAX], service[UUID_TEXT_MAX];
    AQ_CLEANUP(strbuf_donep) struct strbuf spec = STRBUF_INIT;
    struct jsonw w = jsonw_make(&spec);
    struct sql_stmt *q;
    int r;

    jsonw_object_begin(&w);
    session_spec_write(s->spec, SESSION_SPEC_ALL, &w);
    jsonw_object_end(&w);
    r = sql_prepare(
        tx->db,
        "INSERT INTO sessions (seq, id, name, type, status, version, result, priority, user_id,"
        " project_id, access_key, domain, resource_group, kernel_count, image, tag,"
        " cluster_mode, spec, reason, status_data, forced, created_at, status_changed_at,"
        " starts_at, running_at, array_id, array_index, booking_id, service_id,"
        " service_revision, replica_number, ratio_ppm, half_share)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, s->row);
    sql_put_uuid(q, &s->id, id);
    sql_put_text(q, s->name);
    sql_put_text(q, session_type_name(s->type));
    sql_put_text(q, session_status_name(s->status));
    sql_put_int(q, s->version);
    sql_put_text(q, session_result_name(s->result));
    sql_put_int(q, s->priority);
    sql_put_uuid(q, &s->user_id, user);
    sql_put_uuid(q, &s->project_id, project);
    sql_put_text(q, s->access_key);
    sql_put_text(q, s->domain);
    sql_put_text(q, s->resource_group);
    sql_put_int(q, (int64_t)s->kernel_count);
    sql_put_text(q, s->image);
    sql_put_text(q, s->tag);
    sql_put_text(q, cluster_mode_name(s->is_multi_node));
    sql_put_text(q, spec.data);
    sql_put_text(q, s->reason);
    sql_put_text(q, s->status_data);
    sql_put_int(q, s->forced);
    sql_put_int(q, s->created_usec);
    sql_put_int(q, s->status_changed_usec);
    sql_put_time(q, s->starts_usec);
    sql_put_time(q, s->running_usec);
    if (uuid_is_nil(&s->array_id)) {
        sql_put_null(q);
        sql_put_null(q);
    } else {
        sql_put_uuid(q, &s->array_id, array);
        sql_put_int(q, s->array_index);
    }
    if (uuid_is_nil(&s->booking_id))
        sql_put_null(q);
    else
        sql_put_uuid(q, &s->booking_id, booking);
    if (s->replica) {
        sql_put_uuid(q, &s->replica->service_id, service);
        sql_put_int(q, s->replica->revision);
        sql_put_int(q, s->replica->number);
        sql_put_int(q, s->replica->ratio_ppm);
        sql_put_int(q, s->replica->has_half_share);
    } else {
        for (int i = 0; i < 5; i++)
            sql_put_null(q);
    }
    return sql_change_one(q, session_refuse_insert, s, err);
}

int session_insert(struct store_tx *tx, struct session *s, struct aq_error *err)
{
    int r;

    if (s->row == 0)
        s->row = (*tx->next_seq)++;
    r = session_insert_row(tx, s, err);
    for (size_t i = 0; r == 0 && i < s->dependency_count; i++)
        r = dependency_insert(tx, s->row, &s->dependencies[i], err);
    for (size_t i = 0; r == 0 && i < s->kernel_count; i++)
        r = kernel_insert(tx, s->row, &s->kernels[i], err);
    return r;
}

/* ---- change ---- */

static int session_fail_stale(const struct uuid *id, const char *from, uint32_t version,
                              struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    return aq_fail(err, ESTALE,
                   "session %s is no longer %s (version %u); look at it "
                   "again",
                   uuid_format(id, text), from, (unsigned)version);
}

/* sql_refuse_fn */
static int session_refuse_status(const void *of, int r, struct aq_error *err)
{
    const struct event_session_status *c = &((const struct event *)of)->session_status;

    return r == -ENODATA ? session_fail_stale(&c->id, session_status_name(c->from), c->version, err)
                         : r;
}

/* Before it is marked: each replica counts once. 'ends': it is ending with this failure. */
static int session_count_failure(struct store_tx *tx, const struct uuid *id, int64_t revision,
                                 bool ends, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "UPDATE model_service_revisions SET failures = failures + 1 WHERE number = ?"
        " AND service_id = (SELECT service_id FROM sessions WHERE id = ?"
        " AND failed_at IS NULL AND (terminated_at IS NULL OR CAST(? AS INTEGER) = 1))",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, revision);
    sql_put_uuid(q, id, text);
    sql_put_int(q, ends);
    return sql_run(q, err);
}

int session_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct event_session_status *c = &e->session_status;
    char id[UUID_TEXT_MAX], retry[RETRY_TEXT_MAX], rerun[RERUN_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    if (!session_status_may_follow(c->from, c->to))
        return aq_fail(err, EINVAL, "a session does not go from %s to %s",
                       session_status_name(c->from), session_status_name(c->to));
    /* The first reason to terminate wins. */
    r = sql_prepare(
        tx->db,
        "UPDATE sessions SET status = ?, version = version + 1, status_changed_at = ?,"
        " reason = CASE WHEN status = 'TERMINATING' AND reason IS NOT NULL THEN reason"
        "  ELSE COALESCE(?, CASE WHEN ? THEN NULL ELSE reason END) END,"
        " status_data = COALESCE(?, status_data), result = COALESCE(?, result),"
        " retry = COALESCE(?, retry), rerun = COALESCE(?, rerun), running_at = COALESCE(?, running_at), terminated_at = ?,"
        " subnet = CASE WHEN ? THEN NULL ELSE COALESCE(?, subnet) END"
        " WHERE id = ? AND status = ? AND version = ?",
        &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, session_status_name(c->to));
    sql_put_int(q, e->at_usec);
    sql_put_text(q, c->reason);
    sql_put_int(q, c->to == SESSION_RUNNING);
    sql_put_text(q, c->status_data);
    sql_put_text(q, c->result == RESULT_UNDEFINED ? NULL : session_result_name(c->result));
    sql_put_text(q, c->has_retry ? retry_format(&c->retry, retry) : NULL);
    sql_put_text(q, c->has_rerun ? rerun_format(&c->rerun, rerun) : NULL);
    sql_put_time(q, c->to == SESSION_RUNNING ? e->at_usec : 0);
    sql_put_time(q, session_is_terminal(c->to) ? e->at_usec : 0);
    sql_put_int(q, session_gives_subnet_back(c->to));
    sql_put_text(q, c->subnet);
    sql_put_uuid(q, &c->id, id);
    sql_put_text(q, session_status_name(c->from));
    sql_put_int(q, c->version);
    r = sql_change_one(q, session_refuse_status, e, err);
    if (r == 0 && session_is_terminal(c->to))
        r = session_total_add(tx, &c->id, err);
    if (r == 0 && c->failed_revision)
        r = session_count_failure(tx, &c->id, c->failed_revision, true, err);
    if (r == 0 && session_is_terminal(c->to) && !uuid_is_nil(&c->array_id))
        r = array_count_end(tx, &c->array_id, &c->id, err);
    if (r < 0)
        return r;
    return history_add_session(tx, &c->id, c->version + 1, e->at_usec, session_status_name(c->to),
                               c->reason, err);
}

/* sql_refuse_fn */
static int session_refuse_change(const void *of, int r, struct aq_error *err)
{
    const struct event *e = of;

    if (r == -EEXIST)
        return session_fail_name_taken(e->session_change.name, err);
    return r == -ENODATA ? session_fail_stale(&e->session_change.id, "alive", 0, err) : r;
}

/* Run a change of a live session that has the id as last parameter. */
static int session_change_live(struct sql_stmt *q, const struct event *e, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    sql_put_uuid(q, &e->session_change.id, text);
    return sql_change_one(q, session_refuse_change, e, err);
}

int session_rename(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE sessions SET name = ? WHERE terminated_at IS NULL"
                        " AND id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->session_change.name);
    return session_change_live(q, e, err);
}

int session_set_priority(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE sessions SET priority = ? WHERE terminated_at IS NULL"
                        " AND id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->session_change.priority);
    return session_change_live(q, e, err);
}

int session_force(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE sessions SET forced = 1 WHERE terminated_at IS NULL"
                        " AND id = ?",
                        &q, err);

    return r < 0 ? r : session_change_live(q, e, err);
}

/* An explanation that comes too late explains nothing: not an error. */
int session_explain(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE sessions SET reason = ?, status_data = ?"
                        " WHERE status = 'PENDING' AND id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->session_change.reason);
    sql_put_text(q, e->session_change.status_data);
    sql_put_uuid(q, &e->session_change.id, id);
    return sql_run(q, err);
}

int session_dismiss(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE sessions SET dismissed_at = COALESCE(dismissed_at, ?)"
                        " WHERE status = 'ERROR' AND id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->at_usec);
    sql_put_uuid(q, &e->session_change.id, id);
    return sql_run(q, err);
}

int replica_change(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct session_replica *to = &e->replica_change.to;
    unsigned what = e->replica_change.what;
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = 0;

    if (what & REPLICA_FAILED && to->failed_usec)
        r = session_count_failure(tx, &e->replica_change.id, to->revision, false, err);
    if (r < 0)
        return r;
    r = sql_prepare(
        tx->db,
        "UPDATE sessions SET ready_at = COALESCE(?, ready_at),"
        " draining_at = COALESCE(?, draining_at), ratio_ppm = COALESCE(?, ratio_ppm),"
        " half_share = COALESCE(?, half_share), failed_at = CASE WHEN ? THEN ? ELSE failed_at END"
        " WHERE id = ? AND service_id IS NOT NULL AND terminated_at IS NULL",
        &q, err);

    if (r < 0)
        return r;
    sql_put_time(q, what & REPLICA_READY ? to->ready_usec : 0);
    sql_put_time(q, what & REPLICA_DRAINING ? to->draining_usec : 0);
    if (what & REPLICA_RATIO)
        sql_put_int(q, to->ratio_ppm);
    else
        sql_put_null(q);
    if (what & REPLICA_HALF)
        sql_put_int(q, to->has_half_share);
    else
        sql_put_null(q);
    sql_put_int(q, (what & REPLICA_FAILED) != 0);
    sql_put_time(q, to->failed_usec);
    sql_put_uuid(q, &e->replica_change.id, id);
    return sql_run(q, err);
}

int session_set_access(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE sessions SET last_access = ? WHERE id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->at_usec);
    sql_put_uuid(q, &e->session_change.id, id);
    return sql_run(q, err);
}
