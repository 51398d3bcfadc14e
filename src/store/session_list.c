/* SPDX-License-Identifier: Apache-2.0 */
/* session_list.c - lists of sessions and kernels, dead ones included */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/list_query.h"

/* An error that nobody has looked at is listed by default for so long. */
#define ERROR_LISTED_USEC (24 * 3600 * USEC_PER_SEC)

/* ---- kernels ---- */

static const struct filter_field kernel_fields[] = {
    { "id", "k.id", FILTER_UUID },
    { "session_id", "s.id", FILTER_UUID },
    { "session_name", "s.name", FILTER_STRING },
    { "status", "k.status", FILTER_UPPER },
    { "status_info", "k.reason", FILTER_STRING },
    { "cluster_role", "k.role", FILTER_STRING },
    { "cluster_idx", "k.role_index", FILTER_INT },
    { "agent", "k.agent_id", FILTER_STRING },
    { "agent_id", "k.agent_id", FILTER_STRING },
    { "created_at", "s.created_at", FILTER_TIME },
    { "status_changed", "k.status_changed_at", FILTER_TIME },
    { "terminated_at", "k.terminated_at", FILTER_TIME },
};

static const char *session_list_kernel_status(int status)
{
    return kernel_status_name((enum kernel_status)status);
}

static int session_list_read_kernel(struct store_tx *tx, struct row *row, void *ret,
                                    struct aq_error *err)
{
    struct kernel_row *k = ret;

    (void)tx;
    (void)err;
    kernel_read_row(row, &k->kernel);
    k->session_id = sql_get_uuid(row->q);
    k->reason = row_text(row);
    k->terminated_usec = sql_get_int(row->q);
    k->last_stat = row_text(row);
    return 0;
}

static const struct list_table kernel_table = {
    .what = "kernels",
    .columns = KERNEL_COLUMNS ", s.id, k.reason, k.terminated_at, k.last_stat",
    .from = "kernels k JOIN sessions s ON s.seq = k.session_seq",
    .order = "k.session_seq, k.rank",
    .tie = "k.session_seq, k.rank",
    .fields = kernel_fields,
    .field_count = AQ_COUNT(kernel_fields),
    .status = "k.status",
    .status_name = session_list_kernel_status,
    .status_count = KERNEL_STATUS_COUNT,
    .domain = "s.domain",
    .project = "s.project_id",
    .user = "s.user_id",
    .access_key = "s.access_key",
    .resource_group = "s.resource_group",
    .id = "s.id",
    .row_size = sizeof(struct kernel_row),
    .read = session_list_read_kernel,
};

int store_list_kernels(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                       struct aq_error *err)
{
    return list_run(tx, &kernel_table, q, NULL, ret, err);
}

/* ---- sessions ---- */

#define USER_EMAIL "COALESCE(u.purged_email, u.email)"
#define PROJECT_NAME "COALESCE(p.purged_name, p.name)"

static const struct filter_field session_fields[] = {
    { "id", "s.id", FILTER_UUID },
    { "session_id", "s.id", FILTER_UUID },
    { "name", "s.name", FILTER_STRING },
    { "session_name", "s.name", FILTER_STRING },
    { "type", "s.type", FILTER_LOWER },
    { "session_type", "s.type", FILTER_LOWER },
    { "status", "s.status", FILTER_UPPER },
    { "status_info", "s.reason", FILTER_STRING },
    { "result", "s.result", FILTER_UPPER },
    { "priority", "s.priority", FILTER_INT },
    { "image", "s.image", FILTER_STRING },
    { "tag", "s.tag", FILTER_STRING },
    { "cluster_mode", "s.cluster_mode", FILTER_STRING },
    { "cluster_size", "s.kernel_count", FILTER_INT },
    { "domain_name", "s.domain", FILTER_STRING },
    { "group_id", "s.project_id", FILTER_UUID },
    { "group_name", PROJECT_NAME, FILTER_STRING },
    { "user_id", "s.user_id", FILTER_UUID },
    { "user_email", USER_EMAIL, FILTER_STRING },
    { "full_name", "u.full_name", FILTER_STRING },
    { "access_key", "s.access_key", FILTER_STRING },
    { "scaling_group", "s.resource_group", FILTER_STRING },
    { "created_at", "s.created_at", FILTER_TIME },
    { "starts_at", "s.starts_at", FILTER_TIME },
    { "status_changed", "s.status_changed_at", FILTER_TIME },
    { "terminated_at", "s.terminated_at", FILTER_TIME },
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
    return 0;
}

