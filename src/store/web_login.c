/* SPDX-License-Identifier: Apache-2.0 */
/* web_login.c - see web_login.h */
#include "store/web_login.h"

#include <errno.h>

#include "store/transaction.h"

#define WEB_LOGIN_COLUMNS "id, user_id, access_key, created_at, used_at, expires_at, address, agent"

static int web_login_run(struct store_tx *tx, const char *text, const struct uuid *id,
                         struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, buf);
    return sql_run(q, err);
}

static int web_login_prune(struct store_tx *tx, const struct web_login *login, struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM logins WHERE expires_at <= ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, login->created_usec);
    if ((r = sql_run(q, err)) < 0
        || (r = sql_prepare(tx->db,
                            "DELETE FROM logins WHERE user_id = ? AND id IN (SELECT id FROM logins"
                            " WHERE user_id = ? ORDER BY used_at DESC, id LIMIT 1000 OFFSET ?)",
                            &q, err))
               < 0)
        return r;
    sql_put_uuid(q, &login->user_id, buf);
    sql_put_text(q, buf);
    sql_put_int(q, WEB_LOGINS_MAX - 1);
    return sql_run(q, err);
}

int user_is_active_since(struct store_tx *tx, const struct uuid *user_id, int64_t password_usec,
                         struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char buf[UUID_TEXT_MAX];
    int r = sql_prepare(tx->db,
                        "SELECT 1 FROM users WHERE id = ? AND status = 'active'"
                        " AND COALESCE(password_changed_at, created_at) = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, buf);
    sql_put_int(q, password_usec);
    return sql_step(q, err);
}

int web_login_add(struct store_tx *tx, const unsigned char hash[WEB_LOGIN_HASH_SIZE],
                  const struct web_login *login, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], user_id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = web_login_prune(tx, login, err);

    if (r == 0)
        r = sql_prepare(
            tx->db, "INSERT INTO logins (hash, " WEB_LOGIN_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?)",
            &q, err);
    if (r < 0)
        return r;
    sql_put_blob(q, hash, WEB_LOGIN_HASH_SIZE);
    sql_put_uuid(q, &login->id, id);
    sql_put_uuid(q, &login->user_id, user_id);
    sql_put_text(q, login->access_key);
    sql_put_int(q, login->created_usec);
    sql_put_int(q, login->used_usec);
    sql_put_int(q, login->expires_usec);
    sql_put_text(q, login->address);
    sql_put_text(q, login->agent);
    return sql_run(q, err);
}

static void web_login_read(struct row *row, struct web_login *ret)
{
    *ret = (struct web_login){ .id = sql_get_uuid(row->q) };
    ret->user_id = sql_get_uuid(row->q);
    row_bounded(row, ret->access_key, sizeof(ret->access_key));
    ret->created_usec = sql_get_int(row->q);
    ret->used_usec = sql_get_int(row->q);
    ret->expires_usec = sql_get_int(row->q);
    row_bounded(row, ret->address, sizeof(ret->address));
    row_bounded(row, ret->agent, sizeof(ret->agent));
}

int web_login_find(struct store_tx *tx, const unsigned char hash[WEB_LOGIN_HASH_SIZE],
                   int64_t now_usec, struct web_login *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { .q = NULL };
    int r = sql_prepare(
        tx->db, "SELECT " WEB_LOGIN_COLUMNS " FROM logins WHERE hash = ? AND expires_at > ?", &q,
        err);

    if (r < 0)
        return r;
    sql_put_blob(q, hash, WEB_LOGIN_HASH_SIZE);
    sql_put_int(q, now_usec);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    row.q = q;
    web_login_read(&row, ret);
    r = row_check(&row, "logins", err);
    return r < 0 ? r : 1;
}

int web_login_use(struct store_tx *tx, const struct uuid *id, int64_t now_usec,
                  int64_t expires_usec, struct aq_error *err)
{
    char buf[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE logins SET used_at = ?, expires_at = ? WHERE id = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    sql_put_int(q, expires_usec);
    sql_put_uuid(q, id, buf);
    return sql_run(q, err);
}

int web_login_list(struct store_tx *tx, const struct uuid *user_id, int64_t now_usec,
                   struct arena *arena, struct web_login **ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct web_login *all = arena_alloc(arena, WEB_LOGINS_MAX * sizeof(*all));
    struct row row = { .arena = arena };
    char buf[UUID_TEXT_MAX];
    int count = 0, r;

    r = sql_prepare(tx->db,
                    "SELECT " WEB_LOGIN_COLUMNS " FROM logins WHERE user_id = ? AND expires_at > ?"
                    " ORDER BY used_at DESC, id",
                    &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, user_id, buf);
    sql_put_int(q, now_usec);
    row.q = q;
    while (count < WEB_LOGINS_MAX && (r = sql_step(q, err)) > 0)
        web_login_read(&row, &all[count++]);
    if (r >= 0)
        r = row_check(&row, "logins", err);
    *ret = all;
    return r < 0 ? r : count;
}

int web_login_end(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                  struct aq_error *err)
{
    char buf[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db, "DELETE FROM logins WHERE id = ? AND user_id = COALESCE(?, user_id)", &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, buf);
    if (user_id)
        sql_put_uuid(q, user_id, user);
    else
        sql_put_null(q);
    return sql_change(q, err);
}

int web_login_end_of_user(struct store_tx *tx, const struct uuid *user_id, struct aq_error *err)
{
    return web_login_run(tx, "DELETE FROM logins WHERE user_id = ?", user_id, err);
}

int web_login_end_of_key(struct store_tx *tx, const char *access_key, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM logins WHERE access_key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, access_key);
    return sql_run(q, err);
}
