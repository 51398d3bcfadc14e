/* SPDX-License-Identifier: Apache-2.0 */
/* audit_log.c - who did or tried what */
#include "store/audit_log.h"

#include "base/clock.h"
#include "store/list_query.h"

int audit_log_add(struct store_tx *tx, const struct audit_entry *entry, struct aq_error *err)
{
    const char *const texts[] = { entry->user_name, entry->domain,      entry->access_key,
                                  entry->address,   entry->action,      entry->object_kind,
                                  entry->object_id, entry->object_name, entry->object_domain,
                                  entry->outcome };
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO audit_log (seq, at, user_id, user_name, domain, access_key,"
                        " address, action, object_kind, object_id, object_name, object_domain,"
                        " outcome, times, detail, request_id)"
                        " VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM audit_log),"
                        " ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, entry->at_usec);
    if (uuid_is_nil(&entry->user_id))
        sql_put_null(q);
    else
        sql_put_uuid(q, &entry->user_id, id);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        sql_put_text(q, texts[i]);
    sql_put_int(q, entry->times);
    sql_put_text(q, entry->detail);
    sql_put_text(q, entry->request_id);
    return sql_run(q, err);
}

int audit_log_add_change(struct store_tx *tx, const struct audit_who *by,
                         const struct audit_change *change, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf detail = STRBUF_INIT;
    struct audit_entry entry;

    audit_write_detail(change, &detail);
    entry = audit_entry_make(by, change, detail.len ? detail.data : NULL, clock_realtime_usec());
    return audit_log_add(tx, &entry, err);
}

/* ---- the list ---- */

static const struct filter_field audit_log_fields[] = {
    { "seq", "l.seq", FILTER_INT },
    { "at", "l.at", FILTER_TIME },
    { "user", "l.user_name", FILTER_STRING },
    { "user_id", "l.user_id", FILTER_UUID },
    { "domain", "l.domain", FILTER_STRING },
    { "access_key", "l.access_key", FILTER_STRING },
    { "address", "l.address", FILTER_STRING },
    { "action", "l.action", FILTER_STRING },
    { "object_kind", "l.object_kind", FILTER_STRING },
    { "object_id", "l.object_id", FILTER_STRING },
    { "object_name", "l.object_name", FILTER_STRING },
    { "object_domain", "l.object_domain", FILTER_STRING },
    { "outcome", "l.outcome", FILTER_STRING },
    { "times", "l.times", FILTER_INT },
    { "request_id", "l.request_id", FILTER_STRING },
};

static int audit_log_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct audit_row *a = ret;
    struct audit_entry *e = &a->entry;
    const char **const texts[] = { &e->user_name, &e->domain,      &e->access_key,
                                   &e->address,   &e->action,      &e->object_kind,
                                   &e->object_id, &e->object_name, &e->object_domain,
                                   &e->outcome };

    (void)tx;
    (void)err;
    a->seq = sql_get_int(row->q);
    e->at_usec = sql_get_int(row->q);
    e->user_id = sql_get_uuid(row->q);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        *texts[i] = row_text(row);
    e->times = sql_get_int(row->q);
    e->detail = row_text(row);
    e->request_id = row_text(row);
    return 0;
}

static const struct list_table audit_log_table = {
    .what = "audit_log",
    .columns = "l.seq, l.at, l.user_id, l.user_name, l.domain, l.access_key, l.address, l.action,"
               " l.object_kind, l.object_id, l.object_name, l.object_domain, l.outcome,"
               " l.times, l.detail, l.request_id",
    .from = "audit_log l",
    .order = "l.seq DESC",
    .tie = "l.seq",
    .fields = audit_log_fields,
    .field_count = AQ_COUNT(audit_log_fields),
    .domain = "l.object_domain",
    .name = "l.user_name",
    .action = "l.action",
    .at = "l.at",
    .row_size = sizeof(struct audit_row),
    .read = audit_log_read_row,
};

int store_list_audit_log(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                         struct aq_error *err)
{
    const struct list_extra of_object = {
        .where = "? IN (l.object_kind, l.object_id, l.object_name)",
        .params = { q->object },
        .param_count = 1,
    };

    return list_run(tx, &audit_log_table, q, q->object ? &of_object : NULL, ret, err);
}
