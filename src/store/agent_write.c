/* SPDX-License-Identifier: Apache-2.0 */
/* agent_write.c - rows of agents and slot types */
#include <errno.h>
#include <stdio.h>

#include "store/setting.h"
#include "store/transaction.h"

static int agent_add_history(struct store_tx *tx, const char *agent_id, int64_t at_usec,
                             const char *status, const char *reason, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO agent_history (agent_id, at, status, reason)"
                        " VALUES (?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, agent_id);
    sql_put_int(q, at_usec);
    sql_put_text(q, status);
    sql_put_text(q, reason);
    return sql_run(q, err);
}

/* 'what': see AGENT_COLUMNS; 'value' NULL = none. */
static int agent_save_assigned(struct store_tx *tx, const char *what, const char *id,
                               const char *value, struct aq_error *err)
{
    char key[sizeof("agent.topology/") + AGENT_ID_MAX];

    (void)snprintf(key, sizeof(key), "agent.%s/%s", what, id);
    return value ? setting_set(tx, key, value, err) : setting_remove(tx, key, err);
}

int agent_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct agent *a = &e->agent;
    AQ_CLEANUP(aq_freep) char *available = slots_to_column(&a->available);
    char incarnation[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    r = sql_prepare(
        tx->db,
        "INSERT INTO agents (id, status, incarnation, resource_group, architecture, version, addr,"
        " region, topology, schedulable, drain_reason, available, devices, first_contact_at,"
        " status_changed_at, lost_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT (id) DO UPDATE SET status = excluded.status,"
        " incarnation = excluded.incarnation, resource_group = excluded.resource_group,"
        " architecture = excluded.architecture, version = excluded.version, addr = excluded.addr,"
        " region = excluded.region, topology = excluded.topology, schedulable = excluded.schedulable,"
        " drain_reason = excluded.drain_reason, available = excluded.available,"
        " devices = excluded.devices, first_contact_at = excluded.first_contact_at,"
        " status_changed_at = excluded.status_changed_at, lost_at = excluded.lost_at",
        &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, a->id);
    sql_put_text(q, agent_status_name(a->status));
    sql_put_uuid(q, &a->incarnation, incarnation);
    sql_put_text(q, a->resource_group ? a->resource_group : "default");
    sql_put_text(q, a->architecture);
    sql_put_text(q, a->version);
    sql_put_text(q, a->addr);
    sql_put_text(q, a->region);
    sql_put_text(q, a->topology);
    sql_put_int(q, a->schedulable);
    sql_put_text(q, a->drain_reason);
    sql_put_text(q, available);
    sql_put_text(q, a->devices);
    sql_put_time(q, a->first_contact_usec);
    sql_put_time(q, a->status_changed_usec);
    sql_put_time(q, a->lost_usec);
    r = sql_run(q, err);
    if (r == 0)
        r = agent_save_assigned(tx, "group", a->id, a->assigned_group, err);
    if (r == 0)
        r = agent_save_assigned(tx, "topology", a->id, a->assigned_topology, err);
    return r < 0 ? r
                 : agent_save_assigned(tx, "drain", a->id, a->ends_sessions ? "end" : NULL, err);
}

/* sql_refuse_fn */
static int agent_refuse_status(const void *of, int r, struct aq_error *err)
{
    const struct event *e = of;

    return r == -ENODATA ? aq_fail(err, ENOENT, "there is no agent '%s'", e->agent_status.id) : r;
}

int agent_set_status(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    enum agent_status to = e->agent_status.to;
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE agents SET status = ?, status_changed_at = ?, lost_at = ?"
                        " WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, agent_status_name(to));
    sql_put_int(q, e->at_usec);
    sql_put_time(q, to == AGENT_LOST ? e->at_usec : 0);
    sql_put_text(q, e->agent_status.id);
    r = sql_change_one(q, agent_refuse_status, e, err);
    if (r < 0)
        return r;
    return agent_add_history(tx, e->agent_status.id, e->at_usec, agent_status_name(to),
                             e->agent_status.reason, err);
}

/* sql_refuse_fn */
static int agent_refuse_remove(const void *of, int r, struct aq_error *err)
{
    const struct event *e = of;

    if (r != -ENODATA)
        return r;
    return aq_fail(err, EBUSY,
                   "agent '%s' is not there, or kernels still hold its resources; "
                   "end those first",
                   e->agent_status.id);
}

int agent_remove(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "DELETE FROM agents WHERE id = ? AND NOT EXISTS (SELECT 1 FROM"
                        " allocations l WHERE l.agent_id = agents.id"
                        " AND l.free_at IS NULL)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->agent_status.id);
    r = sql_change_one(q, agent_refuse_remove, e, err);
    if (r == 0)
        r = agent_save_assigned(tx, "group", e->agent_status.id, NULL, err);
    if (r == 0)
        r = agent_save_assigned(tx, "topology", e->agent_status.id, NULL, err);
    if (r == 0)
        r = agent_save_assigned(tx, "drain", e->agent_status.id, NULL, err);
    if (r < 0)
        return r;
    return agent_add_history(tx, e->agent_status.id, e->at_usec, "REMOVED", e->agent_status.reason,
                             err);
}

int slot_type_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO slot_types (name, type) VALUES (?, ?)"
                        " ON CONFLICT (name) DO NOTHING",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->slot_type.name);
    sql_put_text(q, slot_type_name(e->slot_type.type));
    return sql_run(q, err);
}

void agent_read_row(struct row *row, struct agent *ret)
{
    struct sql_stmt *q = row->q;

    *ret = (struct agent){ 0 };
    row_bounded(row, ret->id, sizeof(ret->id));
    ROW_PARSE(row, agent_status_parse, &ret->status);
    ret->incarnation = sql_get_uuid(q);
    ret->resource_group = row_text(row);
    ret->architecture = row_text(row);
    ret->version = row_text(row);
    ret->addr = row_text(row);
    ret->region = row_text(row);
    ret->topology = row_text(row);
    ret->schedulable = sql_get_int(q) != 0;
    ret->drain_reason = row_text(row);
    row_slots(row, &ret->available);
    ret->devices = row_text(row);
    ret->first_contact_usec = sql_get_int(q);
    ret->status_changed_usec = sql_get_int(q);
    ret->lost_usec = sql_get_int(q);
    ret->assigned_group = row_text(row);
    ret->assigned_topology = row_text(row);
    ret->ends_sessions = sql_get_text(q) != NULL;
}
