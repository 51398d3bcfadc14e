/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_write.c - resource groups: rows written and read */
#include <errno.h>

#include "store/transaction.h"

int resource_group_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct resource_group *g = &e->resource_group;
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO resource_groups (name, description, is_active, scheduler, scheduler_opts,"
        " driver_opts, pending_timeout, selection, agent_loss_policy, agent_loss_grace,"
        " created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET"
        " description = excluded.description, is_active = excluded.is_active,"
        " scheduler = excluded.scheduler, scheduler_opts = excluded.scheduler_opts,"
        " driver_opts = excluded.driver_opts, pending_timeout = excluded.pending_timeout,"
        " selection = excluded.selection, agent_loss_policy = excluded.agent_loss_policy,"
        " agent_loss_grace = excluded.agent_loss_grace",
        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, g->name);
    sql_put_text(q, g->description);
    sql_put_int(q, g->is_active);
    sql_put_text(q, g->scheduler);
    sql_put_text(q, g->scheduler_opts);
    sql_put_text(q, g->driver_opts);
    sql_put_int(q, g->pending_timeout_usec);
    sql_put_text(q, g->selection);
    sql_put_text(q, g->agent_loss_policy);
    sql_put_int(q, g->agent_loss_grace_usec);
    sql_put_int(q, e->at_usec);
    return sql_run(q, err);
}

void resource_group_read_row(struct row *row, struct resource_group *ret)
{
    *ret = (struct resource_group){ 0 };
    ret->name = row_text(row);
    ret->description = row_text(row);
    ret->is_active = sql_get_int(row->q) != 0;
    ret->scheduler = row_text(row);
    ret->scheduler_opts = row_text(row);
    ret->driver_opts = row_text(row);
    ret->pending_timeout_usec = sql_get_int(row->q);
    ret->selection = row_text(row);
    ret->agent_loss_policy = row_text(row);
    ret->agent_loss_grace_usec = sql_get_int(row->q);
}
