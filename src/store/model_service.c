/* SPDX-License-Identifier: Apache-2.0 */
/* model_service.c - rows of model services, their revisions and tokens */
#include "store/model_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/transaction.h"

/* ---- writing ---- */

/* sql_refuse_fn: ids are random, so the name exists. */
static int service_refuse_insert(const void *of, int r, struct aq_error *err)
{
    const struct model_service *s = of;

    if (r != -EEXIST)
        return r;
    return aq_fail_field(err, EEXIST, "name",
                         "a model service is already called '%s'; choose another name or end that "
                         "one",
                         s->name);
}

/* sql_refuse_fn */
static int service_refuse_change(const void *of, int r, struct aq_error *err)
{
    const struct model_service *s = of;

    return r == -ENODATA
               ? aq_fail(err, ESTALE,
                         "the model service '%s' has another version than %u, or has ended",
                         s->name, (unsigned)s->version - 1)
               : r;
}

static int service_add_revision(struct store_tx *tx, const struct model_service *s,
                                struct aq_error *err)
{
    const struct model_service_revision *revision = &s->revisions[s->revision_count - 1];
    AQ_CLEANUP(strbuf_donep) struct strbuf spec = STRBUF_INIT;
    struct jsonw w = jsonw_make(&spec);
    char id[UUID_TEXT_MAX], creator[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO model_service_revisions (service_id, number, spec, note,"
                        " creator_id, created_at) VALUES (?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    model_service_spec_write(revision->spec, &w);
    sql_put_uuid(q, &s->id, id);
    sql_put_int(q, revision->number);
    sql_put_text(q, spec.data);
    sql_put_text(q, revision->note);
    sql_put_uuid(q, &revision->creator_id, creator);
    sql_put_int(q, revision->created_usec);
    return sql_run(q, err);
}

static int service_add_history(struct store_tx *tx, const struct model_service *s, int64_t at_usec,
                               const char *reason, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO model_service_history (service_id, version, at, replicas,"
                        " share_micro, goal, reason) VALUES (?,?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &s->id, id);
    sql_put_int(q, s->version);
    sql_put_int(q, at_usec);
    sql_put_int(q, s->replicas);
    sql_put_int(q, s->share_micro);
    sql_put_int(q, s->goal);
    sql_put_text(q, reason);
    if ((r = sql_run(q, err)) < 0 || s->version <= MODEL_SERVICE_HISTORY_MAX)
        return r;
    /* Not each version has an entry. */
    r = sql_prepare(tx->db,
                    "DELETE FROM model_service_history WHERE service_id = ? AND version <="
                    " (SELECT version FROM model_service_history WHERE service_id = ?"
                    " ORDER BY version DESC LIMIT 1 OFFSET ?)",
                    &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, &s->id, id);
    sql_put_uuid(q, &s->id, id);
    sql_put_int(q, MODEL_SERVICE_HISTORY_MAX);
    return sql_run(q, err);
}

/* The columns that change, in the order of both statements. */
static void service_put(struct sql_stmt *q, const struct model_service *s, const char *limits)
{
    sql_put_int(q, s->version);
    sql_put_text(q, s->tag);
    sql_put_int(q, s->is_public);
    sql_put_int(q, s->replicas);
    sql_put_int(q, s->replicas_min);
    sql_put_int(q, s->replicas_max);
    sql_put_int(q, s->share_micro);
    sql_put_int(q, s->goal);
    sql_put_int(q, s->last_number);
    sql_put_text(q, limits);
    sql_put_text(q, s->scaling);
    sql_put_text(q, s->fired);
    sql_put_text(q, s->rollout);
    sql_put_int(q, s->is_ending);
    sql_put_int(q, s->is_forced);
    sql_put_time(q, s->ended_usec);
}

int model_service_insert(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct model_service *s = e->service.row;
    AQ_CLEANUP(strbuf_donep) struct strbuf limits = STRBUF_INIT;
    struct jsonw w = jsonw_make(&limits);
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO model_services (version, tag, is_public, replicas, replicas_min,"
        " replicas_max, share_micro, goal, last_number, limits, scaling, fired, rollout,"
        " is_ending, is_forced, ended_at, id, name, user_id, project_id, access_key, domain, resource_group,"
        " created_at, last_replica) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0)",
        &q, err);

    if (r < 0)
        return r;
    model_service_limits_write(&s->limits, &w);
    service_put(q, s, limits.data);
    sql_put_uuid(q, &s->id, id);
    sql_put_text(q, s->name);
    sql_put_uuid(q, &s->user_id, user);
    sql_put_uuid(q, &s->project_id, project);
    sql_put_text(q, s->access_key);
    sql_put_text(q, s->domain);
    sql_put_text(q, s->resource_group);
    sql_put_int(q, s->created_usec);
    r = sql_change_one(q, service_refuse_insert, s, err);
    if (r == 0 && s->revision_count)
        r = service_add_revision(tx, s, err);
    return r < 0 ? r : service_add_history(tx, s, s->created_usec, e->service.reason, err);
}

static int service_run_for(struct store_tx *tx, const char *text, const struct uuid *id,
                           const int64_t *number, struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, buf);
    if (number)
        sql_put_int(q, *number);
    return sql_run(q, err);
}

static int service_drop_revision(struct store_tx *tx, const struct model_service *s, int64_t number,
                                 struct aq_error *err)
{
    int r = service_run_for(
        tx, "DELETE FROM model_service_revisions WHERE service_id = ? AND number = ?", &s->id,
        &number, err);

    return r < 0 ? r
                 : service_run_for(tx,
                                   "DELETE FROM model_service_totals WHERE service_id = ?"
                                   " AND object = 'revision:' || CAST(? AS INTEGER)",
                                   &s->id, &number, err);
}

/* Tokens and totals of a service that has ended. */
static int service_drop_uses(struct store_tx *tx, const struct model_service *s,
                             struct aq_error *err)
{
    int r = service_run_for(tx, "DELETE FROM model_service_tokens WHERE service_id = ?", &s->id,
                            NULL, err);

    return r < 0 ? r
                 : service_run_for(tx, "DELETE FROM model_service_totals WHERE service_id = ?",
                                   &s->id, NULL, err);
}

int model_service_change(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct model_service *s = e->service.row;
    AQ_CLEANUP(strbuf_donep) struct strbuf limits = STRBUF_INIT;
    struct jsonw w = jsonw_make(&limits);
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE model_services SET version = ?, tag = ?, is_public = ?,"
                        " replicas = ?, replicas_min = ?, replicas_max = ?,"
                        " share_micro = ?, goal = ?,"
                        " last_number = ?, limits = ?, scaling = ?, fired = ?, rollout = ?,"
                        " is_ending = ?,"
                        " is_forced = ?, ended_at = ?"
                        " WHERE id = ? AND version = ? AND ended_at IS NULL",
                        &q, err);

    if (r < 0)
        return r;
    model_service_limits_write(&s->limits, &w);
    service_put(q, s, limits.data);
    sql_put_uuid(q, &s->id, id);
    sql_put_int(q, (int64_t)s->version - 1);
    r = sql_change_one(q, service_refuse_change, s, err);
    if (r == 0 && e->service.has_revision)
        r = service_add_revision(tx, s, err);
    for (size_t i = 0; r == 0 && i < e->service.dropped_count; i++)
        r = service_drop_revision(tx, s, e->service.dropped[i], err);
    if (r == 0 && s->ended_usec)
        r = service_drop_uses(tx, s, err);
    if (r < 0 || (e->service.is_rollout && !e->service.reason))
        return r;
    return service_add_history(tx, s, e->at_usec, e->service.reason, err);
}

/* ---- replicas ---- */

/* sql_refuse_fn */
static int service_refuse_number(const void *of, int r, struct aq_error *err)
{
    (void)of;
    return r == -ENODATA ? aq_fail(err, ESTALE, "the model service has ended, or is ending") : r;
}

int model_service_take_number(struct store_tx *tx, const struct uuid *id, int64_t number,
                              struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE model_services SET last_replica ="
                        " CASE WHEN last_replica < ? THEN ? ELSE last_replica END"
                        " WHERE id = ? AND ended_at IS NULL AND is_ending = 0",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, number);
    sql_put_int(q, number);
    sql_put_uuid(q, id, text);
    return sql_change_one(q, service_refuse_number, id, err);
}