#define LIST_COLUMNS(spec, status_data, user_email, project_name) \
    SESSION_COLUMNS_WITH(spec, status_data)                       \
    ", " user_email ", " project_name ", s.terminated_at, s.dismissed_at"

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

/* 'user_' is how a user is compared: by an expression where the index by user
 * must not be taken, because another one gives far fewer rows.
 */
/* clang-format off */
#define SESSION_TABLE(user_)                                                                       \
    {                                                                                              \
        .what = "sessions",                                                                        \
        .columns = LIST_COLUMNS("s.spec", "s.status_data", USER_EMAIL, PROJECT_NAME),              \
        .from = "sessions s LEFT JOIN users u ON u.id = s.user_id"                                 \
                " LEFT JOIN projects p ON p.id = s.project_id",                                    \
        .bare_from = "sessions s",                                                                 \
        .order = "s.status_changed_at DESC, s.seq DESC", .tie = "s.seq",                           \
        .fields = session_fields, .field_count = AQ_COUNT(session_fields), .status = "s.status",   \
        .status_name = session_list_status, .status_count = SESSION_STATUS_COUNT,                  \
        .domain = "s.domain", .project = "s.project_id", .user = (user_),                            \
        .access_key = "s.access_key", .resource_group = "s.resource_group", .name = "s.name",      \
        .id = "s.id", .row_size = sizeof(struct session_row), .read = session_list_read_row,                \
    }
/* clang-format on */

static const struct list_table by_user = SESSION_TABLE("s.user_id");
static const struct list_table by_other = SESSION_TABLE("COALESCE(s.user_id, '')");

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

/* ---- what is read of all sessions of a page at once ---- */

/* The sessions by row, to be matched with rows that come in this order. */
struct session_list_cursor {
    struct session_row **sessions;
    size_t count, at;
};

static int session_list_compare(const void *a, const void *b)
{
    const struct session_row *const *x = a, *const *y = b;

    return ((*x)->session.row > (*y)->session.row) - ((*x)->session.row < (*y)->session.row);
}

static int session_list_sort(struct store_page *page, struct session_list_cursor *ret,
                             struct aq_error *err)
{
    *ret = (struct session_list_cursor){ .count = page->count };
    ret->sessions = arena_array(&page->arena, page->count, sizeof(*ret->sessions));
    if (!ret->sessions)
        return aq_fail_oom(err);
    for (size_t i = 0; i < page->count; i++)
        ret->sessions[i] = &page->sessions[i];
    qsort(ret->sessions, page->count, sizeof(struct session_row *), session_list_compare);
    return 0;
}

/* The session of this row, which is one of them and not before that of the last call. */
static struct session_row *session_list_find(struct session_list_cursor *cursor, int64_t row)
{
    while (cursor->at + 1 < cursor->count && cursor->sessions[cursor->at]->session.row < row)
        cursor->at++;
    return cursor->sessions[cursor->at];
}

/* Rows this near to each other are read in one go, with what is between them. */
#define RUN_GAP 8

/* The next of the sessions, as 'q' wants them: from the first row to the last of those that are
 * near to each other. False after the last session.
 */
static bool session_list_next_run(const struct session_list_cursor *cursor, size_t *at,
                                  struct sql_stmt *q)
{
    struct session_row *const *sessions = cursor->sessions;
    size_t first = *at, end = first + 1;

    if (first == cursor->count)
        return false;
    while (end < cursor->count
           && sessions[end]->session.row - sessions[end - 1]->session.row <= RUN_GAP)
        end++;
    sql_put_int(q, sessions[first]->session.row);
    sql_put_int(q, sessions[end - 1]->session.row);
    *at = end;
    return true;
}

/* Run 'sql' for all of them, from '?' to '?', by session: 'read' takes the rows of theirs from
 * the second column on.
 */
static int session_list_join(struct store_tx *tx, struct session_list_cursor *cursor,
                             const char *sql,
                             int (*read)(void *data, struct session_row *s, struct sql_stmt *q,
                                         struct aq_error *err),
                             void *data, struct aq_error *err)
{
    struct sql_stmt *q = NULL;
    size_t at = 0;
    int r = sql_prepare(tx->db, sql, &q, err);

    while (r == 0 && session_list_next_run(cursor, &at, q)) {
        while ((r = sql_step(q, err)) > 0) {
            int64_t row = sql_get_int(q);
            struct session_row *s = session_list_find(cursor, row);

            if (s->session.row == row && (r = read(data, s, q, err)) < 0)
                break;
        }
        sql_end(q);
    }
    return r;
}

