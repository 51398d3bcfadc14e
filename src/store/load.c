/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what lives, as events */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/entity.h"
#include "store/load.h"
#include "store/store_internal.h"

/* ---- rows beside others ---- */

int load_scan_step(struct load_scan *scan, struct aq_error *err)
{
    int r = scan->is_at_end ? 0 : sql_step(scan->q, err);

    scan->is_at_end = r == 0;
    return r;
}

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

static const struct load_table registry_tables[] = {
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
};

static const struct load_table idle_table = { "idle sessions", SESSION_IDLE_QUERY,
                                              .kind = EVENT_SESSION_IDLE, .read = load_read_idle };

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

static int load_prepare(const struct loader *l, const struct load_table *table,
                        struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;

    if (table->of_sessions)
        return load_session_prepare(l, table->of_sessions, ret, err);
    if (table->rows)
        entity_add_select(&query, table->rows);
    else
        strbuf_adds(&query, table->query);
    return sql_prepare_scan(l->tx->db, query.data, ret, err);
}

int load_table(struct loader *l, const struct load_table *table, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .cuts_specs = true };
    int r = load_prepare(l, table, &q, err);

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

static int load_registry(struct loader *l, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(registry_tables); i++)
        r = load_table(l, &registry_tables[i], err);
    return r;
}

void load_end(struct loader *l)
{
    load_scan_end(&l->memberships);
    load_scan_end(&l->kernels);
    load_scan_end(&l->dependencies);
    load_scan_end(&l->array_dependencies);
    load_scan_end(&l->revisions);
    load_scan_end(&l->tokens);
}

int store_load_registry(struct store_tx *tx, store_visit_fn visit, void *data, struct aq_error *err)
{
    struct loader l = { .tx = tx, .visit = visit, .data = data };
    int r = load_registry(&l, err);

    load_end(&l);
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
    int r;

    l->tx = tx;
    r = load_registry(l, err);
    if (r == 0)
        r = load_table(l, &load_session_table, err);
    if (r == 0)
        r = load_table(l, &idle_table, err);
    load_end(l);
    return r;
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