/* ---- tokens ---- */

/* sql_refuse_fn */
static int service_refuse_token(const void *of, int r, struct aq_error *err)
{
    (void)of;
    return r == -ENODATA ? aq_fail(err, ENOENT, "the model service has ended") : r;
}

int model_service_token_add(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct model_service_token *token = &e->service_token.token;
    AQ_CLEANUP(strbuf_donep) struct strbuf paths = STRBUF_INIT;
    struct jsonw w = jsonw_make(&paths);
    char id[UUID_TEXT_MAX], service[UUID_TEXT_MAX], creator[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO model_service_tokens (id, hash, label, paths, expires_at, rate, budget,"
        " used, requests, creator_id, created_at, used_at, service_id)"
        " SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),"
        " CAST(? AS INTEGER), CAST(? AS INTEGER), CAST(? AS INTEGER), 0, 0, CAST(? AS TEXT),"
        " CAST(? AS INTEGER), NULL, id FROM model_services WHERE id = ? AND ended_at IS NULL",
        &q, err);

    if (r < 0)
        return r;
    model_service_token_write_paths(token, &w);
    sql_put_uuid(q, &token->id, id);
    sql_put_text(q, token->hash);
    sql_put_text(q, token->label);
    sql_put_text(q, paths.data);
    sql_put_time(q, token->expires_usec);
    sql_put_int(q, token->rate_milli);
    sql_put_int(q, token->budget);
    sql_put_uuid(q, &token->creator_id, creator);
    sql_put_int(q, token->created_usec);
    sql_put_uuid(q, &e->service_token.service_id, service);
    return sql_change_one(q, service_refuse_token, e, err);
}

int model_service_token_remove(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char service_id[UUID_TEXT_MAX], id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = service_run_for(tx, "DELETE FROM model_service_tokens WHERE id = ?",
                            &e->service_token.token.id, NULL, err);

    if (r == 0)
        r = sql_prepare(tx->db,
                        "DELETE FROM model_service_totals WHERE service_id = ?"
                        " AND object = 'token:' || CAST(? AS TEXT)",
                        &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, &e->service_token.service_id, service_id);
    sql_put_uuid(q, &e->service_token.token.id, id);
    return sql_run(q, err);
}

int model_service_token_use(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE model_service_tokens SET requests = requests + ?, used = used + ?,"
                        " used_at = ? WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->service_token.requests);
    sql_put_int(q, e->service_token.spent);
    sql_put_int(q, e->at_usec);
    sql_put_uuid(q, &e->service_token.token.id, id);
    return sql_run(q, err);
}

/* ---- reading ---- */

void model_service_read_row(struct row *row, struct model_service *ret)
{
    struct sql_stmt *q = row->q;
    const char *limits;

    *ret = (struct model_service){ .id = sql_get_uuid(q) };
    row_bounded(row, ret->name, sizeof(ret->name));
    ret->version = (uint32_t)sql_get_int(q);
    ret->user_id = sql_get_uuid(q);
    ret->project_id = sql_get_uuid(q);
    row_bounded(row, ret->access_key, sizeof(ret->access_key));
    ret->domain = row_text(row);
    ret->resource_group = row_text(row);
    ret->tag = row_text(row);
    ret->is_public = sql_get_int(q) != 0;
    ret->replicas = sql_get_int(q);
    ret->replicas_min = sql_get_int(q);
    ret->replicas_max = sql_get_int(q);
    ret->share_micro = sql_get_int(q);
    ret->goal = sql_get_int(q);
    ret->last_number = sql_get_int(q);
    limits = sql_get_text(q);
    row->is_damaged |= !limits || model_service_limits_parse(limits, &ret->limits, NULL) < 0;
    ret->scaling = row_text(row);
    ret->fired = row_text(row);
    ret->rollout = row_text(row);
    ret->created_usec = sql_get_int(q);
    ret->is_ending = sql_get_int(q) != 0;
    ret->is_forced = sql_get_int(q) != 0;
    ret->ended_usec = sql_get_int(q);
}

void model_service_read_revision(struct row *row, struct model_service *ret)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct model_service_spec spec = { .port = 0 };
    struct model_service_revision *revision;
    const char *text;

    ret->revisions = aq_realloc(ret->revisions,
                                (ret->revision_count + 1) * sizeof(*ret->revisions));
    revision = &ret->revisions[ret->revision_count++];
    *revision = (struct model_service_revision){ .number = sql_get_int(row->q) };
    text = sql_get_text(row->q);
    row->is_damaged |= !text || model_service_spec_parse(text, &arena, &spec, NULL) < 0;
    revision->spec = model_service_spec_copy(&spec);
    revision->note = row_text(row);
    revision->creator_id = sql_get_uuid(row->q);
    revision->created_usec = sql_get_int(row->q);
    revision->failures = sql_get_int(row->q);
}