/* clang-format off */
#define SELECT_KERNELS(columns)                                                                    \
    "SELECT k.session_seq, " columns " FROM kernels k"                                             \
    " WHERE k.session_seq BETWEEN ? AND ? ORDER BY k.session_seq, k.rank"
static const char select_kernels[] = SELECT_KERNELS(
    KERNEL_COLUMNS ", NULL, k.reason, k.terminated_at, k.last_stat");
static const char select_short_kernels[] = SELECT_KERNELS(
    "k.rank, k.status, k.agent_id, k.requested, k.exit_code");
/* clang-format on */

/* Room for the kernels of all; returns for how many. */
static size_t session_list_make_room(struct store_page *page, struct kernel_row **ret)
{
    size_t room = 0;

    for (size_t i = 0; i < page->count; i++)
        room += page->sessions[i].kernel_count;
    *ret = arena_array(&page->arena, AQ_MAX(room, 1), sizeof(**ret));
    for (size_t i = 0; i < page->count; i++) {
        page->sessions[i].kernels = *ret;
        page->sessions[i].kernel_count = 0;
    }
    return room;
}

struct session_list_kernels {
    struct store_tx *tx;
    bool is_short;
    struct row row;
    struct kernel_row *items;
    size_t room, used;
};

static void session_list_read_short_kernel(struct row *row, struct kernel_row *ret)
{
    struct kernel *kernel = &ret->kernel;

    *ret = (struct kernel_row){ 0 };
    kernel->rank = (uint32_t)sql_get_int(row->q);
    ROW_PARSE(row, kernel_status_parse, &kernel->status);
    kernel->agent_id = row_text(row);
    row_slots(row, &kernel->requested);
    kernel->has_exit = !sql_get_is_null(row->q);
    kernel->exit_code = (int)sql_get_int(row->q);
}

static int session_list_take_kernel(void *data, struct session_row *s, struct sql_stmt *q,
                                    struct aq_error *err)
{
    struct session_list_kernels *kernels = data;
    struct kernel_row *kernel = &kernels->items[kernels->used];

    if (kernels->used == kernels->room)
        return 0;
    if (s->kernel_count++ == 0)
        s->kernels = kernel;
    kernels->row.q = q;
    if (kernels->is_short)
        session_list_read_short_kernel(&kernels->row, kernel);
    else
        (void)session_list_read_kernel(kernels->tx, &kernels->row, kernel, err);
    kernel->session_id = s->session.id;
    kernels->used++;
    return 0;
}

/* Give each session its kernels, by rank. */
static int session_list_attach_kernels(struct store_tx *tx, enum store_session_detail detail,
                                       struct session_list_cursor cursor, struct store_page *page,
                                       struct aq_error *err)
{
    struct session_list_kernels kernels = { .tx = tx, .row.arena = &page->arena };
    int r;

    kernels.room = session_list_make_room(page, &kernels.items);
    if (!kernels.items)
        return aq_fail_oom(err);
    kernels.is_short = detail != STORE_SESSION_WHOLE;
    r = session_list_join(tx, &cursor, kernels.is_short ? select_short_kernels : select_kernels,
                          session_list_take_kernel, &kernels, err);
    return r < 0 ? r : row_check(&kernels.row, "kernels", err);
}

static int session_list_take_scheduled(void *data, struct session_row *s, struct sql_stmt *q,
                                       struct aq_error *err)
{
    (void)data;
    (void)err;
    s->scheduled_usec = sql_get_int(q);
    return 0;
}

/* When each was given its place, the last time: its own rows of the history. */
static int session_list_attach_scheduled(struct store_tx *tx, struct session_list_cursor cursor,
                                         struct aq_error *err)
{
    static const char sql[] = "SELECT session_seq, at FROM session_history"
                              " WHERE session_seq BETWEEN ? AND ? AND rank = -1"
                              " AND status = 'SCHEDULED' ORDER BY session_seq, version";

    return session_list_join(tx, &cursor, sql, session_list_take_scheduled, NULL, err);
}

static int session_list_attach(struct store_tx *tx, const struct store_query *q,
                               struct store_page *page, struct aq_error *err)
{
    struct session_list_cursor cursor;
    int r;

