/* SPDX-License-Identifier: Apache-2.0 */
/* folder_list.c - lists of folders */
#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/folder.h"
#include "store/list_query.h"

#define FOLDER_DOMAIN "COALESCE(u.domain, p.domain)"
#define FOLDER_IN_TRASH "f.status IN ('delete-pending', 'delete-ongoing')"
#define FOLDER_OF_MEMBER \
    "f.project_id IN (SELECT m.project_id FROM memberships m WHERE m.user_id = ?)"
/* A share of a project's folder says what its member may, no more. */
#define FOLDER_OF_GUEST                                                                          \
    "(f.project_id IS NULL AND f.id IN (SELECT s.folder_id FROM folder_shares s WHERE s.user_id" \
    " = ?))"
#define FOLDER_USABLE "(f.user_id = ? OR " FOLDER_OF_MEMBER " OR " FOLDER_OF_GUEST ")"

/* Permissions and states as the clients' help has them: READ_WRITE, DELETE_PENDING. */
static const struct filter_field folder_fields[] = {
    { "id", "f.id", FILTER_UUID },
    { "name", "f.name", FILTER_STRING },
    { "host", "f.host", FILTER_STRING },
    { "user", "f.user_id", FILTER_UUID },
    { "user_email", "u.email", FILTER_STRING },
    { "group", "f.project_id", FILTER_UUID },
    { "group_id", "f.project_id", FILTER_UUID },
    { "group_name", "p.name", FILTER_STRING },
    { "domain_name", FOLDER_DOMAIN, FILTER_STRING },
    { "creator", "f.creator", FILTER_STRING },
    { "usage_mode", "f.usage_mode", FILTER_LOWER },
    { "permission",
      "CASE f.permission WHEN 'ro' THEN 'read_only' WHEN 'rw' THEN 'read_write' ELSE 'rw_delete'"
      " END",
      FILTER_LOWER },
    { "ownership_type", "CASE WHEN f.user_id IS NULL THEN 'group' ELSE 'user' END", FILTER_LOWER },
    { "status", "REPLACE(f.status, '-', '_')", FILTER_LOWER },
    { "cloneable", "f.is_cloneable", FILTER_BOOL },
    { "num_files", "f.files", FILTER_INT },
    { "cur_size", "f.bytes", FILTER_INT },
    { "max_size", "f.bytes_max", FILTER_INT },
    { "created_at", "f.created_at", FILTER_TIME },
    { "last_used", "f.used_at", FILTER_TIME },
};

static int folder_read_row(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err)
{
    struct folder *f = ret;

    (void)tx;
    (void)err;
    f->id = sql_get_uuid(row->q);
    f->name = row_text(row);
    f->host = row_text(row);
    f->user_id = sql_get_uuid(row->q);
    f->project_id = sql_get_uuid(row->q);
    ROW_PARSE(row, folder_usage_parse, &f->usage);
    ROW_PARSE(row, folder_permission_parse, &f->permission);
    f->is_cloneable = sql_get_int(row->q);
    ROW_PARSE(row, folder_status_parse, &f->status);
    f->creator = row_text(row);
    f->created_usec = sql_get_int(row->q);
    f->used_usec = sql_get_int(row->q);
    f->files = sql_get_int(row->q);
    f->bytes = sql_get_int(row->q);
    f->bytes_max = sql_get_int(row->q);
    f->measured_usec = sql_get_int(row->q);
    f->user_email = row_text(row);
    f->project_name = row_text(row);
    f->domain = row_text(row);
    return 0;
}

static const struct list_table folder_table = {
    .what = "folders",
    .columns = "f.id, f.name, f.host, f.user_id, f.project_id, f.usage_mode, f.permission,"
               " f.is_cloneable, f.status, f.creator, f.created_at, f.used_at, f.files, f.bytes,"
               " f.bytes_max, f.counted_at, u.email, p.name, " FOLDER_DOMAIN,
    .from = "folders f LEFT JOIN users u ON u.id = f.user_id"
            " LEFT JOIN projects p ON p.id = f.project_id",
    .order = "f.created_at DESC, f.id",
    .tie = "f.id",
    .fields = folder_fields,
    .field_count = AQ_COUNT(folder_fields),
    .domain = FOLDER_DOMAIN,
    .project = "f.project_id",
    .user = "f.user_id",
    .name = "f.name",
    .id = "f.id",
    .row_size = sizeof(struct folder),
    .read = folder_read_row,
};

