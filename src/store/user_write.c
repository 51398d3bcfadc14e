/* SPDX-License-Identifier: Apache-2.0 */
/* user_write.c - users, memberships */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "store/entity.h"
#include "store/query.h"
#include "store/web_login.h"

/* ---- users ---- */

static int user_replace_memberships(struct store_tx *tx, const struct user *u, struct aq_error *err)
{
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM memberships WHERE user_id = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &u->id, user);
    r = sql_run(q, err);
    for (size_t i = 0; r == 0 && i < u->project_count; i++) {
        r = sql_prepare(tx->db,
                        "INSERT INTO memberships (user_id, project_id) VALUES (?, ?)"
                        " ON CONFLICT DO NOTHING",
                        &q, err);
        if (r < 0)
            return r;
        sql_put_uuid(q, &u->id, user);
        sql_put_uuid(q, &u->project_ids[i], project);
        r = sql_run(q, err);
    }
    return r;
}

/* The hash of another password, as it was set now. */
static int user_set_password(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE users SET password_hash = ?, password_changed_at = ? WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->user.password_hash);
    sql_put_int(q, e->at_usec);
    sql_put_uuid(q, &e->user.user.id, id);
    return sql_run(q, err);
}

int user_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    const struct user *u = &e->user.user;
    int r = entity_save(tx, &store_users, u, e->at_usec, err);

    if (r == 0 && e->user.password_hash)
        r = user_set_password(tx, e, err);
    if (r == 0 && e->ends_logins)
        r = web_login_end_of_user(tx, &u->id, err);
    return r < 0 ? r : user_replace_memberships(tx, u, err);
}

static void user_move_projects(struct arena *arena, struct user *user)
{
    struct uuid *heap = AQ_TAKE(user->project_ids);

    user->project_ids = arena_array(arena, user->project_count, sizeof(*heap));
    user->project_cap = user->project_count;
    memcpy(user->project_ids, heap, user->project_count * sizeof(*heap));
    free(heap);
}

int user_read_projects(struct store_tx *tx, struct arena *arena, struct user *user,
                       struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT project_id FROM memberships WHERE user_id = ?"
                        " ORDER BY project_id",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &user->id, id);
    while ((r = sql_step(q, err)) > 0) {
        (void)vec_grow(&user->project_ids, &user->project_cap, user->project_count + 1,
                       sizeof(*user->project_ids));
        user->project_ids[user->project_count++] = sql_get_uuid(q);
    }
    if (r == 0 && arena && user->project_count)
        user_move_projects(arena, user);
    return r;
}

int store_find_login(struct store_tx *tx, const char *domain, const char *email,
                     struct store_login *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    int r = sql_prepare(tx->db,
                        "SELECT id, password_hash, COALESCE(password_changed_at, created_at)"
                        " FROM users"
                        " WHERE status IN ('active', 'before-verification') AND email = ?"
                        " AND (role = 'superadmin' OR domain = COALESCE(?, domain))",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, email);
    sql_put_text(q, domain);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    ret->hash[0] = '\0';
    if (r == 0)
        return 0;
    row.q = q;
    ret->user_id = sql_get_uuid(q);
    row_bounded(&row, ret->hash, sizeof(ret->hash));
    ret->changed_usec = sql_get_int(q);
    return row_check(&row, "users", err);
}

int user_replace_hash(struct store_tx *tx, const struct uuid *id, const char *old, const char *hash,
                      struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db, "UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, hash);
    sql_put_uuid(q, id, text);
    sql_put_text(q, old);
    return AQ_MIN(sql_change(q, err), 0);
}
