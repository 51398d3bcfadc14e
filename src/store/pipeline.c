/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - rows of pipelines and of their runs */
#include "store/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/list_query.h"

/* ---- one number ---- */

#define PIPELINE_LAST_RUN "SELECT MAX(last_run) FROM pipelines WHERE user_id = ? AND name = ?"

/* The first column of the first row of a constant query about a user and a name. */
static int pipeline_ask(struct store_tx *tx, const char *text, const struct uuid *user_id,
                        const char *name, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    if (name)
        sql_put_text(q, name);
    *ret = 0;
    if ((r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

/* Run a constant statement about a row. */
static int pipeline_run_about(struct store_tx *tx, const char *text, const struct uuid *id,
                              struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, buf);
    return sql_run(q, err);
}

/* ---- versions ---- */

/* The version that has this content already; true if there is one, and it is the latest then. */
static int pipeline_find_same(struct store_tx *tx, struct pipeline_row *inout, struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE pipelines SET saved_at = ?, last_run = (SELECT MAX(o.last_run)"
                        " FROM pipelines o WHERE o.user_id = pipelines.user_id"
                        " AND o.name = pipelines.name) WHERE user_id = ? AND name = ?"
                        " AND hash = ? RETURNING id, version",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, inout->saved_usec);
    sql_put_uuid(q, &inout->user_id, user);
    sql_put_text(q, inout->name);
    sql_put_text(q, inout->hash);
    if ((r = sql_step(q, err)) > 0) {
        inout->id = sql_get_uuid(q);
        inout->version = sql_get_int(q);
    }
    sql_end(q);
    return r;
}

static int pipeline_make_room(struct store_tx *tx, const struct uuid *user_id, struct aq_error *err)
{
    static const char count[] = "SELECT COUNT(*) FROM pipelines WHERE user_id = ?";
    int64_t versions;
    int r = pipeline_ask(tx, count, user_id, NULL, &versions, err);

    if (r < 0 || versions < PIPELINE_VERSIONS_MAX)
        return r;
    r = pipeline_run_about(tx,
                           "DELETE FROM pipelines WHERE user_id = ? AND saved_at < (SELECT"
                           " MAX(o.saved_at) FROM pipelines o WHERE o.user_id = pipelines.user_id"
                           " AND o.name = pipelines.name) AND NOT EXISTS (SELECT 1 FROM"
                           " pipeline_runs r WHERE r.pipeline_id = pipelines.id)",
                           user_id, err);
    if (r < 0 || (r = pipeline_ask(tx, count, user_id, NULL, &versions, err)) < 0)
        return r;
    return versions < PIPELINE_VERSIONS_MAX
               ? 0
               : aq_fail(err, E2BIG, "you have %d versions of pipelines already",
                         PIPELINE_VERSIONS_MAX);
}

int pipeline_save(struct store_tx *tx, struct pipeline_row *inout, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int64_t last_run;
    int r = pipeline_find_same(tx, inout, err);

    if (r != 0)
        return AQ_MIN(r, 0);
    if ((r = pipeline_make_room(tx, &inout->user_id, err)) < 0
        || (r = pipeline_ask(tx,
                             "SELECT MAX(version) FROM pipelines WHERE user_id = ? AND name = ?",
                             &inout->user_id, inout->name, &inout->version, err))
               < 0
        || (r = pipeline_ask(tx, PIPELINE_LAST_RUN, &inout->user_id, inout->name, &last_run, err))
               < 0
        || (r = sql_prepare(tx->db,
                            "INSERT INTO pipelines (id, user_id, name, version, hash, text,"
                            " saved_at, last_run) VALUES (?,?,?,?,?,?,?,?)",
                            &q, err))
               < 0)
        return r;
    inout->version++;
    sql_put_uuid(q, &inout->id, id);
    sql_put_uuid(q, &inout->user_id, user);
    sql_put_text(q, inout->name);
    sql_put_int(q, inout->version);
    sql_put_text(q, inout->hash);
    sql_put_text(q, inout->text);
    sql_put_int(q, inout->saved_usec);
    sql_put_int(q, last_run);
    return sql_run(q, err);
}

static const struct filter_field pipeline_fields[] = {
    { "id", "p.id", FILTER_UUID },
    { "name", "p.name", FILTER_STRING },
    { "version", "p.version", FILTER_INT },
    { "user_email", "u.email", FILTER_STRING },
    { "saved_at", "p.saved_at", FILTER_TIME },
};

static int pipeline_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct pipeline_row *p = ret;

    (void)tx;
    (void)err;
    p->id = sql_get_uuid(row->q);
    p->user_id = sql_get_uuid(row->q);
    p->name = row_text(row);
    p->version = sql_get_int(row->q);
    p->hash = row_text(row);
    p->saved_usec = sql_get_int(row->q);
    p->user_email = row_text(row);
    p->last_run = sql_get_int(row->q);
    p->last_run_state = row_text(row);
    p->next_usec = sql_get_int(row->q);
    return 0;
}

/* Of a version, and of its name. */
#define PIPELINE_COLUMNS                                                                          \
    "p.id, p.user_id, p.name, p.version, p.hash, p.saved_at, u.email,"                            \
    " (SELECT MAX(o.last_run) FROM pipelines o WHERE o.user_id = p.user_id AND o.name = p.name)," \
    " (SELECT r.state FROM pipeline_runs r WHERE r.user_id = p.user_id AND r.name = p.name"       \
    " ORDER BY r.number DESC LIMIT 1),"                                                           \
    " (SELECT MIN(t.next_at) FROM pipeline_triggers t WHERE t.user_id = p.user_id"                \
    " AND t.name = p.name)"
#define PIPELINE_FROM "pipelines p JOIN users u ON u.id = p.user_id"

int pipeline_find(struct store_tx *tx, const struct uuid *user_id, const char *name,
                  int64_t version, struct arena *arena, struct pipeline_row *ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT " PIPELINE_COLUMNS ", p.text FROM " PIPELINE_FROM
                        " WHERE p.user_id = ? AND p.name = ? AND (? = 0 OR p.version = ?)"
                        " ORDER BY p.saved_at DESC, p.version DESC LIMIT 1",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, user);
    sql_put_text(q, name);
    sql_put_int(q, version);
    sql_put_int(q, version);
    if ((r = sql_step(q, err)) < 0)
        return r;
    if (r == 0)
        return version ? aq_fail(err, ENOENT, "your pipeline '%.64s' has no version %lld", name,
                                 (long long)version)
                       : aq_fail(err, ENOENT, "no pipeline of yours is called '%.64s'", name);
    row.q = q;
    *ret = (struct pipeline_row){ .version = 0 };
    if ((r = pipeline_read_row(tx, &row, ret, err)) == 0)
        ret->text = row_text(&row);
    return r;
}

