/* SPDX-License-Identifier: Apache-2.0 */
/* session_row.c - sessions and kernels from their columns */
#include <string.h>

#include "base/memory.h"
#include "store/transaction.h"

/* NULL of a session of which no attempt has ended. */
static struct rerun_record *session_read_rerun(struct row *row)
{
    const char *text = sql_get_text(row->q);
    struct rerun_record record, *ret;

    if (!text || !text[0])
        return NULL;
    if (rerun_parse(text, &record) < 0) {
        row->is_damaged = true;
        return NULL;
    }
    ret = row->arena ? arena_alloc(row->arena, sizeof(*ret)) : aq_alloc(sizeof(*ret));
    *ret = record;
    return ret;
}

/* NULL of a session that is no replica. */
static struct session_replica *session_read_replica(struct row *row)
{
    struct sql_stmt *q = row->q;
    struct session_replica record = { .service_id = sql_get_uuid(q) }, *ret;

    record.revision = sql_get_int(q);
    record.number = sql_get_int(q);
    record.ratio_ppm = sql_get_int(q);
    record.ready_usec = sql_get_int(q);
    record.draining_usec = sql_get_int(q);
    record.has_half_share = sql_get_int(q) != 0;
    record.failed_usec = sql_get_int(q);
    if (uuid_is_nil(&record.service_id))
        return NULL;
    ret = row->arena ? arena_alloc(row->arena, sizeof(*ret)) : aq_alloc(sizeof(*ret));
    *ret = record;
    return ret;
}

void session_read_row(struct row *row, struct session *ret, size_t *ret_kernel_count)
{
    struct sql_stmt *q = row->q;

    *ret = (struct session){ 0 };
    ret->row = sql_get_int(q);
    ret->id = sql_get_uuid(q);
    row_bounded(row, ret->name, sizeof(ret->name));
    ROW_PARSE(row, session_type_parse, &ret->type);
    ROW_PARSE(row, session_status_parse, &ret->status);
    ret->version = (uint32_t)sql_get_int(q);
    ROW_PARSE(row, session_result_parse, &ret->result);
    ret->priority = (int)sql_get_int(q);
    ret->user_id = sql_get_uuid(q);
    ret->project_id = sql_get_uuid(q);
    row_bounded(row, ret->access_key, sizeof(ret->access_key));
    ret->domain = row_text(row);
    ret->resource_group = row_text(row);
    *ret_kernel_count = (size_t)sql_get_int(q);
    ret->spec = row_spec(row, &ret->is_spec_short);
    ret->reason = row_text(row);
    ret->status_data = row_text(row);
    ret->forced = sql_get_int(q) != 0;
    ret->created_usec = sql_get_int(q);
    ret->status_changed_usec = sql_get_int(q);
    ret->starts_usec = sql_get_int(q);
    ret->running_usec = sql_get_int(q);
    ret->image = row_text(row);
    ret->tag = row_text(row);
    ROW_PARSE(row, cluster_mode_parse, &ret->is_multi_node);
    ROW_PARSE(row, retry_parse, &ret->retry);
    ret->subnet = row_text(row);
    ret->rerun = session_read_rerun(row);
    ret->array_id = sql_get_uuid(q);
    ret->array_index = sql_get_int(q);
    ret->booking_id = sql_get_uuid(q);
    ret->replica = session_read_replica(row);
}

void kernel_read_row(struct row *row, struct kernel *ret)
{
    struct sql_stmt *q = row->q;

    *ret = (struct kernel){ 0 };
    ret->id = sql_get_uuid(q);
    ret->rank = (uint32_t)sql_get_int(q);
    row_bounded(row, ret->role, sizeof(ret->role));
    ret->index = (uint32_t)sql_get_int(q);
    ROW_PARSE(row, kernel_status_parse, &ret->status);
    ret->version = (uint32_t)sql_get_int(q);
    ret->attempt = (uint32_t)sql_get_int(q);
    ret->agent_id = row_text(row);
    row_slots(row, &ret->requested);
    ret->alloc = row_text(row);
    ret->service_ports = row_text(row);
    ret->has_exit = !sql_get_is_null(q);
    ret->exit_code = (int)sql_get_int(q);
    ret->status_changed_usec = sql_get_int(q);
}
