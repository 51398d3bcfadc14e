/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what lives, as events */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/dependency.h"
#include "store/entity.h"
#include "store/store_internal.h"

/* Rows that belong to those of a table, read beside them in the same order. */
struct load_scan {
    struct sql_stmt *q;
    struct row row;
    int64_t seq;       /* of the session that the row belongs to, ... */
    struct uuid owner; /* ... or of the user or model service */
    bool is_at_end;
};

struct loader {
    struct store_tx *tx;
    store_visit_fn visit;
    void *data;
    struct load_scan memberships, kernels, dependencies, array_dependencies;
    struct load_scan revisions, tokens; /* of model services */
    struct session_dependency last; /* of array_dependencies: elements of an array share theirs */
};

/* A table: the columns, and how one row becomes the members of an event. */
struct load_table {
    const char *what, *query;
    enum event_kind kind;
    /* NULL: 'rows' says all. */
    int (*read)(struct loader *l, struct row *row, struct event *e, struct aq_error *err);
    int (*begin)(struct loader *l, struct aq_error *err); /* NULL = nothing beside it */
    const struct entity_table *rows; /* of the struct at this offset in the event: instead of
                                        'query'; 'read' follows, and takes no column */
    size_t offset;
};

/* ---- rows beside others ---- */

static int load_scan_begin(struct loader *l, struct load_scan *scan, const char *query,
                           struct aq_error *err)
{
    int r = sql_prepare_scan(l->tx->db, query, &scan->q, err);

    scan->row = (struct row){ .q = scan->q };
    return r;
}

static void load_scan_end(struct load_scan *scan)
{
    sql_end(AQ_TAKE(scan->q));
}

/* On to the next row: 1, or 0 at the end. */
static int load_scan_step(struct load_scan *scan, struct aq_error *err)
{
    int r = scan->is_at_end ? 0 : sql_step(scan->q, err);

    scan->is_at_end = r == 0;
    return r;
}

static int load_scan_next_of_session(struct load_scan *scan, struct aq_error *err)
{
    int r = load_scan_step(scan, err);

    scan->seq = r > 0 ? sql_get_int(scan->q) : INT64_MAX;
    return AQ_MIN(r, 0);
}

static int load_scan_next_of_owner(struct load_scan *scan, struct aq_error *err)
{
    int r = load_scan_step(scan, err);

    if (r > 0)
        scan->owner = sql_get_uuid(scan->q);
    return AQ_MIN(r, 0);
}

/* ---- tables ---- */

static int load_read_slot_type(struct loader *l, struct row *row, struct event *e,
                               struct aq_error *err)
{
    const char *name = sql_get_text(row->q);

    (void)l;
    (void)err;
    e->slot_type.name = slot_name_intern(name, strlen(name));
    row->is_damaged |= !e->slot_type.name;
    ROW_PARSE(row, slot_type_parse, &e->slot_type.type);
    return 0;
}

static int load_begin_users(struct loader *l, struct aq_error *err)
{
    int r = load_scan_begin(
        l, &l->memberships,
        "SELECT user_id, project_id FROM memberships ORDER BY user_id, project_id", err);

    return r < 0 ? r : load_scan_next_of_owner(&l->memberships, err);
}

static int load_read_memberships(struct loader *l, struct row *row, struct event *e,
                                 struct aq_error *err)
{
    struct load_scan *scan = &l->memberships;
    struct user *u = &e->user.user;
    int r = 0;

    (void)row;
    while (r == 0 && !scan->is_at_end && uuid_compare(&scan->owner, &u->id) <= 0) {
        if (uuid_equals(&scan->owner, &u->id)) {
            (void)vec_grow(&u->project_ids, &u->project_cap, u->project_count + 1,
                           sizeof(*u->project_ids));
            u->project_ids[u->project_count++] = sql_get_uuid(scan->q);
        }
        r = load_scan_next_of_owner(scan, err);
    }
    return r;
}

static int load_read_agent(struct loader *l, struct row *row, struct event *e, struct aq_error *err)
{
    (void)l;
    (void)err;
    agent_read_row(row, &e->agent);
    return 0;
}

/* Those that live are found by an index of theirs; "+ 0" keeps the planners from
 * walking all that ever were in the order of their numbers.
 */