    if (!q->with_kernels && !q->with_scheduled)
        return 0;
    r = session_list_sort(page, &cursor, err);
    if (r == 0 && q->with_kernels)
        r = session_list_attach_kernels(tx, q->detail, cursor, page, err);
    return r == 0 && q->with_scheduled ? session_list_attach_scheduled(tx, cursor, err) : r;
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

static int session_list_run(struct store_tx *tx, const struct list_table *table,
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
        r = list_fail_page(q, session_list_attach(tx, q, page, err), err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}

int store_list_sessions(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err)
{
    /* The few that live are found by an index of theirs and then sorted; "+ 0"
     * keeps the planner from walking the many that ended in that order.
     */
    static const struct list_extra live = { .where = "s.terminated_at IS NULL",
                                            .order = "s.status_changed_at + 0 DESC, s.seq DESC",
                                            .compare = session_list_compare_changed,
                                            .most = "SELECT COUNT(*) FROM sessions"
                                                    " WHERE terminated_at IS NULL" };
    static const char own[] = "s.user_id = (SELECT k.user_id FROM keypairs k"
                              " WHERE k.access_key = ?)";
    AQ_CLEANUP(strbuf_donep) struct strbuf where = STRBUF_INIT;
    struct list_extra extra = { .params = { q->access_key }, .param_count = q->access_key ? 1 : 0 };
    struct store_query any = *q;

    if (session_list_any_live(q->statuses))
        any.statuses = 0;
    if (session_list_all_live(q->statuses))
        return session_list_run(tx, &by_other, &any, &live, ret, err);
    if (session_list_is_default(q->statuses))
        strbuf_addf(&where,
                    "(s.status <> 'ERROR' OR (s.dismissed_at IS NULL AND s.terminated_at > %lld))",
                    (long long)(clock_realtime_usec() - ERROR_LISTED_USEC));
    if (q->access_key)
        strbuf_addf(&where, "%s%s", where.len ? " AND " : "", own);
    if (!strbuf_ok(&where))
        return aq_fail_oom(err);
    extra.where = where.len ? where.data : NULL;
    return session_list_run(tx, &by_user, q, &extra, ret, err);
}

/* ---- what a person typed ---- */

#define FIND_MAX 11

/* From 'text' up to what is greater than all that begin with it: names and ids
 * are ASCII below 0x7f. Ids are lower case.
 */
static void session_list_set_range(const char *text, bool is_id, char *from, char *to)
{
    (void)snprintf(from, SESSION_NAME_MAX + 1, "%s", text);
    for (char *at = from; is_id && *at; at++)
        if (*at >= 'A' && *at <= 'F')
            *at = (char)(*at | 0x20);
    (void)snprintf(to, SESSION_NAME_MAX + 2, "%s\x7f", from);
}

static bool session_list_is_id_prefix(const char *text)
{
    size_t len = strlen(text);

    return len >= SESSION_ID_PREFIX_MIN && strspn(text, "0123456789abcdefABCDEF-") == len;
}

int store_find_sessions(struct store_tx *tx, const struct store_query *q, const char *text,
                        struct store_page **ret, struct aq_error *err)
{
    static const struct {
        const char *where;
        bool is_id, is_exact;
    } ways[] = {
        { "s.id = ?", true, true },
        { "s.name = ?", false, true },
        { "s.id >= ? AND s.id < ?", true, false },
        { "s.name >= ? AND s.name < ?", false, false },
        { "s.seq IN (SELECT k.session_seq FROM kernels k WHERE k.id >= ? AND k.id < ?)", true,
          false },
    };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    char from[SESSION_NAME_MAX + 1], to[SESSION_NAME_MAX + 2];
    struct list_extra extra = { .params = { from, to }, .order = "s.seq + 0" };
    struct store_query narrowed = *q;

    narrowed.filter = narrowed.order = narrowed.name = NULL;
    narrowed.limit = FIND_MAX;
    narrowed.offset = 0;
    if (strlen(text) > SESSION_NAME_MAX)
        text = ""; /* nothing is called so */
    for (size_t i = 0; i < AQ_COUNT(ways); i++) {
        int r;

        if (!ways[i].is_exact && (!text[0] || (ways[i].is_id && !session_list_is_id_prefix(text))))
            continue;
        session_list_set_range(text, ways[i].is_id, from, to);
        extra.where = ways[i].where;
        extra.param_count = ways[i].is_exact ? 1 : 2;
        store_page_free(AQ_TAKE(page));
        r = session_list_run(tx, &by_other, &narrowed, &extra, &page, err);
        if (r < 0)
            return r;
        if (page->count)
            break;
    }
    *ret = AQ_TAKE(page);
    return 0;
}
