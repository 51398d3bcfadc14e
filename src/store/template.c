/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - rows of templates of sessions and clusters */
#include "store/template.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/list_query.h"

static const char *const template_kinds[] = {
    [TEMPLATE_SESSION] = "session", [TEMPLATE_CLUSTER] = "cluster"
};

const char *template_kind_name(enum template_kind kind)
{
    return template_kinds[kind];
}

static int template_parse_kind(const char *text, enum template_kind *ret)
{
    for (size_t i = 0; i < AQ_COUNT(template_kinds); i++)
        if (strcmp(text, template_kinds[i]) == 0) {
            *ret = (enum template_kind)i;
            return 0;
        }
    return -EINVAL;
}

/* ---- reading ---- */

#define TEMPLATE_USABLE                 \
    "(t.user_id = ? OR t.project_id IN" \
    " (SELECT m.project_id FROM memberships m WHERE m.user_id = ?))"

static const struct filter_field template_fields[] = {
    { "id", "t.id", FILTER_UUID },
    { "name", "t.name", FILTER_STRING },
    { "kind", "t.kind", FILTER_LOWER },
    { "user", "t.user_id", FILTER_UUID },
    { "user_email", "u.email", FILTER_STRING },
    { "group", "t.project_id", FILTER_UUID },
    { "group_name", "p.name", FILTER_STRING },
    { "domain_name", "t.domain", FILTER_STRING },
    { "created_at", "t.created_at", FILTER_TIME },
    { "modified_at", "t.modified_at", FILTER_TIME },
};

static int template_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct template_row *t = ret;

    (void)tx;
    (void)err;
    t->id = sql_get_uuid(row->q);
    ROW_PARSE(row, template_parse_kind, &t->kind);
    t->name = row_text(row);
    t->user_id = sql_get_uuid(row->q);
    t->project_id = sql_get_uuid(row->q);
    t->domain = row_text(row);
    t->text = row_text(row);
    t->parsed = row_text(row);
    t->created_usec = sql_get_int(row->q);
    t->modified_usec = sql_get_int(row->q);
    t->user_email = row_text(row);
    t->project_name = row_text(row);
    return 0;
}

static const struct list_table template_table = {
    .what = "templates",
    .columns = "t.id, t.kind, t.name, t.user_id, t.project_id, t.domain, t.text, t.parsed,"
               " t.created_at, t.modified_at, u.email, p.name",
    .from = "session_templates t JOIN users u ON u.id = t.user_id"
            " LEFT JOIN projects p ON p.id = t.project_id",
    .order = "t.name, t.id",
    .tie = "t.id",
    .fields = template_fields,
    .field_count = AQ_COUNT(template_fields),
    .domain = "t.domain",
    .project = "t.project_id",
    .user = "t.user_id",
    .name = "t.name",
    .id = "t.id",
    .row_size = sizeof(struct template_row),
    .read = template_read_row,
};

int store_list_templates(struct store_tx *tx, const struct folder_viewer *who,
                         enum template_kind kind, bool all, const struct store_query *query,
                         struct store_page **ret, struct aq_error *err)
{
    bool sees_all = all && who->is_superadmin, sees_domain = all && !sees_all && who->admin_of;
    char user[UUID_TEXT_MAX];
    struct list_extra extra = {
        .where = sees_all      ? "t.kind <> ?"
                 : sees_domain ? "t.kind <> ? AND (" TEMPLATE_USABLE " OR t.domain = ?)"
                               : "t.kind <> ? AND " TEMPLATE_USABLE,
        .params = { kind == TEMPLATE_ANY ? "" : template_kinds[!kind],
                    uuid_format(&who->user_id, user), user, who->admin_of },
        .param_count = sees_all      ? 1
                       : sees_domain ? 4
                                     : 3,
    };

    return list_run(tx, &template_table, query, &extra, ret, err);
}

/* ---- changes ---- */

static int template_fail_exists(const struct template_row *row, struct aq_error *err)
{
    return aq_fail(err, EEXIST, "there is a template '%.128s' of yours already", row->name);
}

static int template_check_room(struct store_tx *tx, const struct template_row *row,
                               struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db, "SELECT COUNT(*) FROM session_templates WHERE user_id = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &row->user_id, user);
    if ((r = sql_step(q, err)) < 0)
        return r;
    if (sql_get_int(q) < TEMPLATES_MAX)
        return 0;
    return aq_fail(err, E2BIG, "there are %d templates of yours already; remove one",
                   TEMPLATES_MAX);
}

int template_insert(struct store_tx *tx, const struct template_row *row, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = store_check_domain(tx, row->domain, err);

    if (r == 0)
        r = template_check_room(tx, row, err);
    if (r < 0
        || (r = sql_prepare(tx->db,
                            "INSERT INTO session_templates (id, kind, name, user_id, project_id,"
                            " domain, text, parsed, created_at, modified_at)"
                            " VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                            &q, err))
               < 0)
        return r;
    sql_put_uuid(q, &row->id, id);
    sql_put_text(q, template_kinds[row->kind]);
    sql_put_text(q, row->name);
    sql_put_uuid(q, &row->user_id, user);
    if (uuid_is_nil(&row->project_id))
        sql_put_null(q);
    else
        sql_put_uuid(q, &row->project_id, project);
    sql_put_text(q, row->domain);
    sql_put_text(q, row->text);
    sql_put_text(q, row->parsed);
    sql_put_int(q, row->created_usec);
    sql_put_int(q, row->modified_usec);
    r = sql_change(q, err);
    return r == 0 ? template_fail_exists(row, err) : AQ_MIN(r, 0);
}

int template_update(struct store_tx *tx, const struct template_row *row, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE session_templates SET name = ?, text = ?, parsed = ?,"
                        " modified_at = ? WHERE id = ? AND NOT EXISTS (SELECT 1 FROM"
                        " session_templates o WHERE o.user_id = ? AND o.name = ? AND o.id <> ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, row->name);
    sql_put_text(q, row->text);
    sql_put_text(q, row->parsed);
    sql_put_int(q, row->modified_usec);
    sql_put_uuid(q, &row->id, id);
    sql_put_uuid(q, &row->user_id, user);
    sql_put_text(q, row->name);
    sql_put_text(q, id);
    r = sql_change(q, err);
    return r == 0 ? template_fail_exists(row, err) : AQ_MIN(r, 0);
}

int template_remove(struct store_tx *tx, const struct uuid *id, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM session_templates WHERE id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}
