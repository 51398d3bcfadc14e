/* SPDX-License-Identifier: Apache-2.0 */
/* rights.c - see rights.h */
#include "storage/rights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/defer.h"
#include "storage/storage.h"

#define TICK_MSEC 200
#define REFRESH_USEC (200 * 1000)         /* a right in use is asked for again after this */
#define FRESH_USEC (500 * 1000)           /* a transfer begins without asking until then */
#define ANSWER_USEC (5 * USEC_PER_SEC)    /* then the manager is asked again */
#define PATIENCE_USEC (10 * USEC_PER_SEC) /* of a client, before it is told to come again */
#define GRACE_USEC (RIGHTS_GRACE_SEC * USEC_PER_SEC)
#define CHECK_MAX 1024 /* rights in a message */
#define KEPT_MAX 20000 /* rights, of which at most as many as there are transfers are in use */

struct right {
    char key[2 * UUID_TEXT_MAX + TOKEN_ACCESS_KEY_MAX + 2];
    struct uuid user_id, folder_id;
    char access_key[TOKEN_ACCESS_KEY_MAX + 1];
    bool is_write;
    bool is_asked;          /* it is part of the check under way */
    int64_t confirmed_usec; /* monotonic, of the question; 0 = never */
    struct list uses;
};

struct rights {
    struct storage *storage;
    struct map table;
    struct defer *timer;
    int64_t started_usec; /* wall clock */
    /* The check under way, one at a time. */
    bool is_checking;
    struct uuid check_id;
    int64_t check_usec; /* monotonic */
    struct right *checked[CHECK_MAX];
    size_t checked_count;
};

/* ---- uses ---- */

static void right_use_leave(struct right_use *use)
{
    list_remove(&use->link);
    use->right = NULL;
}

void right_use_end(struct right_use *use)
{
    if (use->right)
        right_use_leave(use);
}

static struct right_use *right_find_use(const struct right *right, bool is_waiting)
{
    LIST_FOREACH(it, &right->uses) {
        struct right_use *use = LIST_ENTRY(it, struct right_use, link);

        if (use->is_waiting == is_waiting)
            return use;
    }
    return NULL;
}

/* Each callback may end other uses, so that the list is searched from its beginning again. */
static void right_admit(struct right *right)
{
    struct right_use *use;

    while ((use = right_find_use(right, true))) {
        use->is_waiting = false;
        use->on_ready(use);
    }
}

static void right_refuse(struct right *right, const struct aq_error *err)
{
    struct right_use *use;

    while ((use = right_find_use(right, true))) {
        right_use_leave(use);
        use->on_refused(use, err);
    }
}

static void right_cut(struct right *right)
{
    struct right_use *use;

    while ((use = right_find_use(right, false))) {
        right_use_leave(use);
        use->on_cut(use);
    }
}

/* ---- asking the manager ---- */

static bool rights_are_connected(const struct rights *rights)
{
    return front_is_connected(rights->storage->front);
}

/* Those in use that were not confirmed for a moment. */
static void rights_choose(struct rights *rights, int64_t now_usec)
{
    rights->checked_count = 0;
    for (size_t i = 0; i < rights->table.count && rights->checked_count < CHECK_MAX; i++) {
        struct right *right = rights->table.entries[i].value;

        if (list_is_empty(&right->uses)
            || (right->confirmed_usec && now_usec - right->confirmed_usec < REFRESH_USEC))
            continue;
        right->is_asked = true;
        rights->checked[rights->checked_count++] = right;
    }
}

static void rights_drop_check(struct rights *rights)
{
    for (size_t i = 0; i < rights->checked_count; i++)
        rights->checked[i]->is_asked = false;
    rights->checked_count = 0;
    rights->is_checking = false;
}

