/* SPDX-License-Identifier: Apache-2.0 */
/* folder_share.c - whom folders are shared with, and who is offered them */
#include <errno.h>

#include "base/clock.h"
#include "store/folder.h"
#include "store/transaction.h"

/* A statement of one id, or of two. */
static int folder_prepare_ids(struct store_tx *tx, const char *text, const struct uuid *first,
                              const struct uuid *second, char texts[2][UUID_TEXT_MAX],
                              struct sql_stmt **ret, struct aq_error *err)
{
    int r = sql_prepare(tx->db, text, ret, err);

    if (r < 0)
        return r;
    sql_put_uuid(*ret, first, texts[0]);
    if (second)
        sql_put_uuid(*ret, second, texts[1]);
    return 0;
}

/* ---- shares ---- */

int folder_list_shares(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                       struct folder_share **ret, struct aq_error *err)
{
    struct folder_share *shares = arena_array(arena, FOLDER_SHARES_MAX, sizeof(*shares));
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char texts[2][UUID_TEXT_MAX];
    int r = folder_prepare_ids(tx,
                               "SELECT s.user_id, u.email, s.permission"
                               " FROM folder_shares s JOIN users u ON u.id = s.user_id"
                               " WHERE s.folder_id = ? ORDER BY u.email",
                               id, NULL, texts, &q, err);
    int count = 0;

    row.q = q;
    while (r >= 0 && count < FOLDER_SHARES_MAX && (r = sql_step(q, err)) > 0) {
        shares[count].user_id = sql_get_uuid(q);
        shares[count].email = row_text(&row);
        ROW_PARSE(&row, folder_permission_parse, &shares[count].permission);
        count++;
    }
    if (r >= 0)
        r = row_check(&row, "folder_shares", err);
    *ret = shares;
    return r < 0 ? r : count;
}

