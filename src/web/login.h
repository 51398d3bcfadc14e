/* SPDX-License-Identifier: Apache-2.0 */
/* login.h - the logins that this web server knows: who it is, and the keypair to sign with
 *
 * A login is found by the hash of its cookie. What the manager said of it holds for a minute, and
 * only while the manager is connected, which says when a login has ended: all that hold it are
 * told then. Nothing of it is on disk. Loop's thread only.
 */
#ifndef AQ_WEB_LOGIN_H
#define AQ_WEB_LOGIN_H

#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "http/defer.h"
#include "web/cookie.h"
#include "web/manager.h"

struct login {
    struct logins *of;
    char hash[COOKIE_HASH_MAX]; /* its key */
    struct uuid id, user_id;
    char access_key[64], secret_key[128];
    char role[16], status[32];
    int64_t expires_usec; /* wall clock */
    int64_t asked_usec;   /* monotonic; 0 = what is known of it does not hold */
    bool is_doubted;      /* something has ended since it was asked for */
    struct manager_ask *ask;
    struct list holders, seekers; /* login_use.link */
};

struct logins {
    uv_loop_t *loop;
    struct manager *manager;
    struct map by_hash; /* -> struct login */
    struct defer *timer;
};

/* Embedded where a login is used. Its owner calls list_init() for the link before anything else,
 * and login_leave() before it frees the use or replies to its request, in every case.
 *
 * Callbacks may seek, leave and end any login, and free their own use or another one: a use has
 * left the lists of its login before it is notified of a failure or an end, and one that leaves
 * while it waits for its turn is not notified.
 */
struct login_use {
    struct list link;    /* login.seekers, login.holders, or those that are being notified */
    struct login *login; /* NULL = it has none */
    /* Once: there it is, or why not (EACCES: it is none, or has ended). 'login' is valid during the
     * call, until the callback calls something that may end it.
     */
    void (*on_found)(void *data, struct login *login, const struct aq_error *err);
    /* It lets nobody in any more; the use has no login afterwards. May be NULL. */
    void (*on_ended)(void *data);
    void *data;
};

void logins_open(struct logins *logins, uv_loop_t *loop, struct manager *manager);
/* Nobody is told. */
void logins_close(struct logins *logins);

/* on_found() is called, perhaps before it returns. */
void login_seek(struct logins *logins, const char *hash, struct login_use *use);
/* It is not used any more; fine without one. */
void login_leave(struct login_use *use);

/* What the manager says. */
void logins_on_connected(struct logins *logins);
void logins_on_disconnected(struct logins *logins);
void logins_on_ended(struct logins *logins, const struct msg_web_ended *ended);

#endif
