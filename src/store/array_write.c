/* SPDX-License-Identifier: Apache-2.0 */
/* array_write.c - rows of arrays: written, changed, read back, audited */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/array_dependency.h"
#include "store/transaction.h"

/* sql_refuse_fn: ids are random, what is there already is the name */
static int array_refuse_insert(const void *of, int r, struct aq_error *err)
{
    const struct session_array *a = of;

    if (r != -EEXIST)
        return r;
    return aq_fail_field(err, EEXIST, "name",
                         "a live array is already called '%s'; choose another name or end that one",
                         a->name);
}

/* What sessions have, too. */
static void array_put_session(struct sql_stmt *q, const struct session *s, char user[UUID_TEXT_MAX],
                              char project[UUID_TEXT_MAX])
{
    sql_put_uuid(q, &s->user_id, user);
    sql_put_uuid(q, &s->project_id, project);
    sql_put_text(q, s->access_key);
    sql_put_text(q, s->domain);
    sql_put_text(q, s->resource_group);
    sql_put_text(q, session_type_name(s->type));
    sql_put_int(q, s->priority);
    sql_put_text(q, s->image);
    sql_put_text(q, s->tag);
}

/* "CONDITION:TARGET" with blanks between them. */
static void array_write_dependencies(const struct session *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->dependency_count; i++) {
        strbuf_addf(out, "%s%s:", i ? " " : "",
                    dependency_condition_name(s->dependencies[i].condition));
        dependency_write_target(&s->dependencies[i], out);
    }
}

int array_insert(struct store_tx *tx, struct session_array *a, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf spec = STRBUF_INIT, indices = STRBUF_INIT,
                                           depends = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *element = session_array_write_element(a);
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct jsonw w = jsonw_make(&spec);
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO arrays (seq, id, name, version, user_id, project_id,"
                        " access_key, domain, resource_group, type, priority, image, tag, spec,"
                        " element, depends_on, indices, size, run_limit, created_at,"
                        " next_position, made, skipped, succeeded, failed, cancelled)"
                        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0,0,0,0)",
                        &q, err);

    if (r < 0)
        return r;
    if (a->row == 0)
        a->row = (*tx->next_seq)++;
    jsonw_object_begin(&w);
    session_spec_write(a->element.spec, SESSION_SPEC_ALL, &w);
    jsonw_object_end(&w);
    array_write_dependencies(&a->element, &depends);
    array_set_write(&a->indices, &indices);
    sql_put_int(q, a->row);
    sql_put_uuid(q, &a->id, id);
    sql_put_text(q, a->name);
    sql_put_int(q, a->version);
    array_put_session(q, &a->element, user, project);
    sql_put_text(q, spec.data);
    sql_put_text(q, element);
    sql_put_text(q, depends.len ? depends.data : NULL);
    sql_put_text(q, indices.data);
    sql_put_int(q, a->size);
    sql_put_int(q, a->limit);
    sql_put_int(q, a->created_usec);
    return sql_change_one(q, array_refuse_insert, a, err);
}

/* sql_refuse_fn */
static int array_refuse_change(const void *of, int r, struct aq_error *err)
{
    const struct event_array_change *c = of;
    char id[UUID_TEXT_MAX];

    return r == -ENODATA ? aq_fail(err, ESTALE, "array %s has another version than %u; look again",
                                   uuid_format(&c->id, id), (unsigned)c->version)
                         : r;
}

int array_change(struct store_tx *tx, const struct event_array_change *c, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf removed = STRBUF_INIT;
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE arrays SET version = version + 1, next_position = ?, made = ?,"
                        " skipped = ?, removed = COALESCE(?, removed),"
                        " depends_on = CASE WHEN ? THEN NULL ELSE depends_on END,"
                        " cancelled_at = COALESCE(cancelled_at, ?), ended_at = ?"
                        " WHERE id = ? AND version = ? AND ended_at IS NULL",
                        &q, err);

    if (r < 0)
        return r;
    array_set_write(&c->removed, &removed);
    sql_put_int(q, c->next);
    sql_put_int(q, c->made);
    sql_put_int(q, c->skipped);
    sql_put_text(q, c->has_removed ? removed.data : NULL);
    sql_put_int(q, c->drops_dependencies);
    sql_put_time(q, c->cancelled_usec);
    sql_put_time(q, c->ended_usec);
    sql_put_uuid(q, &c->id, id);
    sql_put_int(q, c->version);
    return sql_change_one(q, array_refuse_change, c, err);
}

/* As session_array_outcome(). ?2 is success, ?3 failure, ?4 ERROR, ?5 and ?6 are the reasons of who
 * was ended.
 */
#define ARRAY_HAS_FAILED                                  \
    "s.result <> ?2 AND (s.result = ?3 OR s.status = ?4)" \
    " AND COALESCE(s.reason, '') <> ?5 AND COALESCE(s.reason, '') <> ?6"