static int load_begin_sessions(struct loader *l, struct aq_error *err)
{
    int r = load_scan_begin(l, &l->kernels,
                            "SELECT k.session_seq, " KERNEL_COLUMNS
                            " FROM sessions s CROSS JOIN kernels k WHERE s.terminated_at IS NULL"
                            " AND k.session_seq = s.seq ORDER BY k.session_seq + 0, k.rank",
                            err);

    if (r == 0)
        r = load_scan_begin(l, &l->dependencies,
                            "SELECT d.session_seq, d.depends_on, d.condition, o.running_at,"
                            " o.terminated_at, o.result"
                            " FROM sessions s CROSS JOIN session_dependencies d"
                            " JOIN sessions o ON o.id = d.depends_on"
                            " WHERE s.terminated_at IS NULL AND d.session_seq = s.seq"
                            " ORDER BY d.session_seq + 0, d.depends_on",
                            err);
    if (r == 0)
        r = load_scan_begin(l, &l->array_dependencies,
                            "SELECT d.session_seq, d.array_id, d.element, d.condition"
                            " FROM sessions s CROSS JOIN array_dependencies d"
                            " WHERE s.terminated_at IS NULL AND d.session_seq = s.seq"
                            " ORDER BY d.session_seq + 0, d.array_id, d.element",
                            err);
    if (r == 0)
        r = load_scan_next_of_session(&l->kernels, err);
    if (r == 0)
        r = load_scan_next_of_session(&l->dependencies, err);
    return r < 0 ? r : load_scan_next_of_session(&l->array_dependencies, err);
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
        r = load_scan_next_of_session(scan, err);
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
        r = load_scan_next_of_session(scan, err);
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
        r = load_scan_next_of_session(scan, err);
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

static int load_read_idle(struct loader *l, struct row *row, struct event *e, struct aq_error *err)
{
    (void)l;
    (void)err;
    session_idle_read_row(row, e);
    return 0;
}

static int load_read_array(struct loader *l, struct row *row, struct event *e, struct aq_error *err)
{
    (void)l;
    (void)err;
    row->cuts_specs = false; /* elements are made of it */
    e->array = aq_alloc(sizeof(*e->array));
    array_read_row(row, e->array);
    row->is_damaged |= !e->array->element.spec;
    return 0;
}

static int load_read_booking(struct loader *l, struct row *row, struct event *e,
                             struct aq_error *err)
{
    (void)l;
    (void)err;
    e->booking.row = aq_alloc(sizeof(*e->booking.row));
    booking_read_row(row, e->booking.row);
    e->booking.used_usec = sql_get_int(row->q);
    return 0;
}

static int load_begin_services(struct loader *l, struct aq_error *err)
{
    int r = load_scan_begin(l, &l->revisions,
                            "SELECT r.service_id, " MODEL_SERVICE_REVISION_COLUMNS
                            " FROM model_services m CROSS JOIN model_service_revisions r"
                            " WHERE m.ended_at IS NULL AND r.service_id = m.id"
                            " ORDER BY r.service_id, r.number",
                            err);

    if (r == 0)
        r = load_scan_begin(l, &l->tokens,
                            "SELECT t.service_id, " MODEL_SERVICE_TOKEN_COLUMNS
                            " FROM model_services m CROSS JOIN model_service_tokens t"
                            " WHERE m.ended_at IS NULL AND t.service_id = m.id"
                            " ORDER BY t.service_id, t.created_at, t.id",
                            err);
    if (r == 0)
        r = load_scan_next_of_owner(&l->revisions, err);
    return r < 0 ? r : load_scan_next_of_owner(&l->tokens, err);
}

static int load_read_service(struct loader *l, struct row *row, struct event *e,
                             struct aq_error *err)
{
    struct model_service *s = aq_alloc(sizeof(*s));
    int r = 0;

    e->service.row = s;
    model_service_read_row(row, s);
    e->service.last_replica = sql_get_int(row->q);
    while (r == 0 && !l->revisions.is_at_end && uuid_equals(&l->revisions.owner, &s->id)) {
        model_service_read_revision(&l->revisions.row, s);
        r = load_scan_next_of_owner(&l->revisions, err);
    }
    while (r == 0 && !l->tokens.is_at_end && uuid_equals(&l->tokens.owner, &s->id)) {
        model_service_read_token(&l->tokens.row, s);
        r = load_scan_next_of_owner(&l->tokens, err);
    }
    row->is_damaged |= l->revisions.row.is_damaged || l->tokens.row.is_damaged
                       || ((s->goal || s->revision_count)
                           && !model_service_find_revision(s, s->goal));
    return r;
}

static const struct load_table tables[] = {
    { "slot types", "SELECT name, type FROM slot_types ORDER BY name", EVENT_SLOT_TYPE_KNOWN,
      load_read_slot_type },
    { "domains", .kind = EVENT_DOMAIN_SAVED, .rows = &store_domains,
      .offset = offsetof(struct event, domain) },
    { "projects", .kind = EVENT_PROJECT_SAVED, .rows = &store_projects,
      .offset = offsetof(struct event, project) },
    { "keypair policies", .kind = EVENT_KEYPAIR_POLICY_SAVED, .rows = &store_keypair_policies,
      .offset = offsetof(struct event, policy) },
    { "resource groups", .kind = EVENT_RESOURCE_GROUP_SAVED, .rows = &store_resource_groups,
      .offset = offsetof(struct event, resource_group) },
    { "users", .kind = EVENT_USER_SAVED, .rows = &store_users,
      .offset = offsetof(struct event, user.user), .read = load_read_memberships,
      .begin = load_begin_users },
    { "keypairs", .kind = EVENT_KEYPAIR_SAVED, .rows = &store_keypairs,
      .offset = offsetof(struct event, keypair) },
    { "agents", "SELECT " AGENT_COLUMNS " FROM agents a ORDER BY a.id", EVENT_AGENT_SAVED,
      load_read_agent },
    { "bookings",
      "SELECT " BOOKING_COLUMNS ", (SELECT MAX(s.terminated_at) FROM sessions s"
      " WHERE s.booking_id = b.id AND s.running_at IS NOT NULL)"
      " FROM bookings b WHERE b.finished_at IS NULL ORDER BY b.created_at, b.id",
      EVENT_BOOKING_CREATED, load_read_booking },
    { "model services",
      "SELECT " MODEL_SERVICE_COLUMNS ", m.last_replica FROM model_services m"
      " WHERE m.ended_at IS NULL ORDER BY m.id",
      EVENT_SERVICE_CREATED, load_read_service, load_begin_services },
    { "arrays", "SELECT " ARRAY_COLUMNS " FROM arrays a WHERE a.ended_at IS NULL ORDER BY a.seq",
      EVENT_ARRAY_CREATED, load_read_array },
    { "sessions",
      "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.terminated_at IS NULL"
      " ORDER BY s.seq + 0",
      EVENT_SESSION_CREATED, load_read_session, load_begin_sessions },
    { "idle sessions", SESSION_IDLE_QUERY, EVENT_SESSION_IDLE, load_read_idle },
};

static int load_row(struct loader *l, const struct load_table *table, struct row *row,
                    struct aq_error *err)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *one = event_batch_new();
    struct event *e = event_batch_add(one, table->kind, 0);
    int r = 0;

    if (table->rows) {
        r = entity_load(l->tx, row, table->rows, (char *)e + table->offset, err);
        if (r == 0)
            e->at_usec = sql_get_int(row->q); /* it was saved first when it was created */
    }
    if (r == 0 && table->read)
        r = table->read(l, row, e, err);
    if (r == 0)
        r = row_check(row, table->what, err);
    return r < 0 ? r : l->visit(l->data, e, err);
}