static const struct list_table pipeline_table = {
    .what = "pipelines",
    .columns = PIPELINE_COLUMNS,
    .from = PIPELINE_FROM,
    .order = "p.name, p.version DESC, p.id",
    .tie = "p.id",
    .fields = pipeline_fields,
    .field_count = AQ_COUNT(pipeline_fields),
    .domain = "u.domain",
    .user = "p.user_id",
    .name = "p.name",
    .id = "p.id",
    .row_size = sizeof(struct pipeline_row),
    .read = pipeline_read_row,
};

#define PIPELINE_IS_LATEST                                                                  \
    "NOT EXISTS (SELECT 1 FROM pipelines o WHERE o.user_id = p.user_id AND o.name = p.name" \
    " AND (o.saved_at > p.saved_at OR (o.saved_at = p.saved_at AND o.version > p.version)))"

int store_list_pipelines(struct store_tx *tx, const struct folder_viewer *who, bool all,
                         const struct store_query *query, struct store_page **ret,
                         struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct list_extra extra = PIPELINE_EXTRA(who, all, user, PIPELINE_IS_LATEST, "p.user_id");

    return list_run(tx, &pipeline_table, query, &extra, ret, err);
}

int store_list_pipeline_versions(struct store_tx *tx, const struct folder_viewer *who,
                                 const char *name, const struct store_query *query,
                                 struct store_page **ret, struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct list_extra extra = { .where = "p.user_id = ? AND p.name = ?",
                                .params = { uuid_format(&who->user_id, user), name },
                                .param_count = 2 };

    return list_run(tx, &pipeline_table, query, &extra, ret, err);
}