static void rights_write_check(const struct rights *rights, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char id[UUID_TEXT_MAX];

    jsonw_array_begin(&w);
    for (size_t i = 0; i < rights->checked_count; i++) {
        const struct right *right = rights->checked[i];

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "user", uuid_format(&right->user_id, id));
        jsonw_member_str(&w, "key", right->access_key);
        jsonw_member_str(&w, "folder", uuid_format(&right->folder_id, id));
        jsonw_member_bool(&w, "write", right->is_write);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
}

static void rights_check(struct rights *rights)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct message msg = { .type = MSG_STORAGE_CHECK };
    struct aq_error err = { 0 };

    if (rights->is_checking || !rights_are_connected(rights))
        return;
    rights->check_usec = clock_monotonic_usec();
    rights_choose(rights, rights->check_usec);
    if (!rights->checked_count)
        return;
    rights->is_checking = true;
    rights->check_id = uuid_random();
    rights_write_check(rights, &out);
    msg.storage_check.request_id = rights->check_id;
    msg.storage_check.rights = out.data;
    if (front_send(rights->storage->front, &msg, &err) < 0) {
        log_warning("cannot ask the manager whether rights of users have ended: %s", err.text);
        rights_drop_check(rights);
    }
}

/* The bytes say which of them have ended. */
static void rights_read_ended(const char *text, size_t count, unsigned char *ended)
{
    json_auto_t *list = json_load_string(text, 0);
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        json_int_t index = json_integer_value(item);

        if (json_is_integer(item) && index >= 0 && (size_t)index < count)
            ended[index] = 1;
    }
}

void rights_on_checked(struct rights *rights, const struct msg_storage_checked *msg)
{
    unsigned char ended[CHECK_MAX] = { 0 };
    struct right *checked[CHECK_MAX];
    size_t count = rights->checked_count;
    struct aq_error err = { 0 };

    if (!rights->is_checking || !uuid_equals(&msg->request_id, &rights->check_id))
        return;
    (void)aq_fail(&err, EACCES,
                  "you no longer have this permission on the folder, or the keypair "
                  "that requested the token was deactivated; request a new token");
    memcpy(checked, rights->checked, count * sizeof(struct right *));
    rights_read_ended(msg->ended, count, ended);
    /* Callbacks add rights, but free none: unused ones go with the timer. */
    for (size_t i = 0; i < count; i++) {
        checked[i]->confirmed_usec = ended[i] ? 0 : rights->check_usec;
        if (ended[i]) {
            right_refuse(checked[i], &err);
            right_cut(checked[i]);
        } else {
            right_admit(checked[i]);
        }
    }
    rights_drop_check(rights);
    rights_check(rights);
}

/* ---- time ---- */

static bool right_is_within(const struct right *right, int64_t now_usec, int64_t usec)
{
    return right->confirmed_usec && now_usec - right->confirmed_usec < usec;
}

/* Unused ones, of which 'all' or those whose confirmation counts no longer. */
static void rights_sweep(struct rights *rights, int64_t now_usec, bool all)
{
    for (size_t i = rights->table.count; i-- > 0;) {
        struct right *right = rights->table.entries[i].value;

        if (right->is_asked || !list_is_empty(&right->uses)
            || (!all && right_is_within(right, now_usec, GRACE_USEC)))
            continue;
        (void)map_removes(&rights->table, right->key);
        free(right);
    }
}

/* Waiting uses end after a while, running ones when the manager has not confirmed them for long. */
static void right_expire(struct right *right, bool is_connected, int64_t now_usec)
{
    const struct right_use *use = right_find_use(right, true);
    struct aq_error err = { 0 };

    if (!is_connected && right_is_within(right, now_usec, GRACE_USEC)) {
        right_admit(right);
        return;
    }
    if (use && now_usec - use->since_usec >= PATIENCE_USEC) {
        (void)aq_fail(&err, EAGAIN,
                      "the storage host cannot reach the manager, which decides on "
                      "your permission; try again");
        right_refuse(right, &err);
    }
    if (!right_is_within(right, now_usec, GRACE_USEC))
        right_cut(right);
}

