/* SPDX-License-Identifier: Apache-2.0 */
/* web_login.h - people who have logged in with a browser
 *
 * For functions given to store_write(); web_login_find() and _list() also to store_read(). A
 * login is found by the SHA-256 of its cookie, which is not stored. The transaction that saves a
 * user or keypair removes the logins, too, if the event says so (ends_logins).
 */
#ifndef AQ_STORE_WEB_LOGIN_H
#define AQ_STORE_WEB_LOGIN_H

#include "base/arena.h"
#include "base/uuid.h"
#include "model/accounts.h"
#include "store/store.h"

#define WEB_LOGIN_HASH_SIZE 32
#define WEB_LOGIN_ADDRESS_MAX 46
#define WEB_LOGIN_AGENT_MAX 256
#define WEB_LOGINS_MAX 64 /* of one user; the oldest goes first */

struct web_login {
    struct uuid id, user_id;
    char access_key[ACCESS_KEY_MAX];
    int64_t created_usec, used_usec, expires_usec; /* wall clock */
    char address[WEB_LOGIN_ADDRESS_MAX];
    char agent[WEB_LOGIN_AGENT_MAX]; /* what the browser calls itself */
};

/* 1, or 0 if the user is not active, or has another password than the one that was set at
 * 'password_usec'.
 */
int user_is_active_since(struct store_tx *tx, const struct uuid *user_id, int64_t password_usec,
                         struct aq_error *err);

/* Those that have expired by its 'created_usec' go. */
int web_login_add(struct store_tx *tx, const unsigned char hash[WEB_LOGIN_HASH_SIZE],
                  const struct web_login *login, struct aq_error *err);

/* 1, or 0 if there is none, or it has expired. */
int web_login_find(struct store_tx *tx, const unsigned char hash[WEB_LOGIN_HASH_SIZE],
                   int64_t now_usec, struct web_login *ret, struct aq_error *err);

/* It was used, and lasts until then. No error if it has gone. */
int web_login_use(struct store_tx *tx, const struct uuid *id, int64_t now_usec,
                  int64_t expires_usec, struct aq_error *err);

/* Of a user, the one used last first, in the arena. How many, or -errno. */
int web_login_list(struct store_tx *tx, const struct uuid *user_id, int64_t now_usec,
                   struct arena *arena, struct web_login **ret, struct aq_error *err);

/* 1, or 0 if it has gone. 'user_id' NULL = anybody's. */
int web_login_end(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                  struct aq_error *err);

/* ---- within the store ---- */

int web_login_end_of_user(struct store_tx *tx, const struct uuid *user_id, struct aq_error *err);
int web_login_end_of_key(struct store_tx *tx, const char *access_key, struct aq_error *err);

#endif
