/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of all sessions of a page at once. */
#include <stdlib.h>

#include "store/dependency.h"
#include "store/session_list.h"

/* The sessions by row, to be matched with rows that come in this order. */
struct session_attach_cursor {
    struct session_row **sessions;
    size_t count, at;
};

static int session_attach_compare(const void *a, const void *b)
{
    const struct session_row *const *x = a, *const *y = b;

    return ((*x)->session.row > (*y)->session.row) - ((*x)->session.row < (*y)->session.row);
}

static void session_attach_sort(struct store_page *page, struct session_attach_cursor *ret)
{
    *ret = (struct session_attach_cursor){ .count = page->count };
    ret->sessions = arena_array(&page->arena, page->count, sizeof(*ret->sessions));
    for (size_t i = 0; i < page->count; i++)
        ret->sessions[i] = &page->sessions[i];
    qsort(ret->sessions, page->count, sizeof(struct session_row *), session_attach_compare);
}

/* The session of this row, which is one of them and not before that of the last call. */
static struct session_row *session_attach_find(struct session_attach_cursor *cursor, int64_t row)
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
static bool session_attach_next_run(const struct session_attach_cursor *cursor, size_t *at,
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
static int session_attach_join(struct store_tx *tx, struct session_attach_cursor *cursor,
                               const char *sql,
                               int (*read)(void *data, struct session_row *s, struct sql_stmt *q,
                                           struct aq_error *err),
                               void *data, struct aq_error *err)
{
    struct sql_stmt *q = NULL;
    size_t at = 0;
    int r = sql_prepare(tx->db, sql, &q, err);

    while (r == 0 && session_attach_next_run(cursor, &at, q)) {
        while ((r = sql_step(q, err)) > 0) {
            int64_t row = sql_get_int(q);
            struct session_row *s = session_attach_find(cursor, row);

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
    KERNEL_COLUMNS ", k.reason, k.terminated_at, k.last_stat");
static const char select_short_kernels[] = SELECT_KERNELS(
    "k.rank, k.status, k.agent_id, k.requested, k.exit_code");
/* clang-format on */

struct session_attach_kernels {
    const struct store_query *query;
    struct store_page *page;
    bool is_short;
    struct row row;
    struct kernel_row *items;
    size_t room, used;
};

/* Room for the kernels of all sessions. -EMSGSIZE */
static int session_attach_make_room(struct session_attach_kernels *kernels, struct aq_error *err)
{
    struct store_page *page = kernels->page;

    for (size_t i = 0; i < page->count; i++)
        kernels->room += page->sessions[i].kernel_count;
    if (!arena_has_room(&page->arena, kernels->room, sizeof(*kernels->items)))
        return list_fail_page(kernels->query, err);
    kernels->items = arena_array(&page->arena, AQ_MAX(kernels->room, 1), sizeof(*kernels->items));
    for (size_t i = 0; i < page->count; i++) {
        page->sessions[i].kernels = kernels->items;
        page->sessions[i].kernel_count = 0;
    }
    return 0;
}

static void session_attach_read_kernel(struct row *row, struct kernel_row *ret)
{
    *ret = (struct kernel_row){ 0 };
    kernel_read_row(row, &ret->kernel);
    ret->reason = row_text(row);
    ret->terminated_usec = sql_get_int(row->q);
    ret->last_stat = row_text(row);
}

static void session_attach_read_short_kernel(struct row *row, struct kernel_row *ret)
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

static int session_attach_take_kernel(void *data, struct session_row *s, struct sql_stmt *q,
                                      struct aq_error *err)
{
    struct session_attach_kernels *kernels = data;
    struct kernel_row *kernel = &kernels->items[kernels->used];

    if (kernels->used == kernels->room)
        return 0;
    if (s->kernel_count++ == 0)
        s->kernels = kernel;
    kernels->row.q = q;
    if (kernels->is_short)
        session_attach_read_short_kernel(&kernels->row, kernel);
    else
        session_attach_read_kernel(&kernels->row, kernel);
    kernel->session_id = s->session.id;
    kernels->used++;
    return list_check_page(kernels->query, kernels->page, err);
}

/* Give each session its kernels, by rank. */
static int session_attach_all_kernels(struct store_tx *tx, const struct store_query *q,
                                      struct session_attach_cursor cursor, struct store_page *page,
                                      struct aq_error *err)
{
    struct session_attach_kernels kernels = {
        .query = q,
        .page = page,
        .is_short = q->detail != STORE_SESSION_WHOLE,
        .row.arena = &page->arena,
    };
    int r = session_attach_make_room(&kernels, err);

    if (r < 0)
        return r;
    r = session_attach_join(tx, &cursor, kernels.is_short ? select_short_kernels : select_kernels,
                            session_attach_take_kernel, &kernels, err);
    return r < 0 ? r : row_check(&kernels.row, "kernels", err);
}

static int session_attach_take_scheduled(void *data, struct session_row *s, struct sql_stmt *q,
                                         struct aq_error *err)
{
    (void)data;
    (void)err;
    s->scheduled_usec = sql_get_int(q);
    return 0;
}

/* When each was given its place, the last time: its own rows of the history. */
static int session_attach_all_scheduled(struct store_tx *tx, struct session_attach_cursor cursor,
                                        struct aq_error *err)
{
    static const char sql[] = "SELECT session_seq, at FROM session_history"
                              " WHERE session_seq BETWEEN ? AND ? AND rank = -1"
                              " AND status = 'SCHEDULED' ORDER BY session_seq, version";

    return session_attach_join(tx, &cursor, sql, session_attach_take_scheduled, NULL, err);
}

static int session_attach_take_run(void *data, struct session_row *s, struct sql_stmt *q,
                                   struct aq_error *err)
{
    struct row *row = data;
    struct run_row run = { .number = (uint32_t)sql_get_int(q) };

    (void)err;
    row->q = q;
    run.started_usec = sql_get_int(q);
    run.ended_usec = sql_get_int(q);
    run.reason = row_text(row);
    run.has_exit = !sql_get_is_null(q);
    run.exit_code = (int)sql_get_int(q);
    run.rank = (uint32_t)sql_get_int(q);
    run.agent_id = row_text(row);
    run.kernel_attempt = (uint32_t)sql_get_int(q);
    run.text = row_text(row);
    run.usage = row_text(row);
    arena_append(row->arena, &s->runs, &s->run_count, &run, sizeof(run));
    return 0;
}

static int session_attach_all_runs(struct store_tx *tx, struct session_attach_cursor cursor,
                                   struct store_page *page, struct aq_error *err)
{
    static const char sql[] = "SELECT session_seq, number, started_at, ended_at, reason,"
                              " exit_code, rank, agent_id, kernel_attempt, text, used"
                              " FROM session_runs WHERE session_seq BETWEEN ? AND ?"
                              " ORDER BY session_seq, number";
    struct row row = { .arena = &page->arena };

    return session_attach_join(tx, &cursor, sql, session_attach_take_run, &row, err);
}

struct session_attach_dependencies {
    struct store_tx *tx;
    struct row row;
};

static int session_attach_take_dependency(void *data, struct session_row *s, struct sql_stmt *q,
                                          struct aq_error *err)
{
    struct session_attach_dependencies *all = data;
    struct dependency_row found = { .dependency = { .id = sql_get_uuid(q) } };
    struct session_dependency *d = &found.dependency;
    int r;

    all->row.q = q;
    d->is_array = !sql_get_is_null(q);
    d->element = sql_get_int(q);
    ROW_PARSE(&all->row, dependency_condition_parse, &d->condition);
    found.name = row_text(&all->row);
    found.number = sql_get_int(q);
    r = store_read_dependency(all->tx, d, err);
    arena_append(all->row.arena, &s->dependencies, &s->dependency_count, &found, sizeof(found));
    return r;
}

static int session_attach_all_dependencies(struct store_tx *tx, struct session_attach_cursor cursor,
                                           struct store_page *page, struct aq_error *err)
{
    static const char sql[] =
        "SELECT d.session_seq, d.depends_on, NULL AS element, d.condition, o.name, o.seq"
        " FROM session_dependencies d JOIN sessions o ON o.id = d.depends_on"
        " WHERE d.session_seq BETWEEN ?1 AND ?2"
        " UNION ALL SELECT d.session_seq, d.array_id, d.element, d.condition, a.name, a.seq"
        " FROM array_dependencies d JOIN arrays a ON a.id = d.array_id"
        " WHERE d.session_seq BETWEEN ?1 AND ?2 ORDER BY 1, 5, 3";
    struct session_attach_dependencies all = { tx, { .arena = &page->arena } };

    return session_attach_join(tx, &cursor, sql, session_attach_take_dependency, &all, err);
}

struct session_attach_outputs {
    const struct store_query *query;
    struct store_page *page;
    struct row row;
};

static int session_attach_take_outputs(void *data, struct session_row *s, struct sql_stmt *q,
                                       struct aq_error *err)
{
    struct session_attach_outputs *outputs = data;

    outputs->row.q = q;
    s->outputs = row_text(&outputs->row);
    return list_check_page(outputs->query, outputs->page, err);
}

/* The values that main kernels have handed on. */
static int session_attach_all_outputs(struct store_tx *tx, const struct store_query *q,
                                      struct session_attach_cursor cursor, struct store_page *page,
                                      struct aq_error *err)
{
    static const char sql[] = "SELECT session_seq, outputs FROM kernels"
                              " WHERE session_seq BETWEEN ? AND ? AND rank = 0"
                              " AND outputs IS NOT NULL ORDER BY session_seq";
    struct session_attach_outputs outputs = { .query = q, .page = page, .row.arena = &page->arena };

    return session_attach_join(tx, &cursor, sql, session_attach_take_outputs, &outputs, err);
}

int session_attach(struct store_tx *tx, const struct store_query *q, struct store_page *page,
                   struct aq_error *err)
{
    struct session_attach_cursor cursor;
    int r = 0;

    if (!q->with_kernels && !q->with_scheduled && !q->with_runs && !q->with_dependencies
        && !q->with_outputs)
        return 0;
    session_attach_sort(page, &cursor);
    if (q->with_kernels)
        r = session_attach_all_kernels(tx, q, cursor, page, err);
    if (r == 0 && q->with_scheduled)
        r = session_attach_all_scheduled(tx, cursor, err);
    if (r == 0 && q->with_runs)
        r = session_attach_all_runs(tx, cursor, page, err);
    if (r == 0 && q->with_dependencies)
        r = session_attach_all_dependencies(tx, cursor, page, err);
    return r == 0 && q->with_outputs ? session_attach_all_outputs(tx, q, cursor, page, err) : r;
}