static void rights_on_tick(void *data)
{
    struct rights *rights = data;
    int64_t now_usec = clock_monotonic_usec();
    bool is_connected = rights_are_connected(rights);

    if (rights->is_checking && now_usec - rights->check_usec >= ANSWER_USEC)
        rights_drop_check(rights);
    for (size_t i = 0; i < rights->table.count; i++)
        right_expire(rights->table.entries[i].value, is_connected, now_usec);
    rights_sweep(rights, now_usec, false);
    rights_check(rights);
    rights->timer = rights->table.count
                        ? defer_call(rights->storage->loop, TICK_MSEC, rights_on_tick, rights)
                        : NULL;
}

/* ---- beginning ---- */

/* When the token was made the manager had just decided, if that was since our start: the manager
 * may have ended the right while we were away.
 */
static int64_t rights_when_issued(const struct rights *rights, const struct token *token,
                                  int64_t now_usec)
{
    int64_t age_usec = clock_realtime_usec() - token->issued_usec;

    return token->issued_usec >= rights->started_usec && age_usec >= 0 && age_usec < GRACE_USEC
               ? now_usec - age_usec
               : 0;
}

static struct right *rights_make(struct rights *rights, const struct token *token, const char *key)
{
    struct right *right = aq_alloc(sizeof(*right));

    if (rights->table.count >= KEPT_MAX)
        rights_sweep(rights, 0, true);
    (void)map_sets(&rights->table, key, right);
    (void)snprintf(right->key, sizeof(right->key), "%s", key);
    (void)snprintf(right->access_key, sizeof(right->access_key), "%s", token->access_key);
    right->user_id = token->user_id;
    right->folder_id = token->folder_id;
    right->is_write = token->direction == TOKEN_UPLOAD;
    list_init(&right->uses);
    return right;
}

static struct right *rights_find(struct rights *rights, const struct token *token)
{
    char key[sizeof(((struct right *)NULL)->key)], user[UUID_TEXT_MAX], folder[UUID_TEXT_MAX];
    struct right *right;

    (void)snprintf(key, sizeof(key), "%c%s%s%s", token->direction == TOKEN_UPLOAD ? 'w' : 'r',
                   uuid_format(&token->user_id, user), uuid_format(&token->folder_id, folder),
                   token->access_key);
    right = map_gets(&rights->table, key);
    return right ? right : rights_make(rights, token, key);
}

void right_use_begin(struct rights *rights, const struct token *token, struct right_use *use)
{
    int64_t now_usec = clock_monotonic_usec();
    struct right *right;

    list_init(&use->link);
    if (uuid_is_nil(&token->user_id)) {
        use->on_ready(use);
        return;
    }
    right = rights_find(rights, token);
    right->confirmed_usec = AQ_MAX(right->confirmed_usec,
                                   rights_when_issued(rights, token, now_usec));
    use->right = right;
    use->since_usec = now_usec;
    list_add(&right->uses, &use->link);
    if (!rights->timer)
        rights->timer = defer_call(rights->storage->loop, TICK_MSEC, rights_on_tick, rights);
    use->is_waiting = !right_is_within(right, now_usec,
                                       rights_are_connected(rights) ? FRESH_USEC : GRACE_USEC);
    if (use->is_waiting)
        rights_check(rights);
    else
        use->on_ready(use);
}

/* ---- life ---- */

void rights_on_connected(struct rights *rights)
{
    rights_check(rights);
}

void rights_on_disconnected(struct rights *rights)
{
    rights_drop_check(rights);
}

struct rights *rights_new(struct storage *storage)
{
    struct rights *rights = aq_alloc(sizeof(*rights));

    rights->storage = storage;
    rights->started_usec = clock_realtime_usec();
    return rights;
}

void rights_free(struct rights *rights)
{
    if (!rights)
        return;
    defer_cancel(rights->timer);
    for (size_t i = 0; i < rights->table.count; i++)
        free(rights->table.entries[i].value);
    map_done(&rights->table);
    free(rights);
}
