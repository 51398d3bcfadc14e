/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of kernels, dead ones included. */
#include "store/session_list.h"

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

static const char *kernel_list_status(int status)
{
    return kernel_status_name((enum kernel_status)status);
}

int kernel_list_read(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
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
    .status_name = kernel_list_status,
    .status_count = KERNEL_STATUS_COUNT,
    .domain = "s.domain",
    .project = "s.project_id",
    .user = "s.user_id",
    .access_key = "s.access_key",
    .resource_group = "s.resource_group",
    .id = "s.id",
    .row_size = sizeof(struct kernel_row),
    .read = kernel_list_read,
};

int store_list_kernels(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                       struct aq_error *err)
{
    return list_run(tx, &kernel_table, q, NULL, ret, err);
}