void model_service_read_token(struct row *row, struct model_service *ret)
{
    struct sql_stmt *q = row->q;
    struct model_service_token *token;
    const char *paths;

    ret->tokens = aq_realloc(ret->tokens, (ret->token_count + 1) * sizeof(*ret->tokens));
    token = &ret->tokens[ret->token_count++];
    *token = (struct model_service_token){ .id = sql_get_uuid(q) };
    row_bounded(row, token->hash, sizeof(token->hash));
    token->label = row_text(row);
    paths = sql_get_text(q);
    row->is_damaged |= !paths || model_service_token_parse_paths(paths, token, NULL) < 0;
    token->expires_usec = sql_get_int(q);
    token->rate_milli = sql_get_int(q);
    token->budget = sql_get_int(q);
    token->used = sql_get_int(q);
    token->requests = sql_get_int(q);
    token->creator_id = sql_get_uuid(q);
    token->created_usec = sql_get_int(q);
    token->used_usec = sql_get_int(q);
}

void model_service_rows_done(struct model_service_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        model_service_done(&rows->items[i]);
    free(rows->items);
    *rows = (struct model_service_rows){ .items = NULL };
}

/* All revisions of a service, or its goal; the length of their specs is added to '*inout_bytes'. */
static int service_read_revisions(struct store_tx *tx, struct model_service *s, bool all,
                                  size_t *inout_bytes, struct aq_error *err)
{
    struct sql_stmt *q;
    struct row row = { .q = NULL };
    char id[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        all ? "SELECT " MODEL_SERVICE_REVISION_COLUMNS
                              ", length(r.spec) FROM model_service_revisions r"
                              " WHERE r.service_id = ? ORDER BY r.number"
                            : "SELECT " MODEL_SERVICE_REVISION_COLUMNS
                              ", length(r.spec) FROM model_service_revisions r"
                              " WHERE r.service_id = ? AND r.number = ?",
                        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    sql_put_uuid(q, &s->id, id);
    if (!all)
        sql_put_int(q, s->goal);
    while ((r = sql_step(q, err)) > 0) {
        model_service_read_revision(&row, s);
        *inout_bytes += (size_t)sql_get_int(q);
        if ((r = row_check(&row, "model_service_revisions", err)) < 0)
            break;
    }
    sql_end(q);
    return r;
}

/* The condition, with as many parameters as service_put_ended() fills in. */
static void service_add_ended(const struct model_service_ended *of, struct strbuf *sql)
{
    strbuf_adds(sql, " FROM model_services m WHERE m.ended_at IS NOT NULL");
    if (of->user_id)
        strbuf_adds(sql,
                    of->domain ? " AND (m.user_id = ? OR m.domain = ?)" : " AND m.user_id = ?");
    if (of->text)
        strbuf_adds(sql, " AND (m.id = ? OR lower(m.name) = lower(?))");
}

static void service_put_ended(const struct model_service_ended *of, struct sql_stmt *q,
                              char id[UUID_TEXT_MAX])
{
    if (of->user_id)
        sql_put_uuid(q, of->user_id, id);
    if (of->user_id && of->domain)
        sql_put_text(q, of->domain);
    if (of->text) {
        sql_put_text(q, of->text);
        sql_put_text(q, of->text);
    }
}

static int service_read_ended_rows(struct store_tx *tx, const struct model_service_ended *of,
                                   struct model_service_rows *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    struct sql_stmt *q;
    struct row row = { .q = NULL };
    char id[UUID_TEXT_MAX];
    int r;

    strbuf_adds(&sql, "SELECT " MODEL_SERVICE_COLUMNS);
    service_add_ended(of, &sql);
    strbuf_adds(&sql, of->text ? " ORDER BY CASE WHEN m.id = ? THEN 0 ELSE 1 END,"
                                 " m.ended_at DESC LIMIT 1"
                               : " ORDER BY m.ended_at DESC, m.id LIMIT ? OFFSET ?");
    if ((r = sql_prepare_built(tx->db, sql.data, &q, err)) < 0)
        return r;
    row.q = q;
    service_put_ended(of, q, id);
    if (of->text) {
        sql_put_text(q, of->text);
    } else {
        sql_put_int(q, AQ_MAX(AQ_MIN(of->limit, MODEL_SERVICE_ENDED_MAX - of->offset), 0));
        sql_put_int(q, of->offset);
    }
    while ((r = sql_step(q, err)) > 0) {
        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        model_service_read_row(&row, &ret->items[ret->count++]);
        if ((r = row_check(&row, "model_services", err)) < 0)
            break;
    }
    sql_end(q);
    return r;
}

int store_read_ended_model_services(struct store_tx *tx, const struct model_service_ended *of,
                                    struct model_service_rows *ret, struct aq_error *err)
{
    size_t bytes = 0, first = ret->count;
    int r = service_read_ended_rows(tx, of, ret, err);

    for (size_t i = first; r == 0 && i < ret->count; i++) {
        r = service_read_revisions(tx, &ret->items[i], of->text != NULL, &bytes, err);
        if (r == 0 && of->bytes_max && bytes > of->bytes_max && of->leaves_out) {
            for (size_t k = i; k < ret->count; k++)
                model_service_done(&ret->items[k]);
            ret->count = i;
        } else if (r == 0 && of->bytes_max && bytes > of->bytes_max) {
            r = aq_fail_field(
                err, EMSGSIZE, "limit",
                "the model services that have ended have more than %zu bytes: ask for "
                "fewer",
                of->bytes_max);
        }
    }
    return r;
}

int store_count_ended_model_services(struct store_tx *tx, const struct model_service_ended *of,
                                     int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    strbuf_adds(&sql, "SELECT count(*)");
    service_add_ended(of, &sql);
    if ((r = sql_prepare_built(tx->db, sql.data, &q, err)) < 0)
        return r;
    service_put_ended(of, q, id);
    if ((r = sql_step(q, err)) > 0) {
        *ret = sql_get_int(q);
        *ret = AQ_MIN(*ret, MODEL_SERVICE_ENDED_MAX);
        r = 0;
    }
    sql_end(q);
    return r;
}

void model_service_changes_done(struct model_service_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].reason);
    free(changes->items);
    *changes = (struct model_service_changes){ .items = NULL };
}

int store_read_model_service_changes(struct store_tx *tx, const struct uuid *id, size_t limit,
                                     struct model_service_changes *ret, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "SELECT version, at, replicas, share_micro, goal, reason"
                        " FROM model_service_history WHERE service_id = ?"
                        " ORDER BY version DESC LIMIT ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, text);
    sql_put_int(q, (int64_t)limit);
    while ((r = sql_step(q, err)) > 0) {
        struct model_service_change *change;

        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        change = &ret->items[ret->count++];
        *change = (struct model_service_change){ .version = sql_get_int(q) };
        change->at_usec = sql_get_int(q);
        change->replicas = sql_get_int(q);
        change->share_micro = sql_get_int(q);
        change->goal = sql_get_int(q);
        change->reason = aq_strdup(sql_get_text(q));
    }
    sql_end(q);
    return r;
}
