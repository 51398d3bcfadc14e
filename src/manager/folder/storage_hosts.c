/* SPDX-License-Identifier: Apache-2.0 */
/* storage_hosts.c - see storage_hosts.h */
#include "manager/folder/storage_hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/defer.h"
#include "http/problem.h"
#include "http/quota.h"
#include "store/folder.h"

#define CALLS_MAX 1024  /* of one host under way */
#define VOLUMES_MAX 256 /* of one storage */
#define STORAGE_ID_MAX (STORAGE_HOST_MAX + sizeof(LINK_STORAGE_PREFIX))
#define ERRNO_MAX 4095      /* of Linux */
#define ANSWER_SEC 30       /* of most */
#define TREE_ANSWER_SEC 300 /* of what looks at whole folders */
#define CLONE_ANSWER_SEC (12 * 3600)

struct storage_hosts {
    struct core *core;
    struct map volumes;         /* id of a storage -> json_t, its list of volumes */
    struct storage_host *items; /* of all of them */
    size_t count, cap;
    struct list calls;
    storage_check_fn *on_check;
    void *check_data;
    struct quota users; /* what each has of CALLS_MAX */
};

struct storage_call {
    struct storage_hosts *hosts;
    struct list link;
    struct uuid id;            /* of those that wait for the same answer it is the same */
    bool is_joined;            /* another call has asked */
    char counts[80];           /* volume and folder that are counted; "" = it asks something else */
    struct quota_client *user; /* NULL = it counts for nobody */
    char storage[STORAGE_ID_MAX], op[16];
    struct defer *timer;
    unsigned sec;
    storage_done_fn *on_done;
    storage_progress_fn *on_progress; /* NULL = nobody asks */
    void *data;
};

/* ---- which there are ---- */

static int storage_hosts_compare(const void *a, const void *b)
{
    return strcmp(((const struct storage_host *)a)->name, ((const struct storage_host *)b)->name);
}

static void storage_hosts_add_all(struct storage_hosts *hosts, const char *id,
                                  const json_t *volumes)
{
    size_t i;
    const json_t *volume;

    json_array_foreach(volumes, i, volume) {
        const char *name = json_string_value(json_object_get(volume, "name"));
        const char *backend = json_string_value(json_object_get(volume, "backend"));
        struct storage_host *host;

        if (!name || i == VOLUMES_MAX)
            continue;
        (void)vec_grow(&hosts->items, &hosts->cap, hosts->count + 1, sizeof(*hosts->items));
        host = &hosts->items[hosts->count];
        host->backend = backend ? backend : "vfs";
        host->capabilities = json_object_get(volume, "capabilities");
        host->used = json_integer_value(json_object_get(volume, "used_bytes"));
        host->capacity = json_integer_value(json_object_get(volume, "capacity_bytes"));
        hosts->count += snprintf(host->name, sizeof(host->name), "%s:%s",
                                 core_front_name(FRONT_STORAGE, id), name)
                        < (int)sizeof(host->name);
    }
}

static void storage_hosts_gather(struct storage_hosts *hosts)
{
    hosts->count = 0;
    for (size_t i = 0; i < hosts->volumes.count; i++)
        storage_hosts_add_all(hosts, hosts->volumes.entries[i].key,
                              hosts->volumes.entries[i].value);
    if (hosts->count)
        qsort(hosts->items, hosts->count, sizeof(*hosts->items), storage_hosts_compare);
}

const struct storage_host *storage_hosts_list(const struct storage_hosts *hosts, size_t *ret_count)
{
    *ret_count = hosts->count;
    return hosts->items;
}

const struct storage_host *storage_hosts_find(const struct storage_hosts *hosts, const char *name)
{
    struct storage_host key;

    if (!hosts->count || snprintf(key.name, sizeof(key.name), "%s", name) >= (int)sizeof(key.name))
        return NULL;
    return bsearch(&key, hosts->items, hosts->count, sizeof(key), storage_hosts_compare);
}

/* ---- what they say ---- */

static struct storage_call *storage_hosts_find_call(const struct storage_hosts *hosts,
                                                    const char *storage, const struct uuid *id)
{
    LIST_FOREACH(it, &hosts->calls) {
        struct storage_call *call = LIST_ENTRY(it, struct storage_call, link);

        if (uuid_equals(&call->id, id) && strcmp(call->storage, storage) == 0)
            return call;
    }
    return NULL;
}

