/* SPDX-License-Identifier: Apache-2.0 */
/* session_list.c - lists of sessions, those that ended included */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/filter_program.h"
#include "store/session_list.h"

/* An error that nobody has looked at is listed by default for so long. */
#define ERROR_LISTED_USEC (24 * 3600 * USEC_PER_SEC)

#define USER_EMAIL "COALESCE(u.purged_email, u.email)"
#define PROJECT_NAME "COALESCE(p.purged_name, p.name)"

static const struct filter_field session_fields[] = {
    { "id", "s.id", FILTER_UUID },
    { "session_id", "s.id", FILTER_UUID },
    { "job_id", "s.seq", FILTER_INT, .is_never_null = true },
    { "name", "s.name", FILTER_STRING, .is_never_null = true },
    { "session_name", "s.name", FILTER_STRING, .is_never_null = true },
    { "type", "s.type", FILTER_LOWER },
    { "session_type", "s.type", FILTER_LOWER },
    { "status", "s.status", FILTER_UPPER },
    { "status_info", "s.reason", FILTER_STRING },
    { "result", "s.result", FILTER_UPPER },
    { "priority", "s.priority", FILTER_INT, .is_never_null = true },
    { "image", "s.image", FILTER_STRING },
    { "images", "s.image", FILTER_STRING },
    { "tag", "s.tag", FILTER_STRING },
    { "cluster_mode", "s.cluster_mode", FILTER_STRING },
    { "cluster_size", "s.kernel_count", FILTER_INT },
    { "domain_name", "s.domain", FILTER_STRING },
    { "group_id", "s.project_id", FILTER_UUID },
    { "project_id", "s.project_id", FILTER_UUID },
    { "group_name", PROJECT_NAME, FILTER_STRING, .is_joined = true },
    { "user_id", "s.user_id", FILTER_UUID },
    { "user_email", USER_EMAIL, FILTER_STRING, .is_joined = true },
    { "full_name", "u.full_name", FILTER_STRING, .is_joined = true },
    { "username", "u.username", FILTER_STRING, .is_joined = true },
    { "access_key", "s.access_key", FILTER_STRING },
    { "agent_ids", "n.agent_id", FILTER_STRING,
      .within = "FROM kernels n WHERE n.session_seq = s.seq" },
    { "scaling_group", "s.resource_group", FILTER_STRING },
    { "created_at", "s.created_at", FILTER_TIME, .is_never_null = true },
    { "starts_at", "s.starts_at", FILTER_TIME },
    { "status_changed", "s.status_changed_at", FILTER_TIME, .is_never_null = true },
    { "terminated_at", "s.terminated_at", FILTER_TIME },
    { "last_access", "s.last_access", FILTER_TIME },
    { "array_index", "s.array_index", FILTER_INT },
};

static const char *session_list_status(int status)
{
    return session_status_name((enum session_status)status);
}

static int session_list_read_row(struct store_tx *tx, struct row *row, void *ret,
                                 struct aq_error *err)
{
    struct session_row *s = ret;

    (void)tx;
    (void)err;
    session_read_row(row, &s->session, &s->kernel_count);
    s->user_email = row_text(row);
    s->project_name = row_text(row);
    s->cluster_mode = cluster_mode_name(s->session.is_multi_node);
    s->terminated_usec = sql_get_int(row->q);
    s->dismissed_usec = sql_get_int(row->q);
    s->accessed_usec = sql_get_int(row->q);
    return 0;
}

#define LIST_COLUMNS(spec, status_data, user_email, project_name) \
    SESSION_COLUMNS_WITH(spec, status_data)                       \
    ", " user_email ", " project_name ", s.terminated_at, s.dismissed_at, s.last_access"

#define BRIEF_COLUMNS                                                                  \
    "s.seq, s.name, s.type, s.status, s.result, s.priority, s.kernel_count, s.reason," \
    " s.created_at, s.status_changed_at"

static int session_list_read_brief(struct store_tx *tx, struct row *row, void *ret,
                                   struct aq_error *err)
{
    struct session_row *s = ret;

