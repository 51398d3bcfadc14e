/* SPDX-License-Identifier: Apache-2.0 */
/* login.c - see web/login.h */
#include "web/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define FRESH_USEC (60 * USEC_PER_SEC)
#define TICK_MSEC 10000

static void login_ask(struct login *login);

static struct login *login_new(struct logins *logins, const char *hash)
{
    struct login *login = aq_alloc(sizeof(*login));

    login->of = logins;
    (void)snprintf(login->hash, sizeof(login->hash), "%s", hash);
    list_init(&login->holders);
    list_init(&login->seekers);
    (void)map_sets(&logins->by_hash, hash, login);
    return login;
}

/* It has no uses any more. */
static void login_free(struct login *login)
{
    manager_cancel(login->ask);
    (void)map_removes(&login->of->by_hash, login->hash);
    explicit_bzero(login, sizeof(*login));
    free(login);
}

static bool login_is_idle(const struct login *login)
{
    return list_is_empty(&login->holders) && list_is_empty(&login->seekers);
}

static bool login_is_fresh(const struct login *login)
{
    return login->asked_usec && clock_monotonic_usec() - login->asked_usec < FRESH_USEC
           && login->expires_usec > clock_realtime_usec()
           && manager_is_connected(login->of->manager);
}

/* ---- uses ---- */

static struct login_use *login_take_use(struct list *uses)
{
    struct list *link = list_take(uses);

    return link ? LIST_ENTRY(link, struct login_use, link) : NULL;
}

/* Take uses off their login before any of them is notified: a callback may then seek, leave and end
 * logins, and login_leave() of one that waits in 'ret' for its turn takes it off.
 */
static void login_detach(struct list *uses, struct list *ret)
{
    struct login_use *use;

    while ((use = login_take_use(uses))) {
        use->login = NULL;
        list_add(ret, &use->link);
    }
}

static void logins_refuse(struct list *seekers, const struct aq_error *err)
{
    struct login_use *use;

    while ((use = login_take_use(seekers)))
        use->on_found(use->data, NULL, err);
}

static void login_end(struct login *login)
{
    struct aq_error err = { 0 };
    struct list seekers, holders;
    struct login_use *use;

    list_init(&seekers);
    list_init(&holders);
    login_detach(&login->seekers, &seekers);
    login_detach(&login->holders, &holders);
    login_free(login);
    (void)aq_fail_kind(&err, EACCES, "auth-failed", "Unauthorized access");
    logins_refuse(&seekers, &err);
    while ((use = login_take_use(&holders)))
        if (use->on_ended)
            use->on_ended(use->data);
}

/* The manager did not answer: requests that wait for the login fail with 'err', and those that
 * already have it keep it.
 */
static void login_fail_seekers(struct login *login, const struct aq_error *err)
{
    struct list seekers;

    list_init(&seekers);
    login_detach(&login->seekers, &seekers);
    login->asked_usec = 0;
    if (login_is_idle(login))
        login_free(login);
    logins_refuse(&seekers, err);
}

void login_leave(struct login_use *use)
{
    struct login *login = AQ_TAKE(use->login);

    list_remove(&use->link);
    if (login && login_is_idle(login) && !login->asked_usec && !login->ask)
        login_free(login);
}

void login_seek(struct logins *logins, const char *hash, struct login_use *use)
{
    struct login *login = map_gets(&logins->by_hash, hash);

    list_init(&use->link);
    if (!login)
        login = login_new(logins, hash);
    use->login = login;
    if (login_is_fresh(login)) {
        list_add(&login->holders, &use->link);
        use->on_found(use->data, login, NULL);
        return;
    }
    list_add(&login->seekers, &use->link);
    if (!login->ask)
        login_ask(login);
}

/* ---- asking ---- */

static void login_copy(char *ret, size_t size, const json_t *answer, const char *name)
{
    const char *text = json_string_value(json_object_get(answer, name));

    (void)snprintf(ret, size, "%s", text ? text : "");
}

static void login_read(struct login *login, const json_t *answer)
{
    const char *id = json_string_value(json_object_get(answer, "id"));
    const char *user_id = json_string_value(json_object_get(answer, "user_id"));

    if (id)
        (void)uuid_parse(id, &login->id);
    if (user_id)
        (void)uuid_parse(user_id, &login->user_id);
    login_copy(login->access_key, sizeof(login->access_key), answer, "access_key");
    login_copy(login->secret_key, sizeof(login->secret_key), answer, "secret_key");
    login_copy(login->role, sizeof(login->role), answer, "role");
    login_copy(login->status, sizeof(login->status), answer, "status");
    login->expires_usec = json_integer_value(json_object_get(answer, "expires")) * USEC_PER_SEC;
    login->asked_usec = clock_monotonic_usec();
}