/* Another one that waits for the same answer is the one that has asked from now on. */
static void storage_call_free(struct storage_call *call)
{
    struct storage_call *next;

    defer_cancel(call->timer);
    list_remove(&call->link);
    if (call->user)
        quota_leave(&call->hosts->users, call->user, 0);
    next = call->is_joined ? NULL : storage_hosts_find_call(call->hosts, call->storage, &call->id);
    if (next)
        next->is_joined = false;
    free(call);
}

static void storage_call_end(struct storage_call *call, json_t *answer, const struct aq_error *err)
{
    storage_done_fn *done = call->on_done;
    void *data = call->data;

    storage_call_free(call);
    done(data, answer, err);
}

static int storage_code_of(const char *name)
{
    for (int code = 1; name && code <= ERRNO_MAX; code++) {
        const char *known = strerrorname_np(code);

        if (known && strcmp(known, name) == 0)
            return code;
    }
    return EIO;
}

/* Calls back all calls that wait for this answer; each callback may cancel others. */
static void storage_hosts_take_answer(struct storage_hosts *hosts, const char *storage,
                                      const struct msg_storage_answer *msg)
{
    struct storage_call *call;
    json_t *answer = msg->result ? json_load_string(msg->result, 0) : NULL;
    const struct problem_type *type = msg->error_kind ? problem_find(msg->error_kind) : NULL;
    struct aq_error err = { 0 };

    if (msg->result && !json_is_object(answer))
        (void)aq_fail(&err, EIO, "the storage's answer cannot be read");
    else if (!answer)
        (void)aq_fail_as(&err, storage_code_of(msg->error_code), type ? type->slug : NULL,
                         msg->error_field ? msg->error_field : "", "%s",
                         msg->error_text ? msg->error_text : "the storage gave no reason");
    while ((call = storage_hosts_find_call(hosts, storage, &msg->request_id)))
        storage_call_end(call, err.code ? NULL : answer, err.code ? &err : NULL);
    json_decref(answer);
}

static void storage_hosts_take_hello(struct storage_hosts *hosts, const char *id,
                                     const struct msg_storage_hello *hello)
{
    json_t *volumes = json_load_string(hello->volumes, 0);

    json_decref(map_removes(&hosts->volumes, id));
    if (json_is_array(volumes)) {
        (void)map_sets(&hosts->volumes, id, volumes);
    } else {
        json_decref(volumes);
        log_error("the volumes of '%s' cannot be read", id);
    }
    storage_hosts_gather(hosts);
}

/* ---- what folders hold ---- */

struct storage_size {
    struct folder folder;
    char host[STORAGE_HOST_MAX + 1];
};

static int storage_size_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct storage_size *size = data;

    return folder_set_counts(tx, &size->folder, err);
}

static void storage_size_on_kept(void *data, int r, const struct aq_error *err)
{
    if (r < 0)
        log_warning("the size of a folder is not kept: %s", err->text);
    free(data);
}

/* A limit of an owner needs to know what other folders hold. */
static void storage_hosts_take_size(struct storage_hosts *hosts, const char *id,
                                    const struct msg_storage_size *msg)
{
    struct storage_size *size = aq_alloc(sizeof(*size));

    if (msg->files < 0 || msg->bytes < 0
        || snprintf(size->host, sizeof(size->host), "%s:%s", core_front_name(FRONT_STORAGE, id),
                    msg->volume)
               >= (int)sizeof(size->host)) {
        free(size);
        return;
    }
    size->folder = (struct folder){ .id = msg->folder,
                                    .host = size->host,
                                    .files = msg->files,
                                    .bytes = msg->bytes,
                                    .measured_usec = clock_realtime_usec() };
    store_write(core_store(hosts->core), storage_size_run, storage_size_on_kept, size);
}

