/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of arrays, those that ended included. */
#include "store/array_list.h"

#include <errno.h>
#include <stdlib.h>

#include "store/array_dependency.h"
#include "store/dependency.h"
#include "store/list_query.h"

static const struct filter_field array_fields[] = {
    { "id", "a.id", FILTER_UUID },
    { "number", "a.seq", FILTER_INT },
    { "name", "a.name", FILTER_STRING },
    { "type", "a.type", FILTER_LOWER },
    { "priority", "a.priority", FILTER_INT },
    { "image", "a.image", FILTER_STRING },
    { "tag", "a.tag", FILTER_STRING },
    { "size", "a.size", FILTER_INT },
    { "failed", "a.failed", FILTER_INT },
    { "domain_name", "a.domain", FILTER_STRING },
    { "project_id", "a.project_id", FILTER_UUID },
    { "user_email", "u.email", FILTER_STRING },
    { "access_key", "a.access_key", FILTER_STRING },
    { "scaling_group", "a.resource_group", FILTER_STRING },
    { "created_at", "a.created_at", FILTER_TIME },
    { "terminated_at", "a.ended_at", FILTER_TIME },
};

static int array_list_read_row(struct store_tx *tx, struct row *row, void *ret,
                               struct aq_error *err)
{
    struct array_row *to = ret;
    struct session_array *a = &to->array;
    struct sql_stmt *q = row->q;

    (void)tx;
    (void)err;
    *to = (struct array_row){ .array.row = sql_get_int(q) };
    a->id = sql_get_uuid(q);
    row_bounded(row, a->name, sizeof(a->name));
    to->user_id = sql_get_uuid(q);
    to->access_key = row_text(row);
    to->domain = row_text(row);
    to->resource_group = row_text(row);
    ROW_PARSE(row, session_type_parse, &to->type);
    to->priority = (int)sql_get_int(q);
    to->image = row_text(row);
    to->tag = row_text(row);
    to->indices = row_text(row);
    a->size = sql_get_int(q);
    a->limit = sql_get_int(q);
    a->next = sql_get_int(q);
    a->made = sql_get_int(q);
    a->skipped = sql_get_int(q);
    for (int i = 0; i < ARRAY_OUTCOME_COUNT; i++)
        a->outcomes[i] = sql_get_int(q);
    a->created_usec = sql_get_int(q);
    a->cancelled_usec = sql_get_int(q);
    a->ended_usec = sql_get_int(q);
    to->user_email = row_text(row);
    to->project_name = row_text(row);
    to->depends_on = row_text(row);
    return 0;
}

static const struct list_table array_table = {
    .what = "arrays",
    .columns = "a.seq, a.id, a.name, a.user_id, a.access_key, a.domain, a.resource_group, a.type,"
               " a.priority, a.image, a.tag, a.indices, a.size, a.run_limit, a.next_position,"
               " a.made, a.skipped, a.succeeded, a.failed, a.cancelled, a.created_at,"
               " a.cancelled_at, a.ended_at, COALESCE(u.purged_email, u.email),"
               " COALESCE(p.purged_name, p.name), a.depends_on",
    .from = "arrays a LEFT JOIN users u ON u.id = a.user_id"
            " LEFT JOIN projects p ON p.id = a.project_id",
    .order = "a.seq DESC",
    .tie = "a.seq",
    .fields = array_fields,
    .field_count = AQ_COUNT(array_fields),
    .domain = "a.domain",
    .project = "a.project_id",
    .user = "a.user_id",
    .access_key = "a.access_key",
    .resource_group = "a.resource_group",
    .name = "a.name",
    .id = "a.id",
    .row_size = sizeof(struct array_row),
    .read = array_list_read_row,
};

/* Name and number of the session or array; neither if its row is gone. */
static int array_list_read_name(struct store_tx *tx, struct arena *arena,
                                struct dependency_row *ret, struct aq_error *err)
{
    const struct session_dependency *d = &ret->dependency;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    struct row row = { .arena = arena };
    int r = sql_prepare(tx->db,
                        d->is_array ? "SELECT name, seq FROM arrays WHERE id = ?"
                                    : "SELECT name, seq FROM sessions WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &d->id, id);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    row.q = q;
    ret->name = row_text(&row);
    ret->number = sql_get_int(q);
    return 0;
}

/* What the elements of one array wait for, with its state now. */
static int array_list_read_dependencies(struct store_tx *tx, struct arena *arena,
                                        struct array_row *to, struct aq_error *err)
{
    struct session_dependency *all = NULL;
    size_t count = 0;
    int r = array_parse_dependencies(to->depends_on, &all, &count);

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct dependency_row row = { .dependency = all[i] };
        struct session_dependency *d = &row.dependency;

        r = store_read_dependency(tx, d, err);
        if (r == -ENOENT) { /* it had ended, and the retention has removed it */
            d->ended = true;
            r = 0;
        }
        if (d->condition == DEPENDENCY_CORRESPONDING) { /* each element looks at its own */
            d->has_failed = false;
            d->result = d->ended ? RESULT_SUCCESS : RESULT_UNDEFINED;
        }
        if (r == 0)
            r = array_list_read_name(tx, arena, &row, err);
        arena_append(arena, &to->dependencies, &to->dependency_count, &row, sizeof(row));
    }
    free(all);
    return r == -EUCLEAN
               ? aq_fail(err, EUCLEAN, "depends_on of array '%s' is damaged", to->array.name)
               : r;
}

int store_list_arrays(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                      struct aq_error *err)
{
    bool wants_live = !q->statuses, wants_ended = !q->statuses;
    struct list_extra extra = { .where = NULL };
    int r;

    for (int i = 0; i < SESSION_STATUS_COUNT; i++)
        if (q->statuses & (1u << i)) {
            wants_ended |= session_is_terminal((enum session_status)i);
            wants_live |= !session_is_terminal((enum session_status)i);
        }
    if (!wants_ended)
        extra.where = "a.ended_at IS NULL";
    else if (!wants_live)
        extra.where = "a.ended_at IS NOT NULL";
    r = list_run(tx, &array_table, q, &extra, ret, err);
    for (size_t i = 0; r == 0 && q->with_dependencies && i < (*ret)->count; i++)
        r = array_list_read_dependencies(tx, &(*ret)->arena, &((struct array_row *)(*ret)->rows)[i],
                                         err);
    return r;
}