/* What a callback does to other seekers, or to the login, ends the walk where it has to: an end of
 * the login takes all of them off. Who seeks meanwhile waits for an answer of its own.
 */
static void login_satisfy_seekers(struct login *login)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &login->seekers);
    while ((link = list_cursor_next(&cursor))) {
        struct login_use *use = LIST_ENTRY(link, struct login_use, link);

        list_remove(link);
        list_add(&login->holders, link);
        use->on_found(use->data, login, NULL);
    }
}

static void login_on_answer(void *data, const json_t *answer, const struct aq_error *err,
                            int64_t retry_sec)
{
    struct login *login = data;

    (void)retry_sec;
    login->ask = NULL;
    if (login->is_doubted && (answer || err->code == EACCES)) {
        login_ask(login);
    } else if (answer) {
        login_read(login, answer);
        login_satisfy_seekers(login);
    } else if (err->code == EACCES) {
        login_end(login);
    } else {
        login_fail_seekers(login, err);
    }
}

static void login_ask(struct login *login)
{
    struct aq_error err = { 0 };

    login->is_doubted = false;
    if (manager_ask(login->of->manager, "find", json_pack("{s:s}", "hash", login->hash),
                    login_on_answer, login, &login->ask, &err)
        < 0) {
        login->ask = NULL;
        if (err.code == EACCES)
            err.code = EAGAIN;
        login_on_answer(login, NULL, &err, 1);
    }
}

/* ---- what the manager says ---- */

void logins_on_connected(struct logins *logins)
{
    for (size_t i = logins->by_hash.count; i-- > 0;) {
        struct login *login = logins->by_hash.entries[i].value;

        /* It has no seekers, as these have an ask: login_ask() calls nobody, also where it fails.
         */
        if (!list_is_empty(&login->holders) && !login->ask)
            login_ask(login);
    }
}

void logins_on_disconnected(struct logins *logins)
{
    for (size_t i = logins->by_hash.count; i-- > 0;) {
        struct login *login = logins->by_hash.entries[i].value;

        login->asked_usec = 0;
        if (login_is_idle(login) && !login->ask)
            login_free(login);
    }
}

static bool login_is_of(const struct login *login, const struct msg_web_ended *ended)
{
    if (!uuid_is_nil(&ended->login_id))
        return uuid_equals(&ended->login_id, &login->id);
    if (!uuid_is_nil(&ended->user_id))
        return uuid_equals(&ended->user_id, &login->user_id);
    return ended->access_key && strcmp(ended->access_key, login->access_key) == 0;
}

/* Callbacks of a login that ends may change the map: the search begins at its start again. */
void logins_on_ended(struct logins *logins, const struct msg_web_ended *ended)
{
    struct login *found;

    for (size_t i = 0; i < logins->by_hash.count; i++) {
        struct login *login = logins->by_hash.entries[i].value;

        login->is_doubted = login->ask;
    }
    do {
        found = NULL;
        for (size_t i = 0; i < logins->by_hash.count && !found; i++) {
            struct login *login = logins->by_hash.entries[i].value;

            if ((login->asked_usec || !list_is_empty(&login->holders)) && login_is_of(login, ended))
                found = login;
        }
        if (found)
            login_end(found);
    } while (found);
}

/* ---- life ---- */

static void logins_on_time(void *data)
{
    struct logins *logins = data;
    int64_t now = clock_realtime_usec();

    logins->timer = defer_call(logins->loop, TICK_MSEC, logins_on_time, logins);
    for (size_t i = logins->by_hash.count; i-- > 0;) {
        struct login *login;

        if (i >= logins->by_hash.count)
            continue; /* who was told of an end has ended others */
        login = logins->by_hash.entries[i].value;
        if (login->ask || login_is_fresh(login))
            continue;
        if (login->asked_usec && login->expires_usec <= now)
            login_end(login);
        else if (login_is_idle(login))
            login_free(login);
    }
}

void logins_open(struct logins *logins, uv_loop_t *loop, struct manager *manager)
{
    logins->loop = loop;
    logins->manager = manager;
    logins->timer = defer_call(loop, TICK_MSEC, logins_on_time, logins);
}

void logins_close(struct logins *logins)
{
    defer_cancel(AQ_TAKE(logins->timer));
    while (logins->by_hash.count) {
        struct login *login = logins->by_hash.entries[0].value;
        struct login_use *use;

        while ((use = login_take_use(&login->seekers)) || (use = login_take_use(&login->holders)))
            use->login = NULL;
        login_free(login);
    }
    map_done(&logins->by_hash);
}