static void storage_hosts_on_message(void *data, const char *id, const struct message *msg)
{
    struct storage_hosts *hosts = data;
    const struct msg_storage_progress *progress = &msg->storage_progress;
    const struct storage_call *call;

    if (msg->type == MSG_STORAGE_HELLO) {
        storage_hosts_take_hello(hosts, id, &msg->storage_hello);
    } else if (msg->type == MSG_STORAGE_CHECK) {
        hosts->on_check(hosts->check_data, id, &msg->storage_check);
    } else if (msg->type == MSG_STORAGE_SIZE) {
        storage_hosts_take_size(hosts, id, &msg->storage_size);
    } else if (msg->type != MSG_STORAGE_PROGRESS) {
        storage_hosts_take_answer(hosts, id, &msg->storage_answer);
    } else {
        call = storage_hosts_find_call(hosts, id, &progress->request_id);
        if (call && call->on_progress)
            call->on_progress(call->data, progress->done, progress->total);
    }
}

/* Of several, each callback may cancel others. */
static void storage_hosts_on_lost(void *data, const char *id)
{
    struct storage_hosts *hosts = data;
    struct storage_call *call;
    struct aq_error err = { 0 };

    json_decref(map_removes(&hosts->volumes, id));
    storage_hosts_gather(hosts);
    (void)aq_fail_kind(&err, EHOSTUNREACH, "storage-proxy-error",
                       "the connection to storage '%s' was lost meanwhile",
                       core_front_name(FRONT_STORAGE, id));
    do {
        call = NULL;
        LIST_FOREACH(it, &hosts->calls)
            if (strcmp(LIST_ENTRY(it, struct storage_call, link)->storage, id) == 0)
                call = LIST_ENTRY(it, struct storage_call, link);
        if (call)
            storage_call_end(call, NULL, &err);
    } while (call);
}

/* ---- what is asked of them ---- */

static void storage_call_expire(void *data)
{
    struct storage_call *call = data;
    struct aq_error err = { 0 };

    call->timer = NULL;
    (void)aq_fail_kind(&err, ETIMEDOUT, "storage-proxy-error",
                       "storage '%s' did not answer '%s' in %u s",
                       core_front_name(FRONT_STORAGE, call->storage), call->op, call->sec);
    storage_call_end(call, NULL, &err);
}

void storage_call_follow(struct storage_call *call, storage_progress_fn *on_progress)
{
    call->on_progress = on_progress;
}

void storage_call_cancel(struct storage_call *call)
{
    struct message msg = { .type = MSG_STORAGE_CANCEL };
    char storage[STORAGE_ID_MAX];
    struct storage_hosts *hosts;

    if (!call)
        return;
    hosts = call->hosts;
    msg.storage_cancel.request_id = call->id;
    memcpy(storage, call->storage, sizeof(storage));
    storage_call_free(call);
    if (!storage_hosts_find_call(hosts, storage, &msg.storage_cancel.request_id))
        (void)core_send_front(hosts->core, storage, &msg, NULL);
}

static unsigned storage_call_sec(const char *op)
{
    static const struct {
        const char *op;
        unsigned sec;
    } long_ops[] = { { "usage", TREE_ANSWER_SEC },
                     { "delete", TREE_ANSWER_SEC },
                     { "clone", CLONE_ANSWER_SEC } };

    for (size_t i = 0; i < AQ_COUNT(long_ops); i++)
        if (strcmp(op, long_ops[i].op) == 0)
            return long_ops[i].sec;
    return ANSWER_SEC;
}

static int storage_call_new(struct storage_hosts *hosts, const char *storage, const char *op,
                            const char *user, struct storage_call **ret, struct aq_error *err)
{
    struct quota_client *client = NULL;
    struct storage_call *call;
    struct aq_error why = { 0 };

    if (user && quota_enter(&hosts->users, user, &client, &why) < 0)
        return aq_fail_kind(err, EAGAIN, "service-unavailable",
                            "too many of your requests wait for storages; wait for one of them");
    call = aq_alloc(sizeof(*call));
    call->hosts = hosts;
    call->user = client;
    call->id = uuid_random();
    call->sec = storage_call_sec(op);
    (void)snprintf(call->storage, sizeof(call->storage), "%s", storage);
    (void)snprintf(call->op, sizeof(call->op), "%s", op);
    list_add(&hosts->calls, &call->link);
    call->timer = defer_call(core_loop(hosts->core), call->sec * 1000, storage_call_expire, call);
    *ret = call;
    return 0;
}