/* ---- runs ---- */

int pipeline_run_check_live(struct store_tx *tx, const struct uuid *user_id, struct aq_error *err)
{
#define PIPELINE_LIVE " WHERE r.user_id = ? AND r.ended_at IS NULL"
    int64_t runs, tasks, bytes;
    int r;

    if ((r = pipeline_ask(tx, "SELECT COUNT(*) FROM pipeline_runs r" PIPELINE_LIVE, user_id, NULL,
                          &runs, err))
            < 0
        || (r = pipeline_ask(tx,
                             "SELECT COUNT(*) FROM pipeline_runs r JOIN pipeline_tasks t ON"
                             " t.run_id = r.id" PIPELINE_LIVE,
                             user_id, NULL, &tasks, err))
               < 0
        || (r = pipeline_ask(tx,
                             "SELECT SUM(LENGTH(p.text) + LENGTH(r.parameters)) FROM pipeline_runs"
                             " r JOIN pipelines p ON p.id = r.pipeline_id" PIPELINE_LIVE,
                             user_id, NULL, &bytes, err))
               < 0)
        return r;
#undef PIPELINE_LIVE
    if (runs >= PIPELINE_RUNS_LIVE_MAX)
        return aq_fail(err, E2BIG,
                       "you have %d pipeline runs that have not ended; wait for one, or cancel "
                       "it",
                       PIPELINE_RUNS_LIVE_MAX);
    if (tasks >= PIPELINE_TASKS_LIVE_MAX || bytes >= PIPELINE_BYTES_LIVE_MAX)
        return aq_fail(err, E2BIG,
                       "your pipeline runs that have not ended have %lld tasks and %lld KiB of "
                       "files and parameters; at most %d and %d are allowed: wait for one, or "
                       "cancel it",
                       (long long)tasks, (long long)bytes >> 10, PIPELINE_TASKS_LIVE_MAX,
                       PIPELINE_BYTES_LIVE_MAX >> 10);
    return 0;
}

static int pipeline_run_make_room(struct store_tx *tx, const struct uuid *user_id,
                                  struct aq_error *err)
{
    int64_t runs;
    int r;

    if ((r = pipeline_run_check_live(tx, user_id, err)) < 0
        || (r = pipeline_ask(tx, "SELECT COUNT(*) FROM pipeline_runs WHERE user_id = ?", user_id,
                             NULL, &runs, err))
               < 0
        || runs < PIPELINE_RUNS_MAX)
        return r;
#define PIPELINE_OLDEST                                                                              \
    "(SELECT id FROM pipeline_runs WHERE user_id = ? AND ended_at IS NOT NULL AND follow_at IS NULL" \
    " ORDER BY ended_at, id LIMIT 1)"
    r = pipeline_run_about(tx, "DELETE FROM pipeline_tasks WHERE run_id = " PIPELINE_OLDEST,
                           user_id, err);
    return r < 0 ? r
                 : pipeline_run_about(tx, "DELETE FROM pipeline_runs WHERE id = " PIPELINE_OLDEST,
                                      user_id, err);
#undef PIPELINE_OLDEST
}

/* The next number of a user's runs of this name; runs that are dropped do not free theirs. The
 * latest version has the highest number: older ones may be dropped, too.
 */
static int pipeline_run_take_number(struct store_tx *tx, struct pipeline_run_row *inout,
                                    struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = pipeline_ask(tx, PIPELINE_LAST_RUN, &inout->user_id, inout->name, &inout->number, err);

    if (r < 0
        || (r = sql_prepare(tx->db,
                            "UPDATE pipelines SET last_run = ? WHERE user_id = ? AND name = ?"
                            " AND saved_at = (SELECT MAX(o.saved_at) FROM pipelines o WHERE"
                            " o.user_id = pipelines.user_id AND o.name = pipelines.name)",
                            &q, err))
               < 0)
        return r;
    sql_put_int(q, ++inout->number);
    sql_put_uuid(q, &inout->user_id, user);
    sql_put_text(q, inout->name);
    return sql_run(q, err);
}