    (void)tx;
    (void)err;
    *s = (struct session_row){ 0 };
    s->session.row = sql_get_int(row->q);
    row_bounded(row, s->session.name, sizeof(s->session.name));
    ROW_PARSE(row, session_type_parse, &s->session.type);
    ROW_PARSE(row, session_status_parse, &s->session.status);
    ROW_PARSE(row, session_result_parse, &s->session.result);
    s->session.priority = (int)sql_get_int(row->q);
    s->kernel_count = (size_t)sql_get_int(row->q);
    s->session.reason = row_text(row);
    s->session.created_usec = sql_get_int(row->q);
    s->session.status_changed_usec = sql_get_int(row->q);
    return 0;
}

/* Where rows are taken from in an order; 'changed_' and 'priority_' are those of a user's own. */
/* clang-format off */
#define SESSION_INDEXES(changed_, priority_)                                    \
    {                                                                           \
        { "s.status_changed_at", "INDEXED BY sessions_changed", changed_ },     \
        { "s.name", "INDEXED BY sessions_by_name", NULL, true },                      \
        { "s.created_at", "INDEXED BY sessions_by_creation", NULL },            \
        { "s.priority", "INDEXED BY sessions_by_priority", priority_ },         \
        { "s.seq", "NOT INDEXED", NULL },                                       \
    }
/* clang-format on */
static const struct list_index indexes_of_user[] = SESSION_INDEXES(
    "INDEXED BY sessions_owner_changed", "INDEXED BY sessions_of_user"),
                               indexes_of_all[] = SESSION_INDEXES(NULL, NULL);

static const char *const columns_of_kinds[] = {
    "s.domain",     "s.project_id",     "s.user_id",      "COALESCE(s.user_id, '')",
    "s.access_key", "s.resource_group", "s.type",         "s.status",
    "s.result",     "s.image",          "s.cluster_mode",
};

static const struct list_totals session_totals = {
    .from = "session_totals s",
    .count = "s.sessions",
    .columns = columns_of_kinds,
    .column_count = AQ_COUNT(columns_of_kinds),
    .rest = "s.terminated_at IS NULL",
    .rest_way = "INDEXED BY sessions_live_name",
};

/* 'user_' is how a user is compared: by an expression where the index by user
 * must not be taken, because another one gives far fewer rows.
 */
/* clang-format off */
#define SESSION_TABLE(user_, indexes_, is_found_)                                                                \
    {                                                                                              \
        .what = "sessions",                                                                        \
        .columns = LIST_COLUMNS("s.spec", "s.status_data", USER_EMAIL, PROJECT_NAME),              \
        .from = "sessions s",                                                                      \
        .joins = " LEFT JOIN users u ON u.id = s.user_id"                                          \
                 " LEFT JOIN projects p ON p.id = s.project_id",                                   \
        .indexes = (indexes_), .index_count = AQ_COUNT(indexes_),                                  \
        .height = "SELECT (SELECT MAX(seq) FROM sessions) - (SELECT MIN(seq) FROM sessions)",      \
        .is_found = (is_found_), .totals = &session_totals,                                                                 \
        .sort = { "s.status_changed_at", true }, .tie = "s.seq",                                   \
        .fields = session_fields, .field_count = AQ_COUNT(session_fields), .status = "s.status",   \
        .status_name = session_list_status, .status_count = SESSION_STATUS_COUNT,                  \
        .domain = "s.domain", .project = "s.project_id", .user = (user_),                            \
        .access_key = "s.access_key", .resource_group = "s.resource_group", .name = "s.name",      \
        .id = "s.id", .row_size = sizeof(struct session_row), .read = session_list_read_row,                \
    }
/* clang-format on */

static const struct list_table by_user = SESSION_TABLE("s.user_id", indexes_of_user, false);
const struct list_table session_list_by_other = SESSION_TABLE("COALESCE(s.user_id, '')",
                                                              indexes_of_all, true);

/* Those of the statuses that are never left again. */
static uint32_t session_list_ended(uint32_t statuses)
{
    uint32_t ended = 0;

    for (int i = 0; i < SESSION_STATUS_COUNT; i++)
        if (session_is_terminal((enum session_status)i))
            ended |= statuses & (1u << i);
    return ended;
}

