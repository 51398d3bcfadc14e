/* SPDX-License-Identifier: Apache-2.0 */
/* session_event.c - the log of what clients are told of sessions */
#include "base/memory.h"
#include "store/session_event.h"

#include "model/status.h"
#include "store/transaction.h"

/* ---- writing ---- */

/* As memory will have it after the event: the exit status is that of the main kernel. */
#define SESSION_EVENT_INSERT                                                              \
    "INSERT INTO session_events (number, at, name, session_seq, rank, reason, exit_code)" \
    " SELECT ?, ?, ?, s.seq, -1, s.reason, (SELECT k.exit_code FROM kernels k"            \
    " WHERE k.session_seq = s.seq AND k.rank = 0) FROM sessions s WHERE s.id = ?"

#define SESSION_EVENT_INSERT_WARNING                                           \
    "INSERT INTO session_events (number, at, name, reason, session_seq, rank)" \
    " SELECT ?, ?, ?, ?, s.seq, -1 FROM sessions s WHERE s.id = ?"

#define KERNEL_EVENT_INSERT                                                               \
    "INSERT INTO session_events (number, at, name, reason, session_seq, rank, exit_code)" \
    " SELECT ?, ?, ?, ?, session_seq, rank, exit_code FROM kernels WHERE id = ?"

/* Number, time and name come first. */
static int session_event_begin(struct store_tx *tx, const char *text, const struct event *e,
                               const char *name, struct sql_stmt **ret, struct aq_error *err)
{
    int r = sql_prepare(tx->db, text, ret, err);

    if (r < 0)
        return r;
    sql_put_int(*ret, (*tx->next_event)++);
    sql_put_int(*ret, e->at_usec);
    sql_put_text(*ret, name);
    return 0;
}

/* 'name' NULL: nothing is told. */
static int session_event_add(struct store_tx *tx, const char *text, const struct event *e,
                             const char *name, const struct uuid *id, struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    if (!name)
        return 0;
    if ((r = session_event_begin(tx, text, e, name, &q, err)) < 0)
        return r;
    sql_put_uuid(q, id, buf);
    return sql_run(q, err);
}

/* The same with the change's own reason. */
static int session_event_add_reason(struct store_tx *tx, const char *text, const struct event *e,
                                    const char *name, const char *reason, const struct uuid *id,
                                    struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    if (!name)
        return 0;
    if ((r = session_event_begin(tx, text, e, name, &q, err)) < 0)
        return r;
    sql_put_text(q, reason);
    sql_put_uuid(q, id, buf);
    return sql_run(q, err);
}

static int session_event_add_status(struct store_tx *tx, const struct event *e,
                                    struct aq_error *err)
{
    const struct event_session_status *c = &e->session_status;
    int r = session_event_add(tx, SESSION_EVENT_INSERT, e, result_event_name(c->result), &c->id,
                              err);

    return r < 0 ? r
                 : session_event_add(tx, SESSION_EVENT_INSERT, e, session_event_name(c->to), &c->id,
                                     err);
}

int session_events_write(struct store_tx *tx, struct event *e, struct aq_error *err)
{
    e->number = *tx->next_event;
    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        return session_event_add(tx, SESSION_EVENT_INSERT, e, session_event_name(SESSION_PENDING),
                                 &e->session.id, err);
    case EVENT_SESSION_STATUS:
        return session_event_add_status(tx, e, err);
    case EVENT_SESSION_EXPLAINED: /* too late, it is dropped */
        return session_event_add(tx, SESSION_EVENT_INSERT " AND s.status = 'PENDING'", e,
                                 SESSION_EVENT_WAITING, &e->session_change.id, err);
    case EVENT_KERNEL_STATUS:
        return session_event_add_reason(tx, KERNEL_EVENT_INSERT, e,
                                        kernel_event_name(e->kernel_status.to),
                                        e->kernel_status.reason, &e->kernel_status.id, err);
    case EVENT_KERNEL_RESIZED:
        return session_event_add_reason(tx, KERNEL_EVENT_INSERT, e, KERNEL_EVENT_RESIZED, NULL,
                                        &e->kernel_resized.id, err);
    case EVENT_SESSION_IDLE:
        return session_event_add_reason(tx, SESSION_EVENT_INSERT_WARNING, e,
                                        e->session_idle.warning ? SESSION_EVENT_IDLE_WARNING : NULL,
                                        e->session_idle.warning, &e->session_idle.id, err);
    default:
        return 0;
    }
}