int folder_set_share(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                     enum folder_permission permission, struct aq_error *err)
{
    char texts[2][UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r;

    if (permission == FOLDER_NONE) {
        r = folder_prepare_ids(tx, "DELETE FROM folder_shares WHERE folder_id = ? AND user_id = ?",
                               id, user_id, texts, &q, err);
        return r < 0 ? r : sql_change(q, err);
    }
    r = folder_prepare_ids(tx,
                           "INSERT INTO folder_shares (folder_id, user_id, permission, created_at)"
                           " VALUES (?,?,?,?) ON CONFLICT (folder_id, user_id)"
                           " DO UPDATE SET permission = excluded.permission",
                           id, user_id, texts, &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, folder_permission_name(permission));
    sql_put_int(q, clock_realtime_usec());
    return sql_change(q, err);
}

/* ---- invitations ---- */

/* How many have it or are offered it. */
static int folder_count_guests(struct store_tx *tx, const struct uuid *id, int64_t *ret,
                               struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char texts[2][UUID_TEXT_MAX];
    int r = folder_prepare_ids(tx,
                               "SELECT (SELECT COUNT(*) FROM folder_shares WHERE folder_id = ?)"
                               " + (SELECT COUNT(*) FROM folder_invitations WHERE folder_id = ?)",
                               id, id, texts, &q, err);

    if (r < 0 || (r = sql_step(q, err)) < 0)
        return r;
    *ret = sql_get_int(q);
    return 0;
}

static int folder_has_share(struct store_tx *tx, const struct folder_invitation *invitation,
                            struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char texts[2][UUID_TEXT_MAX];
    int r = folder_prepare_ids(tx,
                               "SELECT 1 FROM folder_shares WHERE folder_id = ? AND user_id = ?",
                               &invitation->folder_id, &invitation->user_id, texts, &q, err);

    return r < 0 ? r : sql_step(q, err);
}

int folder_invite(struct store_tx *tx, const struct folder_invitation *invitation,
                  struct aq_error *err)
{
    char id[UUID_TEXT_MAX], inviter[UUID_TEXT_MAX], texts[2][UUID_TEXT_MAX];
    int64_t guests = 0;
    struct sql_stmt *q;
    int r = folder_has_share(tx, invitation, err);

    if (r != 0)
        return AQ_MIN(r, 0);
    if ((r = folder_count_guests(tx, &invitation->folder_id, &guests, err)) < 0)
        return r;
    if (guests >= FOLDER_SHARES_MAX)
        return aq_fail(err, E2BIG, "a folder is shared with %d users at most", FOLDER_SHARES_MAX);
    r = folder_prepare_ids(tx,
                           "INSERT INTO folder_invitations (folder_id, user_id, id, inviter_id,"
                           " permission, created_at) VALUES (?,?,?,?,?,?)"
                           " ON CONFLICT (folder_id, user_id) DO UPDATE SET id = excluded.id,"
                           " inviter_id = excluded.inviter_id, permission = excluded.permission,"
                           " created_at = excluded.created_at"
                           " WHERE folder_invitations.inviter_id <> excluded.inviter_id",
                           &invitation->folder_id, &invitation->user_id, texts, &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, &invitation->id, id);
    sql_put_uuid(q, &invitation->inviter_id, inviter);
    sql_put_text(q, folder_permission_name(invitation->permission));
    sql_put_int(q, invitation->created_usec);
    return sql_change(q, err);
}

#define INVITATION_SELECT                                                                        \
    "SELECT i.id, i.folder_id, i.inviter_id, i.user_id, b.email, t.email, f.name, i.permission," \
    " i.created_at FROM folder_invitations i JOIN users b ON b.id = i.inviter_id"                \
    " JOIN users t ON t.id = i.user_id JOIN folders f ON f.id = i.folder_id WHERE "

/* In the trash a folder is offered to nobody. An invitation counts while its inviter may invite: as
 * the owner, and as an active user.
 */
#define INVITATION_IS_OPEN                                                         \
    " AND f.status = 'ready' AND f.user_id = i.inviter_id AND b.status = 'active'" \
    " ORDER BY i.created_at, i.id"

static void folder_read_invitation(struct row *row, struct folder_invitation *ret)
{
    ret->id = sql_get_uuid(row->q);
    ret->folder_id = sql_get_uuid(row->q);
    ret->inviter_id = sql_get_uuid(row->q);
    ret->user_id = sql_get_uuid(row->q);
    ret->inviter = row_text(row);
    ret->invitee = row_text(row);
    ret->folder_name = row_text(row);
    ROW_PARSE(row, folder_permission_parse, &ret->permission);
    ret->created_usec = sql_get_int(row->q);
}

static int folder_read_invitations(struct store_tx *tx, const char *text, const struct uuid *id,
                                   struct arena *arena, size_t max, struct folder_invitation *ret,
                                   struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .arena = arena };
    char texts[2][UUID_TEXT_MAX];
    int r = folder_prepare_ids(tx, text, id, NULL, texts, &q, err);
    size_t count = 0;

    row.q = q;
    while (r >= 0 && count < max && (r = sql_step(q, err)) > 0)
        folder_read_invitation(&row, &ret[count++]);
    if (r >= 0)
        r = row_check(&row, "folder_invitations", err);
    return r < 0 ? r : (int)count;
}

int folder_list_invitations(struct store_tx *tx, const struct uuid *user_id, bool by,
                            struct arena *arena, struct folder_invitation **ret,
                            struct aq_error *err)
{
    *ret = arena_array(arena, FOLDER_SHARES_MAX, sizeof(**ret));
    return folder_read_invitations(tx,
                                   by ? INVITATION_SELECT "i.inviter_id = ?" INVITATION_IS_OPEN
                                      : INVITATION_SELECT "i.user_id = ?" INVITATION_IS_OPEN,
                                   user_id, arena, FOLDER_SHARES_MAX, *ret, err);
}

int folder_find_invitation(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                           struct folder_invitation *ret, struct aq_error *err)
{
    return folder_read_invitations(tx, INVITATION_SELECT "i.id = ?" INVITATION_IS_OPEN, id, arena,
                                   1, ret, err);
}

int folder_set_invitation(struct store_tx *tx, const struct uuid *id,
                          enum folder_permission permission, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE folder_invitations SET permission = ? WHERE id = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_text(q, folder_permission_name(permission));
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}

int folder_remove_invitations(struct store_tx *tx, const struct uuid *folder_id,
                              struct aq_error *err)
{
    char texts[2][UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = folder_prepare_ids(tx, "DELETE FROM folder_invitations WHERE folder_id = ?", folder_id,
                               NULL, texts, &q, err);

    return r < 0 ? r : sql_run(q, err);
}

int folder_remove_invitation(struct store_tx *tx, const struct uuid *id, struct aq_error *err)
{
    char texts[2][UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = folder_prepare_ids(tx, "DELETE FROM folder_invitations WHERE id = ?", id, NULL, texts,
                               &q, err);

    return r < 0 ? r : sql_run(q, err);
}