int pipeline_run_insert(struct store_tx *tx, struct pipeline_run_row *inout, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], pipeline[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = pipeline_run_make_room(tx, &inout->user_id, err);

    if (r < 0 || (r = pipeline_run_take_number(tx, inout, err)) < 0
        || (r = sql_prepare(
                tx->db,
                "INSERT INTO pipeline_runs (id, pipeline_id, user_id, access_key, name,"
                " number, state, is_cancelled, parameters, options, created_at, started_by, due_at,"
                " depth) VALUES (?,?,?,?,?,?,'running',0,?,?,?,?,?,?)",
                &q, err))
               < 0)
        return r;
    sql_put_uuid(q, &inout->id, id);
    sql_put_uuid(q, &inout->pipeline_id, pipeline);
    sql_put_uuid(q, &inout->user_id, user);
    sql_put_text(q, inout->access_key);
    sql_put_text(q, inout->name);
    sql_put_int(q, inout->number);
    sql_put_text(q, inout->parameters);
    sql_put_text(q, inout->options);
    sql_put_int(q, inout->created_usec);
    sql_put_text(q, inout->started_by);
    sql_put_time(q, inout->due_usec);
    sql_put_int(q, inout->depth);
    return sql_run(q, err);
}

static const struct filter_field pipeline_run_fields[] = {
    { "id", "r.id", FILTER_UUID },
    { "name", "r.name", FILTER_STRING },
    { "number", "r.number", FILTER_INT },
    { "state", "r.state", FILTER_LOWER },
    { "user_email", "u.email", FILTER_STRING },
    { "created_at", "r.created_at", FILTER_TIME },
    { "ended_at", "r.ended_at", FILTER_TIME },
};

static int pipeline_run_read_row(struct store_tx *tx, struct row *row, void *ret,
                                 struct aq_error *err)
{
    struct pipeline_run_row *run = ret;

    (void)tx;
    (void)err;
    run->id = sql_get_uuid(row->q);
    run->pipeline_id = sql_get_uuid(row->q);
    run->user_id = sql_get_uuid(row->q);
    run->access_key = row_text(row);
    run->name = row_text(row);
    run->number = sql_get_int(row->q);
    run->state = row_text(row);
    run->is_cancelled = sql_get_int(row->q) != 0;
    run->parameters = row_text(row);
    run->options = row_text(row);
    run->created_usec = sql_get_int(row->q);
    run->ended_usec = sql_get_int(row->q);
    run->started_by = row_text(row);
    run->due_usec = sql_get_int(row->q);
    run->depth = sql_get_int(row->q);
    run->version = sql_get_int(row->q);
    run->user_email = row_text(row);
    run->domain = row_text(row);
    ROW_PARSE(row, user_role_parse, &run->role);
    run->task_count = sql_get_int(row->q);
    run->succeeded = sql_get_int(row->q);
    run->failed = sql_get_int(row->q);
    run->running = sql_get_int(row->q);
    return 0;
}

#define PIPELINE_RUN_COUNT(condition) \
    "(SELECT COUNT(*) FROM pipeline_tasks t WHERE t.run_id = r.id" condition ")"
#define PIPELINE_RUN_COLUMNS                                                                                                     \
    "r.id, r.pipeline_id, r.user_id, r.access_key, r.name, r.number, r.state, r.is_cancelled,"                                   \
    " r.parameters, r.options, r.created_at, r.ended_at, r.started_by, r.due_at, r.depth, p.version, u.email, u.domain, u.role," \
    " " PIPELINE_RUN_COUNT("") ", " PIPELINE_RUN_COUNT(                                                                          \
        " AND t.state = 'succeeded'") ","                                                                                        \
                                      " " PIPELINE_RUN_COUNT(                                                                    \
                                          " AND t.state = 'failed'") ","                                                         \
                                                                     " " PIPELINE_RUN_COUNT(                                     \
                                                                         " AND t.state = 'running'")
#define PIPELINE_RUN_FROM                                      \
    "pipeline_runs r JOIN pipelines p ON p.id = r.pipeline_id" \
    " JOIN users u ON u.id = r.user_id"