/* While its folder is counted for another call, it waits for the same answer. */
static bool storage_call_join(struct storage_call *call, const char *volume, const char *folder)
{
    if (strcmp(call->op, "usage") != 0
        || snprintf(call->counts, sizeof(call->counts), "%s/%s", folder, volume)
               >= (int)sizeof(call->counts)) {
        call->counts[0] = '\0';
        return false;
    }
    LIST_FOREACH(it, &call->hosts->calls) {
        const struct storage_call *other = LIST_ENTRY(it, struct storage_call, link);

        if (other == call || strcmp(other->counts, call->counts) != 0
            || strcmp(other->storage, call->storage) != 0)
            continue;
        call->id = other->id;
        call->is_joined = true;
        if (call->user)
            quota_leave(&call->hosts->users, AQ_TAKE(call->user), 0);
        break;
    }
    return call->is_joined;
}

static size_t storage_hosts_count_calls(const struct storage_hosts *hosts, const char *storage)
{
    size_t count = 0;

    LIST_FOREACH(it, &hosts->calls)
        count += !LIST_ENTRY(it, struct storage_call, link)->is_joined
                 && strcmp(LIST_ENTRY(it, struct storage_call, link)->storage, storage) == 0;
    return count;
}

int storage_ask(struct storage_hosts *hosts, const char *host, const char *op, const json_t *args,
                storage_done_fn *on_done, void *data, struct storage_call **ret,
                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(args, JSON_COMPACT);
    struct message msg = { .type = MSG_STORAGE_ASK, .storage_ask = { .op = op, .args = text } };
    const char *colon = strchr(host, ':');
    int len = colon ? (int)(colon - host) : (int)strlen(host);
    char storage[STORAGE_ID_MAX];
    struct storage_call *call = NULL;
    int r;

    if (!storage_hosts_find(hosts, host))
        return aq_fail_kind(err, EHOSTUNREACH, "storage-proxy-error",
                            "storage '%.*s' is not connected, or has no volume '%s'", len, host,
                            colon ? colon + 1 : "");
    (void)snprintf(storage, sizeof(storage), LINK_STORAGE_PREFIX "%.*s", len, host);
    if (storage_hosts_count_calls(hosts, storage) >= CALLS_MAX)
        return aq_fail_kind(err, EAGAIN, "service-unavailable",
                            "too much is asked of storage '%.*s'; try again", len, host);
    r = storage_call_new(hosts, storage, op, json_string_value(json_object_get(args, "user")),
                         &call, err);
    if (r < 0)
        return r;
    msg.storage_ask.volume = colon + 1;
    msg.storage_ask.request_id = call->id;
    call->on_done = on_done;
    call->data = data;
    if (!storage_call_join(call, colon + 1, json_string_value(json_object_get(args, "id"))))
        r = core_send_front(hosts->core, storage, &msg, err);
    if (r < 0 && r != -EMSGSIZE)
        r = aq_fail_kind(err, EHOSTUNREACH, "storage-proxy-error",
                         "storage '%.*s' has disconnected; try again", len, host);
    if (r < 0)
        storage_call_free(call);
    else
        *ret = call;
    return r;
}

/* ---- life ---- */

struct storage_hosts *storage_hosts_new(struct core *core)
{
    static const struct core_front_ops ops = { .on_message = storage_hosts_on_message,
                                               .on_lost = storage_hosts_on_lost };
    struct storage_hosts *hosts = aq_alloc(sizeof(*hosts));

    hosts->core = core;
    list_init(&hosts->calls);
    quota_init(&hosts->users, CALLS_MAX, 0);
    core_set_front_ops(core, FRONT_STORAGE, &ops, hosts);
    return hosts;
}

void storage_hosts_set_check(struct storage_hosts *hosts, storage_check_fn *fn, void *data)
{
    hosts->on_check = fn;
    hosts->check_data = data;
}

void storage_hosts_stop(struct storage_hosts *hosts)
{
    core_set_front_ops(hosts->core, FRONT_STORAGE, NULL, NULL);
    while (!list_is_empty(&hosts->calls))
        storage_call_free(LIST_ENTRY(hosts->calls.next, struct storage_call, link));
}

void storage_hosts_free(struct storage_hosts *hosts)
{
    if (!hosts)
        return;
    storage_hosts_stop(hosts);
    for (size_t i = 0; i < hosts->volumes.count; i++)
        json_decref(hosts->volumes.entries[i].value);
    map_done(&hosts->volumes);
    quota_done(&hosts->users);
    free(hosts->items);
    free(hosts);
}