static bool session_list_all_live(uint32_t statuses)
{
    return statuses != 0 && session_list_ended(statuses) == 0;
}

/* All that live, which need not be told by their statuses. */
static bool session_list_any_live(uint32_t statuses)
{
    uint32_t all = (1u << SESSION_STATUS_COUNT) - 1;

    return (statuses & all) == (all & ~session_list_ended(all));
}

static int session_list_compare_changed(const void *a, const void *b)
{
    const struct session *x = &((const struct session_row *)a)->session;
    const struct session *y = &((const struct session_row *)b)->session;
    int64_t mine = x->status_changed_usec, other = y->status_changed_usec;

    if (mine != other)
        return mine < other ? 1 : -1;
    return (x->row < y->row) - (x->row > y->row);
}

/* What clients of Backend.AI ask for when their user named no states. */
static bool session_list_is_default(uint32_t statuses)
{
    uint32_t ended = session_list_ended(statuses);

    return ended == 1u << SESSION_ERROR && statuses != ended;
}

static const char *session_list_columns(enum store_session_detail detail)
{
    switch (detail) {
    case STORE_SESSION_WHOLE:
        break;
    case STORE_SESSION_SHORT:
        return LIST_COLUMNS("NULL", "NULL", USER_EMAIL, PROJECT_NAME);
    case STORE_SESSION_BARE:
        return LIST_COLUMNS("NULL", "NULL", "NULL", "NULL");
    case STORE_SESSION_BRIEF:
        return BRIEF_COLUMNS;
    }
    return NULL; /* the table's */
}

int session_list_run(struct store_tx *tx, const struct list_table *table,
                     const struct store_query *q, const struct list_extra *extra,
                     struct store_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct list_extra own = *extra;
    int r;

    own.columns = session_list_columns(q->detail);
    own.read = q->detail == STORE_SESSION_BRIEF ? session_list_read_brief : NULL;
    r = list_run(tx, table, q, &own, &page, err);
    if (r == 0 && page->count)
        r = session_attach(tx, q, page, err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}

/* Does the filter say what the name is, and nothing that lets others in? Names are many, so the
 * index by name is the one to take.
 */
static bool session_list_names_one(const char *filter)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct filter_program *program;
    bool is_one = false;

    if (!filter || !filter[0]
        || filter_read(filter, session_fields, AQ_COUNT(session_fields), &arena, &program, NULL)
               < 0)
        return false;
    for (size_t i = 0; i < program->count; i++) {
        const struct filter_step *step = &program->steps[i];

        if (step->op == FILTER_OR || step->op == FILTER_NOT || step->op == FILTER_IS_NOT_NULL)
            return false;
        if (step->op == FILTER_EQUAL && strcmp(step->field->column, by_user.name) == 0)
            is_one = true;
    }
    return is_one;
}

/* The condition 'where', if there is one, and whose sessions they are. */
static void session_list_build(struct strbuf *sql, const struct list_table *table,
                               const struct store_query *q, const char *where,
                               struct list_extra *extra)
{
    char id[UUID_TEXT_MAX];

    strbuf_adds(sql, where);
    if (q->access_key) {
        strbuf_addf(sql, "%s%s = (SELECT k.user_id FROM keypairs k WHERE k.access_key = ?)",
                    sql->len ? " AND " : "", table->user);
        extra->params[extra->param_count++] = q->access_key;
    }
    if (q->agent) {
        strbuf_addf(sql,
                    "%sEXISTS (SELECT 1 FROM kernels n WHERE n.session_seq = s.seq"
                    " AND n.agent_id = ?)",
                    sql->len ? " AND " : "");
        extra->params[extra->param_count++] = q->agent;
    }
    if (q->array_id) {
        strbuf_addf(sql, "%ss.array_id = '%s'", sql->len ? " AND " : "",
                    uuid_format(q->array_id, id));
    } else if (q->no_elements) {
        strbuf_addf(sql, "%ss.array_id IS NULL", sql->len ? " AND " : "");
    }
    extra->where = sql->len ? sql->data : NULL;
    extra->is_of_kinds = !where[0] && !q->agent && !q->array_id && !q->no_elements;
    extra->is_found = q->agent || q->array_id;
}

