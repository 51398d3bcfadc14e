/* SPDX-License-Identifier: Apache-2.0 */
/* agent_list.c - lists of agents with what is held on them */
#include <string.h>

#include "store/list_query.h"

static const struct filter_field agent_fields[] = {
    { "id", "a.id", FILTER_STRING },
    { "status", "a.status", FILTER_UPPER },
    { "status_changed", "a.status_changed_at", FILTER_TIME },
    { "region", "a.region", FILTER_STRING },
    { "topology", "a.topology", FILTER_STRING },
    { "scaling_group", "a.resource_group", FILTER_STRING },
    { "schedulable", "a.schedulable", FILTER_BOOL },
    { "addr", "a.addr", FILTER_STRING },
    { "architecture", "a.architecture", FILTER_STRING },
    { "version", "a.version", FILTER_STRING },
    { "first_contact", "a.first_contact_at", FILTER_TIME },
    { "lost_at", "a.lost_at", FILTER_TIME },
};

static const char *agent_list_status_name(int status)
{
    return agent_status_name((enum agent_status)status);
}

/* The sum of the live ledger rows, into the arena. */
static int agent_list_read_occupied(struct store_tx *tx, struct row *row, const char *agent_id,
                                    struct slots *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
    int r = sql_prepare(tx->db,
                        "SELECT slot, SUM(amount) FROM allocations WHERE agent_id = ?"
                        " AND free_at IS NULL GROUP BY slot",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, agent_id);
    while ((r = sql_step(q, err)) > 0) {
        const char *slot = sql_get_text(q), *name = slot_name_intern(slot, strlen(slot));

        row->is_damaged |= !name || slots_set(&sum, name, sql_get_int(q)) < 0;
    }
    if (r < 0 || !sum.count)
        return r;
    ret->items = arena_array(row->arena, sum.count, sizeof(*sum.items));
    memcpy(ret->items, sum.items, sum.count * sizeof(*sum.items));
    ret->count = ret->cap = sum.count;
    return 0;
}

static int agent_list_read_row(struct store_tx *tx, struct row *row, void *ret,
                               struct aq_error *err)
{
    struct agent_row *a = ret;

    agent_read_row(row, &a->agent);
    return agent_list_read_occupied(tx, row, a->agent.id, &a->occupied, err);
}

static const struct list_table agent_table = {
    .what = "agents",
    .columns = AGENT_COLUMNS,
    .from = "agents a",
    .order = "a.id",
    .tie = "a.id",
    .fields = agent_fields,
    .field_count = AQ_COUNT(agent_fields),
    .status = "a.status",
    .status_name = agent_list_status_name,
    .status_count = AGENT_STATUS_COUNT,
    .resource_group = "a.resource_group",
    .name = "a.id",
    .row_size = sizeof(struct agent_row),
    .read = agent_list_read_row,
};

int store_list_agents(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                      struct aq_error *err)
{
    char user[UUID_TEXT_MAX];
    const struct list_extra allowed = {
        .where = "a.resource_group IN (SELECT x.resource_group FROM resource_group_access x WHERE"
                 " (x.kind = 'domain' AND x.whom = ?) OR (x.kind = 'project' AND x.whom IN"
                 " (SELECT m.project_id FROM memberships m WHERE m.user_id = ?))"
                 " OR (x.kind = 'keypair' AND x.whom = ?))",
        .params = { q->domain ? q->domain : "", user, q->access_key ? q->access_key : "" },
        .param_count = 3
    };

    if (q->user_id)
        (void)uuid_format(q->user_id, user);
    return list_run(tx, &agent_table, q, q->user_id ? &allowed : NULL, ret, err);
}
