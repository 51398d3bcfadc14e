/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what lives, as events */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "store/transaction.h"

struct loader {
    struct store_tx *tx;
    store_visit_fn visit;
    void *data;
};

/* A table: the columns, and how one row becomes the members of an event. */
struct load_table {
    const char *what, *query;
    enum event_kind kind;
    int (*read)(struct store_tx *tx, struct row *row, struct event *e, struct aq_error *err);
};

static int load_read_slot_type(struct store_tx *tx, struct row *row, struct event *e,
                               struct aq_error *err)
{
    const char *name = sql_get_text(row->q);

    (void)tx;
    (void)err;
    errno = 0;
    e->slot_type.name = slot_name_intern(name, strlen(name));
    row->no_memory |= !e->slot_type.name && errno == ENOMEM;
    row->is_damaged |= !e->slot_type.name;
    ROW_PARSE(row, slot_type_parse, &e->slot_type.type);
    return 0;
}

static int load_read_domain(struct store_tx *tx, struct row *row, struct event *e,
                            struct aq_error *err)
{
    (void)tx;
    (void)err;
    domain_read_row(row, &e->domain);
    return 0;
}

static int load_read_project(struct store_tx *tx, struct row *row, struct event *e,
                             struct aq_error *err)
{
    (void)tx;
    (void)err;
    project_read_row(row, &e->project);
    return 0;
}

static int load_read_policy(struct store_tx *tx, struct row *row, struct event *e,
                            struct aq_error *err)
{
    (void)tx;
    (void)err;
    policy_read_row(row, &e->policy);
    return 0;
}

static int load_read_resource_group(struct store_tx *tx, struct row *row, struct event *e,
                                    struct aq_error *err)
{
    (void)tx;
    (void)err;
    resource_group_read_row(row, &e->resource_group);
    return 0;
}

static int load_read_user(struct store_tx *tx, struct row *row, struct event *e,
                          struct aq_error *err)
{
    user_read_row(row, &e->user.user);
    return user_read_projects(tx, NULL, &e->user.user, err);
}

static int load_read_keypair(struct store_tx *tx, struct row *row, struct event *e,
                             struct aq_error *err)
{
    keypair_read_row(row, &e->keypair);
    return keypair_read_secret(tx, row, &e->keypair, err);
}

static int load_read_agent(struct store_tx *tx, struct row *row, struct event *e,
                           struct aq_error *err)
{
    (void)tx;
    (void)err;
    agent_read_row(row, &e->agent);
    return 0;
}

static int load_read_dependencies(struct store_tx *tx, struct session *s, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    size_t cap = 0;
    int r = sql_prepare(
        tx->db,
        "SELECT d.depends_on, o.terminated_at, o.result FROM session_dependencies d"
        " JOIN sessions o ON o.id = d.depends_on WHERE d.session_seq = ? ORDER BY d.depends_on",
        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    sql_put_int(q, s->row);
    while ((r = sql_step(q, err)) > 0) {
        struct session_dependency *d;

        if (!vec_grow(&s->dependencies, &cap, s->dependency_count + 1, sizeof(*d)))
            return aq_fail_oom(err);
        d = &s->dependencies[s->dependency_count++];
        d->id = sql_get_uuid(q);
        d->ended = sql_get_int(q) != 0;
        ROW_PARSE(&row, session_result_parse, &d->result);
    }
    return r < 0 ? r : row_check(&row, "sessions", err);
}

static int load_read_kernels(struct store_tx *tx, struct session *s, size_t count,
                             struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    int r = sql_prepare(tx->db,
                        "SELECT " KERNEL_COLUMNS " FROM kernels k WHERE k.session_seq = ?"
                        " ORDER BY k.rank",
                        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    s->kernels = calloc(AQ_MAX(count, 1), sizeof(*s->kernels));
    if (!s->kernels)
        return aq_fail_oom(err);
    sql_put_int(q, s->row);
    while ((r = sql_step(q, err)) > 0 && s->kernel_count < count)
        kernel_read_row(&row, &s->kernels[s->kernel_count++]);
    row.is_damaged |= r > 0 || s->kernel_count != count;
    return r < 0 ? r : row_check(&row, "kernels", err);
}

static int load_read_session(struct store_tx *tx, struct row *row, struct event *e,
                             struct aq_error *err)
{
    size_t kernels;
    int r;

    session_read_row(row, &e->session, &kernels);
    r = load_read_kernels(tx, &e->session, kernels, err);
    return r < 0 ? r : load_read_dependencies(tx, &e->session, err);
}

static const struct load_table tables[] = {
    { "slot types", "SELECT name, type FROM slot_types ORDER BY name", EVENT_SLOT_TYPE_KNOWN,
      load_read_slot_type },
    { "domains", "SELECT " DOMAIN_COLUMNS " FROM present_domains d ORDER BY d.name",
      EVENT_DOMAIN_SAVED, load_read_domain },
    { "projects", "SELECT " PROJECT_COLUMNS " FROM present_projects p ORDER BY p.id",
      EVENT_PROJECT_SAVED, load_read_project },
    { "keypair policies", "SELECT " POLICY_COLUMNS " FROM keypair_policies p ORDER BY p.name",
      EVENT_KEYPAIR_POLICY_SAVED, load_read_policy },
    { "resource groups", "SELECT " RESOURCE_GROUP_COLUMNS " FROM resource_groups g ORDER BY g.name",
      EVENT_RESOURCE_GROUP_SAVED, load_read_resource_group },
    { "users", "SELECT " USER_COLUMNS " FROM present_users u ORDER BY u.id", EVENT_USER_SAVED,
      load_read_user },
    { "keypairs", "SELECT " KEYPAIR_COLUMNS ", k.secret FROM keypairs k ORDER BY k.access_key",
      EVENT_KEYPAIR_SAVED, load_read_keypair },
    { "agents", "SELECT " AGENT_COLUMNS " FROM agents a ORDER BY a.id", EVENT_AGENT_SAVED,
      load_read_agent },
    { "sessions",
      "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.terminated_at IS NULL"
      " ORDER BY s.seq + 0" /* by the index of what lives */,
      EVENT_SESSION_CREATED, load_read_session },
};

static int load_row(struct loader *l, const struct load_table *table, struct row *row,
                    struct aq_error *err)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *one = event_batch_new();
    struct event *e = one ? event_batch_add(one, table->kind, 0) : NULL;
    int r;

    if (!e)
        return aq_fail_oom(err);
    r = table->read(l->tx, row, e, err);
    if (r == 0)
        r = row_check(row, table->what, err);
    return r < 0 ? r : l->visit(l->data, e, err);
}

static int load_table(struct loader *l, const struct load_table *table, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    int r = sql_prepare_once(l->tx->db, table->query, &q, err);

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

    for (size_t i = 0; i < AQ_COUNT(tables); i++) {
        int r = load_table(&l, &tables[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int load_all(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct loader *l = data;

    return store_load_tx(tx, l->visit, l->data, err);
}

int store_load(struct store *store, store_visit_fn visit, void *data, struct aq_error *err)
{
    struct loader l = { .visit = visit, .data = data };

    return store_call(store, load_all, &l, err);
}