static int session_list_count(struct store_tx *tx, const struct list_table *table,
                              const struct store_query *q, const char *where, int64_t *ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    struct list_extra extra = { 0 };

    session_list_build(&sql, table, q, where, &extra);
    return list_count(tx, table, q, &extra, ret, err);
}

/* All but those that live: an index counts the former, no index knows a status. */
static int session_list_count_ended(struct store_tx *tx, const struct list_table *table,
                                    const struct store_query *q, int64_t *ret, struct aq_error *err)
{
    struct store_query any = *q;
    int64_t live = 0;
    int r;

    any.statuses = 0;
    r = session_list_count(tx, table, &any, "", ret, err);
    if (r == 0)
        r = session_list_count(tx, &session_list_by_other, &any, "s.terminated_at IS NULL", &live,
                               err);
    *ret -= live;
    return r;
}

/* What lives, and the errors of the last day, by an index each. */
static void session_list_write_default(struct strbuf *where)
{
    long long since = (long long)(clock_realtime_usec() - ERROR_LISTED_USEC);

    strbuf_addf(where,
                "s.seq IN (SELECT x.seq FROM sessions x WHERE x.terminated_at IS NULL UNION ALL"
                " SELECT x.seq FROM sessions x WHERE x.status_changed_at > %lld"
                " AND x.status = 'ERROR' AND x.dismissed_at IS NULL AND x.terminated_at > %lld)",
                since, since);
}

/* The few that live are found by an index of theirs and then sorted; "+ 0" keeps the planner
 * from walking the many that ended in that order.
 */
static int session_list_run_live(struct store_tx *tx, const struct store_query *q,
                                 struct store_page **ret, struct aq_error *err)
{
    static const struct list_extra live = { .where = "s.terminated_at IS NULL",
                                            .order = "s.status_changed_at + 0 DESC, s.seq DESC",
                                            .compare = session_list_compare_changed,
                                            .most = "SELECT COUNT(*) FROM sessions"
                                                    " WHERE terminated_at IS NULL" };
    struct store_query any = *q;
    struct list_extra extra = live;

    if (q->no_elements)
        extra.where = "s.terminated_at IS NULL AND s.array_id IS NULL";
    if (session_list_any_live(q->statuses))
        any.statuses = 0;
    return session_list_run(tx, &session_list_by_other, &any, &extra, ret, err);
}

/* The order that is left where all sessions are one user's, and it is of the user; else none. */
static struct list_sort session_list_reduce_order(const struct store_query *q)
{
    const char *order = q->access_key || q->user_id ? q->order : NULL;
    bool is_descending = order && order[0] == '-';

    if (is_descending)
        order++;
    if (!order || (strcmp(order, "user_email") != 0 && strcmp(order, "full_name") != 0))
        return (struct list_sort){ .column = NULL };
    return (struct list_sort){ "s.seq", is_descending };
}

int store_list_sessions(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err)
{
    uint32_t all = (1u << SESSION_STATUS_COUNT) - 1;
    bool is_default = session_list_is_default(q->statuses);
    const struct list_table *table = is_default || q->array_id || session_list_names_one(q->filter)
                                         ? &session_list_by_other
                                         : &by_user;
    AQ_CLEANUP(strbuf_donep) struct strbuf where = STRBUF_INIT, sql = STRBUF_INIT;
    struct list_extra extra = { .sort = session_list_reduce_order(q) };
    struct store_query any = *q;
    int64_t total = 0;

    if (session_list_all_live(q->statuses) && !q->id_count && !q->agent && !q->array_id)
        return session_list_run_live(tx, q, ret, err);
    if ((q->statuses & all) == all)
        any.statuses = 0;
    if (extra.sort.column)
        any.order = NULL;
    if (is_default)
        session_list_write_default(&where);
    session_list_build(&sql, table, q, where.data, &extra);
    if ((q->statuses & all) == session_list_ended(all)) {
        int r = session_list_count_ended(tx, table, q, &total, err);

        if (r < 0)
            return r;
        extra.total = &total;
    }
    return session_list_run(tx, table, &any, &extra, ret, err);
}
