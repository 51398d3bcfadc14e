/* SPDX-License-Identifier: Apache-2.0 */
/* load_session.c - sessions that live, as events */
#include <errno.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/dependency.h"
#include "store/load.h"

/* ---- rows of kernels and dependencies, beside those of sessions ---- */

/* All that live are found by an index of theirs, those of a page by their rows. "+ 0" keeps the
 * planners from other ways: from walking all that ever were for the order of their numbers, and all
 * that live for a page.
 */
int load_session_prepare(const struct loader *l, const struct load_query *query,
                         struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    strbuf_addf(&text, "SELECT %s FROM %ssessions s%s WHERE %s%s ORDER BY %s", query->columns,
                l->page ? "json_each(?) p CROSS JOIN " : "", query->joined,
                l->page ? "s.terminated_at + 0 IS NULL AND s.seq = CAST(p.key AS BIGINT)"
                        : "s.terminated_at IS NULL",
                query->where, query->order);
    r = sql_prepare_scan(l->tx->db, text.data, ret, err);
    if (r == 0 && l->page)
        sql_put_text(*ret, l->page);
    return r;
}

static int load_session_next(struct load_scan *scan, struct aq_error *err)
{
    int r = load_scan_step(scan, err);

    scan->seq = r > 0 ? sql_get_int(scan->q) : INT64_MAX;
    return AQ_MIN(r, 0);
}

static int load_session_begin(struct loader *l, struct load_scan *scan,
                              const struct load_query *query, struct aq_error *err)
{
    int r = load_session_prepare(l, query, &scan->q, err);

    if (r < 0)
        return r;
    scan->row = (struct row){ .q = scan->q };
    return load_session_next(scan, err);
}

static int load_begin_sessions(struct loader *l, struct aq_error *err)
{
    static const struct load_query kernels = { "k.session_seq, " KERNEL_COLUMNS,
                                               " CROSS JOIN kernels k",
                                               " AND k.session_seq = s.seq",
                                               "k.session_seq + 0, k.rank" };
    static const struct load_query dependencies = {
        "d.session_seq, d.depends_on, d.condition, o.running_at, o.terminated_at, o.result",
        " CROSS JOIN session_dependencies d JOIN sessions o ON o.id = d.depends_on",
        " AND d.session_seq = s.seq", "d.session_seq + 0, d.depends_on"
    };
    static const struct load_query array_dependencies = {
        "d.session_seq, d.array_id, d.element, d.condition", " CROSS JOIN array_dependencies d",
        " AND d.session_seq = s.seq", "d.session_seq + 0, d.array_id, d.element"
    };
    int r = load_session_begin(l, &l->kernels, &kernels, err);

    if (r == 0)
        r = load_session_begin(l, &l->dependencies, &dependencies, err);
    return r < 0 ? r : load_session_begin(l, &l->array_dependencies, &array_dependencies, err);
}

static int load_read_array_dependencies(struct loader *l, struct session *s, size_t *cap,
                                        struct aq_error *err)
{
    struct load_scan *scan = &l->array_dependencies;
    int r = 0;

    while (r == 0 && scan->seq <= s->row) {
        struct session_dependency d = { .id = sql_get_uuid(scan->q), .is_array = true };

        d.element = sql_get_int(scan->q);
        ROW_PARSE(&scan->row, dependency_condition_parse, &d.condition);
        if (dependency_is_same(&d, &l->last) && d.condition == l->last.condition)
            d = l->last;
        else if ((r = store_read_dependency(l->tx, &d, err)) < 0)
            return r;
        l->last = d;
        (void)vec_grow(&s->dependencies, cap, s->dependency_count + 1, sizeof(d));
        s->dependencies[s->dependency_count++] = d;
        scan->row.is_damaged |= scan->seq != s->row;
        r = load_session_next(scan, err);
    }
    return r < 0 ? r : row_check(&scan->row, "array_dependencies", err);
}

static int load_read_dependencies(struct loader *l, struct session *s, struct aq_error *err)
{
    struct load_scan *scan = &l->dependencies;
    size_t cap = 0;
    int r = 0;

    while (r == 0 && scan->seq <= s->row) {
        struct session_dependency *d;

        (void)vec_grow(&s->dependencies, &cap, s->dependency_count + 1, sizeof(*d));
        d = &s->dependencies[s->dependency_count++];
        *d = (struct session_dependency){ .id = sql_get_uuid(scan->q) };
        ROW_PARSE(&scan->row, dependency_condition_parse, &d->condition);
        d->has_run = sql_get_int(scan->q) != 0;
        d->ended = sql_get_int(scan->q) != 0;
        ROW_PARSE(&scan->row, session_result_parse, &d->result);
        scan->row.is_damaged |= scan->seq != s->row;
        r = load_session_next(scan, err);
    }
    if (r == 0)
        r = row_check(&scan->row, "session_dependencies", err);
    return r < 0 ? r : load_read_array_dependencies(l, s, &cap, err);
}

static int load_read_kernels(struct loader *l, struct session *s, size_t count,
                             struct aq_error *err)
{
    struct load_scan *scan = &l->kernels;
    int r = 0;

    s->kernels = aq_alloc_array(AQ_MAX(count, 1), sizeof(*s->kernels));
    while (r == 0 && scan->seq == s->row && s->kernel_count < count) {
        kernel_read_row(&scan->row, &s->kernels[s->kernel_count++]);
        r = load_session_next(scan, err);
    }
    scan->row.is_damaged |= scan->seq <= s->row || s->kernel_count != count;
    return r < 0 ? r : row_check(&scan->row, "kernels", err);
}

static int load_read_session(struct loader *l, struct row *row, struct event *e,
                             struct aq_error *err)
{
    size_t kernels;
    int r;

    session_read_row(row, &e->session, &kernels);
    row->is_damaged |= !e->session.spec;
    r = load_read_kernels(l, &e->session, kernels, err);
    return r < 0 ? r : load_read_dependencies(l, &e->session, err);
}

static const struct load_query load_sessions = { SESSION_COLUMNS, "", "", "s.seq + 0" };

const struct load_table load_session_table = { "sessions", .kind = EVENT_SESSION_CREATED,
                                               .of_sessions = &load_sessions,
                                               .read = load_read_session,
                                               .begin = load_begin_sessions };

/* ---- in parts ---- */

int store_load_sessions(struct store_tx *tx, const int64_t *rows, size_t count,
                        store_visit_fn visit, void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT;
    struct loader l = { .tx = tx, .visit = visit, .data = data };
    int r;

    strbuf_addc(&page, '{');
    for (size_t i = 0; i < count; i++)
        strbuf_addf(&page, "%s\"%lld\":0", i ? "," : "", (long long)rows[i]);
    strbuf_addc(&page, '}');
    l.page = page.data;
    r = load_table(&l, &load_session_table, err);
    load_end(&l);
    return r;
}

int store_list_living(struct store_tx *tx, int64_t **ret, size_t *ret_count, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) int64_t *rows = NULL;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    size_t count = 0, cap = 0;
    int r = sql_prepare_scan(
        tx->db, "SELECT seq FROM sessions WHERE terminated_at IS NULL ORDER BY seq + 0", &q, err);

    if (r < 0)
        return r;
    while ((r = sql_step(q, err)) > 0) {
        (void)vec_grow(&rows, &cap, count + 1, sizeof(*rows));
        rows[count++] = sql_get_int(q);
    }
    if (r < 0)
        return r;
    *ret = AQ_TAKE(rows);
    *ret_count = count;
    return 0;
}