int array_count_end(struct store_tx *tx, const struct uuid *array_id, const struct uuid *session_id,
                    struct aq_error *err)
{
    char array[UUID_TEXT_MAX], session[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "UPDATE arrays SET"
        " succeeded = succeeded + (SELECT COUNT(*) FROM sessions s WHERE s.id = ?1"
        "  AND s.result = ?2),"
        " failed = failed + (SELECT COUNT(*) FROM sessions s WHERE s.id = ?1 AND " ARRAY_HAS_FAILED
        "), cancelled = cancelled + (SELECT COUNT(*) FROM sessions s WHERE s.id = ?1"
        "  AND s.result <> ?2 AND NOT (" ARRAY_HAS_FAILED ")) WHERE id = ?7",
        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, session_id, session);
    sql_put_text(q, session_result_name(RESULT_SUCCESS));
    sql_put_text(q, session_result_name(RESULT_FAILURE));
    sql_put_text(q, session_status_name(SESSION_ERROR));
    sql_put_text(q, REASON_USER_REQUESTED);
    sql_put_text(q, REASON_FORCE_TERMINATED);
    sql_put_uuid(q, array_id, array);
    return sql_run(q, err);
}

/* ---- reading ---- */

static void array_read_set(struct row *row, struct array_set *ret)
{
    const char *text = sql_get_text(row->q);

    if (text && array_set_parse(text, INT32_MAX, ret, NULL, NULL) < 0)
        row->is_damaged = true;
}

int array_parse_dependencies(const char *text, struct session_dependency **ret, size_t *ret_count)
{
    char word[32 + UUID_TEXT_MAX];
    const char *target;
    size_t cap = 0;
    int r = 0;

    for (const char *at = text; at && *at && r == 0; at += strspn(at, " ")) {
        struct session_dependency d = { .ended = false };
        size_t len = strcspn(at, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)AQ_MIN(len, sizeof(word) - 1), at);
        if (dependency_parse(word, &d.condition, &target, NULL) < 0
            || dependency_parse_target(target, &d) < 0)
            r = -EUCLEAN;
        vec_grow(ret, &cap, *ret_count + 1, sizeof(d));
        (*ret)[(*ret_count)++] = d;
        at += len;
    }
    return r;
}

static void array_read_element(struct row *row, struct session *s)
{
    const char *text;
    bool is_short;

    s->user_id = sql_get_uuid(row->q);
    s->project_id = sql_get_uuid(row->q);
    row_bounded(row, s->access_key, sizeof(s->access_key));
    s->domain = row_text(row);
    s->resource_group = row_text(row);
    ROW_PARSE(row, session_type_parse, &s->type);
    s->priority = (int)sql_get_int(row->q);
    s->image = row_text(row);
    s->tag = row_text(row);
    s->spec = row_spec(row, &is_short);
    text = sql_get_text(row->q);
    if (!text || session_array_parse_element(text, s) < 0)
        row->is_damaged = true;
    row->is_damaged |= array_parse_dependencies(sql_get_text(row->q), &s->dependencies,
                                                &s->dependency_count)
                       < 0;
}

void array_read_row(struct row *row, struct session_array *ret)
{
    struct sql_stmt *q = row->q;

    *ret = (struct session_array){ .row = sql_get_int(q) };
    ret->id = sql_get_uuid(q);
    row_bounded(row, ret->name, sizeof(ret->name));
    ret->version = (uint32_t)sql_get_int(q);
    array_read_element(row, &ret->element);
    array_read_set(row, &ret->indices);
    array_read_set(row, &ret->removed);
    ret->size = sql_get_int(q);
    ret->limit = sql_get_int(q);
    ret->next = sql_get_int(q);
    ret->made = sql_get_int(q);
    ret->skipped = sql_get_int(q);
    for (int i = 0; i < ARRAY_OUTCOME_COUNT; i++)
        ret->outcomes[i] = sql_get_int(q);
    ret->created_usec = sql_get_int(q);
    ret->cancelled_usec = sql_get_int(q);
    ret->ended_usec = sql_get_int(q);
    row->is_damaged |= ret->indices.count == 0 || ret->element.kernel_count == 0;
}

/* ---- audit ---- */

int array_audit(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    static const char sql[] =
        "SELECT id, living, counted, is_whole FROM (SELECT a.id,"
        " (SELECT COUNT(*) FROM sessions s WHERE s.array_id = a.id AND s.terminated_at IS NULL)"
        "  AS living,"
        " a.made - a.succeeded - a.failed - a.cancelled AS counted,"
        " CASE WHEN a.next_position < a.size OR a.made + a.skipped = a.size THEN 1 ELSE 0 END"
        "  AS is_whole FROM arrays a) n WHERE living <> counted OR is_whole = 0";
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int found = 0, r = sql_prepare(tx->db, sql, &q, err);

    if (r < 0)
        return r;
    while ((r = sql_step(q, err)) > 0) {
        const char *id = sql_get_text(q);
        int64_t living = sql_get_int(q), counted = sql_get_int(q);

        strbuf_addf(out, "array %s: %lld of its elements live, %lld by its counts%s\n", id,
                    (long long)living, (long long)counted,
                    sql_get_int(q) ? "" : ", and not all indices are counted");
        found++;
    }
    return r < 0 ? r : found;
}