/* ---- reading ---- */

int store_read_last_event(struct store_tx *tx, void *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct session_event_place *place = ret;
    int r = sql_prepare_once(
        tx->db, "SELECT number, at FROM session_events ORDER BY number DESC LIMIT 1", &q, err);

    *place = (struct session_event_place){ 0 };
    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    place->number = sql_get_int(q);
    place->at_usec = sql_get_int(q);
    return 0;
}

void session_event_page_free(struct session_event_page *page)
{
    if (!page)
        return;
    arena_done(&page->arena);
    free(page);
}

/* Is it a row, or old? Before the first of all there is nothing. */
static int session_event_find_place(struct store_tx *tx, const struct session_event_place *place,
                                    struct session_event_page *page, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int64_t first;
    int r = sql_prepare(tx->db,
                        "SELECT (SELECT COUNT(*) FROM session_events WHERE number = ? AND at = ?),"
                        " (SELECT MIN(number) FROM session_events)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, place->number);
    sql_put_int(q, place->at_usec);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    page->is_known = sql_get_int(q) > 0;
    first = sql_get_int(q);
    page->is_known = page->is_known || (place->number == 0 && place->at_usec == 0 && first <= 1);
    page->is_old = !page->is_known && place->number < first;
    return 0;
}

static void session_event_read(struct row *row, struct session_event_row *ret)
{
    struct sql_stmt *q = row->q;

    ret->place.number = sql_get_int(q);
    ret->place.at_usec = sql_get_int(q);
    ret->is_kernel = sql_get_int(q) >= 0;
    ret->name = row_text(row);
    ret->reason = row_text(row);
    if (!ret->reason)
        ret->reason = "";
    ret->has_exit = !sql_get_is_null(q);
    ret->exit_code = (int)sql_get_int(q);
    ret->is_removed = sql_get_is_null(q);
    if (ret->is_removed)
        return;
    ret->session.id = sql_get_uuid(q);
    row_bounded(row, ret->session.name, sizeof(ret->session.name));
    ROW_PARSE(row, session_status_parse, &ret->session.status);
    row_bounded(row, ret->session.access_key, sizeof(ret->session.access_key));
    ret->session.domain = row_text(row);
    ret->session.project_id = sql_get_uuid(q);
    ret->kernel.id = sql_get_uuid(q);
    row_bounded(row, ret->kernel.role, sizeof(ret->kernel.role));
    ret->kernel.index = (uint32_t)sql_get_int(q);
}

static int session_event_read_page(struct store_tx *tx, int64_t after,
                                   struct session_event_page *page, struct aq_error *err)
{
    static const char sql[] =
        "SELECT e.number, e.at, e.rank, e.name, e.reason, e.exit_code, s.id, s.name, s.status,"
        " s.access_key, s.domain, s.project_id, k.id, k.role, k.role_index FROM session_events e"
        " LEFT JOIN sessions s ON s.seq = e.session_seq"
        " LEFT JOIN kernels k ON k.session_seq = e.session_seq AND k.rank = e.rank"
        " WHERE e.number > ? ORDER BY e.number LIMIT ?";
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = &page->arena };
    int r = sql_prepare(tx->db, sql, &q, err);

    if (r < 0)
        return r;
    row.q = q;
    sql_put_int(q, after);
    sql_put_int(q, SESSION_EVENTS_AT_A_TIME);
    while ((r = sql_step(q, err)) > 0 && page->count < SESSION_EVENTS_AT_A_TIME)
        session_event_read(&row, &page->rows[page->count++]);
    return r < 0 ? r : row_check(&row, "session_events", err);
}

int store_list_session_events(struct store_tx *tx, const struct session_event_place *after,
                              struct session_event_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(session_event_page_freep) struct session_event_page *page = aq_alloc(sizeof(*page));
    int r;

    page->rows = arena_array(&page->arena, SESSION_EVENTS_AT_A_TIME, sizeof(*page->rows));
    r = session_event_find_place(tx, after, page, err);
    if (r == 0 && (page->is_known || page->is_old))
        r = session_event_read_page(tx, after->number, page, err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}