static const struct list_table pipeline_run_table = {
    .what = "runs of pipelines",
    .columns = PIPELINE_RUN_COLUMNS,
    .from = PIPELINE_RUN_FROM,
    .order = "r.created_at DESC, r.id",
    .tie = "r.id",
    .fields = pipeline_run_fields,
    .field_count = AQ_COUNT(pipeline_run_fields),
    .domain = "u.domain",
    .user = "r.user_id",
    .name = "r.name",
    .id = "r.id",
    .row_size = sizeof(struct pipeline_run_row),
    .read = pipeline_run_read_row,
};

int store_list_pipeline_runs(struct store_tx *tx, const struct folder_viewer *who, bool all,
                             const struct store_query *query, struct store_page **ret,
                             struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    struct list_extra extra = PIPELINE_EXTRA(who, all, user, "r.number > 0", "r.user_id");

    return list_run(tx, &pipeline_run_table, query, &extra, ret, err);
}

/* "digits.7" in its parts; false if it is not of this form. */
static bool pipeline_run_split(const char *text, struct arena *arena, const char **ret_name,
                               int64_t *ret_number)
{
    const char *dot = strrchr(text, '.');
    char *end;

    if (!dot || dot == text)
        return false;
    *ret_name = arena_strndup(arena, text, (size_t)(dot - text));
    *ret_number = strtoll(dot + 1, &end, 10);
    return dot[1] && !*end;
}

/* The owner and administrators may access it. As for requests on behalf of others, administrators
 * of a domain may not act for superadmins.
 */
static bool pipeline_run_may(const struct pipeline_run_row *run, const struct folder_viewer *who)
{
    if (who->is_superadmin || uuid_equals(&run->user_id, &who->user_id))
        return true;
    return who->admin_of && run->domain && strcmp(who->admin_of, run->domain) == 0
           && run->role != ROLE_SUPERADMIN;
}

int pipeline_run_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                      struct arena *arena, struct pipeline_run_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char buf[UUID_TEXT_MAX];
    const char *name = "";
    int64_t number = 0;
    struct uuid id = { 0 };
    struct pipeline_run_row run = { .number = 0 };
    int r;

    if (uuid_parse(text, &id) < 0)
        (void)pipeline_run_split(text, arena, &name, &number);
    r = sql_prepare(tx->db,
                    "SELECT " PIPELINE_RUN_COLUMNS ", p.text FROM " PIPELINE_RUN_FROM
                    " WHERE r.id = ? OR (r.user_id = ? AND r.name = ? AND r.number = ?)",
                    &q, err);
    if (r < 0)
        return r;
    {
        char user[UUID_TEXT_MAX];

        sql_put_uuid(q, &id, buf);
        sql_put_uuid(q, &who->user_id, user);
        sql_put_text(q, name);
        sql_put_int(q, number);
        r = sql_step(q, err);
    }
    if (r < 0)
        return r;
    row.q = q;
    if (r > 0) {
        if ((r = pipeline_run_read_row(tx, &row, &run, err)) < 0)
            return r;
        run.text = row_text(&row);
    }
    if (!run.text || !pipeline_run_may(&run, who))
        return aq_fail(err, ENOENT, "there is no pipeline run '%.64s'", text);
    *ret = run;
    return 0;
}

int pipeline_run_list_live(struct store_tx *tx, struct arena *arena, struct uuid_list *ret,
                           struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT id FROM pipeline_runs WHERE ended_at IS NULL", &q, err);

    if (r < 0)
        return r;
    *ret = (struct uuid_list){ .items = NULL };
    while ((r = sql_step(q, err)) > 0) {
        struct uuid id = sql_get_uuid(q);

        (void)arena_append(arena, &ret->items, &ret->count, &id, sizeof(id));
    }
    return r;
}

int pipeline_run_update(struct store_tx *tx, const struct pipeline_run_row *row,
                        struct aq_error *err)
{
    char id[UUID_TEXT_MAX], pipeline[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE pipeline_runs SET pipeline_id = ?, state = ?, is_cancelled = ?,"
                        " parameters = ?, ended_at = ? WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &row->pipeline_id, pipeline);
    sql_put_text(q, row->state);
    sql_put_int(q, row->is_cancelled);
    sql_put_text(q, row->parameters);
    sql_put_time(q, row->ended_usec);
    sql_put_uuid(q, &row->id, id);
    return sql_run(q, err);
}