/* What is the viewer's of a row. */
static int folder_read_given(struct store_tx *tx, const struct folder_viewer *who,
                             struct folder *folder, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    const char *shared;
    int r;

    if (folder_is_owner(folder, who))
        return 0;
    r = sql_prepare(tx->db,
                    "SELECT (SELECT s.permission FROM folder_shares s WHERE s.folder_id = ?"
                    " AND s.user_id = ?), (SELECT COUNT(*) FROM memberships m"
                    " WHERE m.project_id = ? AND m.user_id = ?)",
                    &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, &folder->id, id);
    sql_put_uuid(q, &who->user_id, user);
    sql_put_uuid(q, &folder->project_id, project);
    sql_put_text(q, user);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    shared = sql_get_text(q);
    if (shared && folder_permission_parse(shared, &folder->shared) < 0)
        return aq_fail(err, EUCLEAN, "folder_shares has a permission '%.16s'", shared);
    folder->is_member = sql_get_int(q) > 0;
    return 0;
}

static int folder_read_all_given(struct store_tx *tx, const struct folder_viewer *who,
                                 struct store_page *page, struct aq_error *err)
{
    struct folder *rows = page->rows;
    int r = 0;

    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = folder_read_given(tx, who, &rows[i], err);
    return r;
}

/* ---- lists ---- */

struct folder_condition {
    const char *where;
    size_t params; /* each the viewer */
};

static struct folder_condition folder_condition_of(const struct folder_list *list)
{
    if (list->scope == FOLDERS_OWN)
        return (struct folder_condition){ "f.user_id = ?", 1 };
    if (list->scope == FOLDERS_INVITED)
        return (struct folder_condition){ FOLDER_OF_GUEST, 1 };
    if (list->scope == FOLDERS_PROJECT)
        return (struct folder_condition){ FOLDER_OF_MEMBER, 1 };
    if (list->scope == FOLDERS_AUTOMATIC)
        return (struct folder_condition){ "f.name LIKE '.%' AND (f.user_id = ? OR " FOLDER_OF_MEMBER
                                          ")",
                                          2 };
    if (list->scope == FOLDERS_VISIBLE && list->who.is_superadmin)
        return (struct folder_condition){ "1 = 1", 0 };
    if (list->scope == FOLDERS_VISIBLE && list->who.admin_of)
        return (struct folder_condition){ "(" FOLDER_DOMAIN " = ? OR " FOLDER_USABLE ")", 4 };
    return (struct folder_condition){ FOLDER_USABLE, 3 };
}

static int folder_list_with(struct store_tx *tx, const struct folder_list *list, const char *more,
                            const struct store_query *query, struct store_page **ret,
                            struct aq_error *err)
{
    const struct folder_condition condition = folder_condition_of(list);
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf where = STRBUF_INIT;
    struct list_extra extra = { .param_count = condition.params };
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    int r;

    (void)uuid_format(&list->who.user_id, user);
    for (size_t i = 0; i < condition.params; i++)
        extra.params[i] = condition.params == 4 && i == 0 ? list->who.admin_of : user;
    strbuf_adds(&where, condition.where);
    strbuf_adds(&where, more);
    if (list->project) {
        strbuf_adds(&where,
                    " AND (f.project_id = ? OR (f.project_id IS NULL AND " FOLDER_USABLE "))");
        extra.params[extra.param_count++] = uuid_format(list->project, project);
        for (size_t i = 0; i < 3; i++)
            extra.params[extra.param_count++] = user;
    }
    if (list->hides_trash)
        strbuf_adds(&where, " AND NOT (" FOLDER_IN_TRASH ")");
    extra.where = where.data;
    if ((r = list_run(tx, &folder_table, query, &extra, &page, err)) < 0
        || (r = folder_read_all_given(tx, &list->who, page, err)) < 0)
        return r;
    *ret = AQ_TAKE(page);
    return 0;
}

int store_list_folders(struct store_tx *tx, const struct folder_list *list,
                       const struct store_query *query, struct store_page **ret,
                       struct aq_error *err)
{
    return folder_list_with(tx, list, "", query, ret, err);
}

int folder_list_shared(struct store_tx *tx, const struct folder_list *list, struct store_page **ret,
                       struct aq_error *err)
{
    return folder_list_with(tx, list,
                            " AND EXISTS (SELECT 1 FROM folder_shares t WHERE t.folder_id = f.id)",
                            &(struct store_query){ .limit = FOLDER_SHARES_MAX }, ret, err);
}

int folder_list_unfinished(struct store_tx *tx, struct store_page **ret, struct aq_error *err)
{
    static const struct list_extra extra = {
        .where = "f.status IN ('performing', 'cloning', 'delete-ongoing')",
        .order = "f.created_at, f.id",
    };

    return list_run(tx, &folder_table, &(struct store_query){ .limit = 0 }, &extra, ret, err);
}

int folder_list_unmeasured(struct store_tx *tx, struct store_page **ret, struct aq_error *err)
{
    static const struct list_extra extra = {
        .where = "f.counted_at IS NULL AND f.status = 'ready'",
        .order = "f.created_at, f.id",
    };

    return list_run(tx, &folder_table, &(struct store_query){ .limit = 0 }, &extra, ret, err);
}
