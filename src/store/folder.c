/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - rows of folders: made, changed, removed, and what their owners have */
#include "store/folder.h"

#include <errno.h>

#include "store/transaction.h"

/* ---- owners ---- */

int folder_read_use(struct store_tx *tx, const struct folder_owner *owner, struct folder_use *ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    int r = sql_prepare(
        tx->db,
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status LIKE 'delete-%' THEN 0 ELSE 1 END), 0),"
        " CAST(COALESCE(SUM(bytes), 0) AS BIGINT)"
        " FROM folders WHERE user_id = ? OR project_id = ?",
        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &owner->user_id, user);
    sql_put_uuid(q, &owner->project_id, project);
    if ((r = sql_step(q, err)) < 0)
        return r;
    ret->all = sql_get_int(q);
    ret->folders = sql_get_int(q);
    ret->bytes = sql_get_int(q);
    return 0;
}

int folder_read_host_use(struct store_tx *tx, const char *host, struct folder_host_use *ret,
                         struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT COUNT(*), CAST(COALESCE(SUM(files), 0) AS BIGINT),"
                        " CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM folders WHERE host = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, host);
    if ((r = sql_step(q, err)) < 0)
        return r;
    ret->folders = sql_get_int(q);
    ret->files = sql_get_int(q);
    ret->bytes = sql_get_int(q);
    return 0;
}

int folder_is_name_taken(struct store_tx *tx, const struct folder_owner *owner, const char *name,
                         const struct uuid *but, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX], id[UUID_TEXT_MAX];
    int r = sql_prepare(
        tx->db,
        "SELECT 1 FROM folders f WHERE f.name = ? AND f.status NOT IN ('delete-pending',"
        " 'delete-ongoing') AND f.id <> ? AND (f.project_id = ? OR f.user_id = ?"
        " OR f.project_id IN (SELECT project_id FROM memberships WHERE user_id = ?)"
        " OR f.id IN (SELECT folder_id FROM folder_shares WHERE user_id = ?))",
        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, name);
    sql_put_text(q, but ? uuid_format(but, id) : "");
    sql_put_uuid(q, &owner->project_id, project);
    sql_put_uuid(q, &owner->user_id, user);
    sql_put_text(q, user);
    sql_put_text(q, user);
    return sql_step(q, err);
}

int folder_has_automatic(struct store_tx *tx, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT 1 FROM folders WHERE name LIKE '.%' LIMIT 1", &q, err);

    return r < 0 ? r : sql_step(q, err);
}

/* ---- changes ---- */

/* Null for nil: the owner is the other one. */
static void folder_put_owner(struct sql_stmt *q, const struct uuid *id, char text[UUID_TEXT_MAX])
{
    if (uuid_is_nil(id))
        sql_put_null(q);
    else
        sql_put_uuid(q, id, text);
}

static int folder_put_row(struct store_tx *tx, const char *text, const struct folder *f,
                          bool is_new, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, f->name);
    folder_put_owner(q, &f->user_id, user);
    folder_put_owner(q, &f->project_id, project);
    sql_put_text(q, folder_usage_name(f->usage));
    sql_put_text(q, folder_permission_name(f->permission));
    sql_put_int(q, f->is_cloneable);
    sql_put_text(q, folder_status_name(f->status));
    sql_put_int(q, f->bytes_max);
    if (is_new) {
        sql_put_int(q, f->files);
        sql_put_int(q, f->bytes);
        if (f->measured_usec)
            sql_put_int(q, f->measured_usec);
        else
            sql_put_null(q);
        sql_put_text(q, f->host);
        sql_put_text(q, f->creator);
        sql_put_int(q, f->created_usec);
    }
    sql_put_uuid(q, &f->id, id);
    return sql_run(q, err);
}

int folder_insert(struct store_tx *tx, const struct folder *folder, struct aq_error *err)
{
    return folder_put_row(tx,
                          "INSERT INTO folders (name, user_id, project_id, usage_mode, permission,"
                          " is_cloneable, status, bytes_max, files, bytes, counted_at, host,"
                          " creator, created_at, id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                          folder, true, err);
}

int folder_update(struct store_tx *tx, const struct folder *folder, struct aq_error *err)
{
    return folder_put_row(tx,
                          "UPDATE folders SET name = ?, user_id = ?, project_id = ?,"
                          " usage_mode = ?, permission = ?, is_cloneable = ?, status = ?,"
                          " bytes_max = ? WHERE id = ?",
                          folder, false, err);
}

int folder_remove(struct store_tx *tx, const struct uuid *id, struct aq_error *err)
{
    static const char *const statements[] = { "DELETE FROM folder_shares WHERE folder_id = ?",
                                              "DELETE FROM folder_invitations WHERE folder_id = ?",
                                              "DELETE FROM folders WHERE id = ?" };
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(statements); i++)
        if ((r = sql_prepare(tx->db, statements[i], &q, err)) == 0) {
            sql_put_uuid(q, id, text);
            r = sql_run(q, err);
        }
    return r;
}

int folder_set_counts(struct store_tx *tx, const struct folder *folder, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE folders SET files = ?, bytes = ?, counted_at = ?"
                        " WHERE id = ? AND host = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, folder->files);
    sql_put_int(q, folder->bytes);
    sql_put_int(q, folder->measured_usec);
    sql_put_uuid(q, &folder->id, text);
    sql_put_text(q, folder->host);
    return sql_run(q, err);
}