static int load_table(struct loader *l, const struct load_table *table, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .cuts_specs = true };
    int r;

    if (table->rows)
        entity_add_select(&query, table->rows);
    else
        strbuf_adds(&query, table->query);
    r = sql_prepare_scan(l->tx->db, query.data, &q, err);
    if (r == 0 && table->begin)
        r = table->begin(l, err);
    if (r < 0)
        return r;
    row.q = q;
    while ((r = sql_step(q, err)) > 0)
        if ((r = load_row(l, table, &row, err)) < 0)
            break;
    return r;
}

int store_load_tx(struct store_tx *tx, store_visit_fn visit, void *data, struct aq_error *err)
{
    struct loader l = { .tx = tx, .visit = visit, .data = data };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(tables); i++)
        r = load_table(&l, &tables[i], err);
    load_scan_end(&l.memberships);
    load_scan_end(&l.kernels);
    load_scan_end(&l.dependencies);
    load_scan_end(&l.array_dependencies);
    load_scan_end(&l.revisions);
    load_scan_end(&l.tokens);
    return r;
}

/* store_tx_fn */
static int load_look(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return dotfile_look(tx, err);
}

/* store_tx_fn */
static int load_all(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct loader *l = data;

    return store_load_tx(tx, l->visit, l->data, err);
}

/* By a connection of its own to a server, so that the writer beats meanwhile. */
int store_load(struct store *store, store_visit_fn visit, void *data, struct aq_error *err)
{
    struct loader l = { .visit = visit, .data = data };
    int r = store_call(store, load_look, NULL, err);

    if (r < 0)
        return r;
    return store->engine->is_server ? reader_call(store, load_all, &l, err)
                                    : store_call(store, load_all, &l, err);
}
