/* SPDX-License-Identifier: Apache-2.0 */
/* folder_rights.c - see folder_rights.h */
#include "manager/folder/folder_rights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/folder/folder_rules.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_feature.h"
#include "manager/rules/folder_find.h"
#include "store/folder.h"

#define RIGHTS_MAX 4096 /* in a question; a storage host asks about 1024 */
#define CHECKS_MAX 64   /* under way; a storage host waits for an answer and asks again */

struct folder_rights {
    struct api *api;
    size_t check_count;
    bool is_stopped;
};

struct right_asked {
    struct principal who;
    struct folder_viewer viewer;
    char folder_id[UUID_TEXT_MAX];
    bool is_write, has_ended;
    struct folder folder; /* once it was found */
};

struct rights_check {
    struct folder_rights *rights;
    struct arena arena;
    const char *storage;
    struct uuid request_id;
    struct right_asked *items;
    size_t count;
};

static void rights_check_free(struct rights_check *check)
{
    check->rights->check_count--;
    arena_done(&check->arena);
    free(check);
}

/* ---- the question ---- */

/* The user as a request of now that is signed with this keypair would have it; false = it would be
 * refused.
 */
static bool rights_find_user(struct rights_check *check, const struct uuid *user_id,
                             const char *access_key, struct right_asked *ret)
{
    const struct api *api = check->rights->api;
    const struct user *user = core_find_user(api->core, user_id);
    const struct keypair *key = core_find_keypair(api->core, access_key);

    if (!user || user->status != USER_ACTIVE || !key || !key->is_active
        || !uuid_equals(&key->user_id, &user->id) || keypair_is_published(api, key))
        return false;
    ret->who.user_id = user->id;
    ret->who.role = user->role;
    memcpy(ret->who.access_key, key->access_key, sizeof(ret->who.access_key));
    if (user->domain)
        ret->who.domain = arena_strdup(&check->arena, user->domain);
    ret->viewer = (struct folder_viewer){
        .user_id = user->id,
        .is_superadmin = principal_is_superadmin(&ret->who),
        .admin_of = user->role == ROLE_ADMIN ? ret->who.domain : NULL,
    };
    return true;
}

static void rights_read_item(struct rights_check *check, const json_t *item,
                             struct right_asked *ret)
{
    const char *user = json_string_value(json_object_get(item, "user"));
    const char *key = json_string_value(json_object_get(item, "key"));
    const char *folder = json_string_value(json_object_get(item, "folder"));
    struct uuid user_id, folder_id;

    ret->is_write = json_is_true(json_object_get(item, "write"));
    ret->has_ended = !user || !key || !folder || uuid_parse(user, &user_id) < 0
                     || uuid_parse(folder, &folder_id) < 0
                     || !rights_find_user(check, &user_id, key, ret);
    if (!ret->has_ended)
        (void)uuid_format(&folder_id, ret->folder_id);
}

static bool rights_read_question(struct rights_check *check, const char *id,
                                 const struct msg_storage_check *msg)
{
    json_auto_t *list = json_load_string(msg->rights, 0);

    check->request_id = msg->request_id;
    check->storage = arena_strdup(&check->arena, id);
    check->count = json_array_size(list);
    if (!json_is_array(list) || check->count > RIGHTS_MAX) {
        log_warning("'%s' asks about rights in a form that cannot be read", id);
        return false;
    }
    check->items = arena_array(&check->arena, AQ_MAX(check->count, 1), sizeof(*check->items));
    for (size_t i = 0; i < check->count; i++)
        rights_read_item(check, json_array_get(list, i), &check->items[i]);
    return true;
}

/* ---- the rows ---- */

/* store_tx_fn */
static int rights_check_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct rights_check *check = data;

    for (size_t i = 0; i < check->count; i++) {
        struct right_asked *item = &check->items[i];
        int r = item->has_ended ? 0
                                : folder_find(tx, &item->viewer, item->folder_id, &check->arena,
                                              &item->folder, err);

        if (r < 0 && r != -ENOENT)
            return r;
        item->has_ended = item->has_ended || r == -ENOENT || item->folder.status != FOLDER_READY
                          || !folder_may(&item->folder, &item->viewer,
                                         item->is_write ? FOLDER_WRITE : FOLDER_READ);
    }
    return 0;
}

/* ---- the answer ---- */

static bool rights_allow_host(const struct rights_check *check, const struct right_asked *item)
{
    const struct api *api = check->rights->api;
    const struct folder_place place = {
        .who = &item->who,
        .project = core_find_project(api->core, &item->folder.project_id),
        .is_guest = !folder_is_owner(&item->folder, &item->viewer),
    };

    return folder_rules_allow(api, &place, item->folder.host,
                              item->is_write ? "upload-file" : "download-file");
}

static void rights_check_answer(const struct rights_check *check)
{
    struct message msg = { .type = MSG_STORAGE_CHECKED,
                           .storage_checked = { .request_id = check->request_id } };
    json_auto_t *ended = json_array();
    AQ_CLEANUP(aq_freep) char *text = NULL;

    for (size_t i = 0; i < check->count; i++)
        if (check->items[i].has_ended || !rights_allow_host(check, &check->items[i]))
            (void)json_array_append_new(ended, json_integer((json_int_t)i));
    msg.storage_checked.ended = text = json_dump_text(ended, JSON_COMPACT);
    (void)core_send_front(check->rights->api->core, check->storage, &msg, NULL);
}

/* Without an answer the storage host asks again. */
static void rights_check_on_run(void *data, int r, const struct aq_error *err)
{
    struct rights_check *check = data;

    if (r < 0)
        log_debug("rights to folders cannot be read for '%s': %s", check->storage, err->text);
    else if (!check->rights->is_stopped)
        rights_check_answer(check);
    rights_check_free(check);
}

static void folder_rights_on_check(void *data, const char *id, const struct msg_storage_check *msg)
{
    struct folder_rights *rights = data;
    struct rights_check *check;

    if (rights->check_count >= CHECKS_MAX)
        return;
    check = aq_alloc(sizeof(*check));
    check->rights = rights;
    rights->check_count++;
    if (rights_read_question(check, id, msg))
        store_read(core_store(rights->api->core), rights_check_run, rights_check_on_run, check);
    else
        rights_check_free(check);
}

/* ---- life ---- */

struct folder_rights *folder_rights_new(struct api *api)
{
    struct folder_rights *rights = aq_alloc(sizeof(*rights));

    rights->api = api;
    storage_hosts_set_check(api->folder->hosts, folder_rights_on_check, rights);
    return rights;
}

void folder_rights_stop(struct folder_rights *rights)
{
    rights->is_stopped = true;
}

void folder_rights_free(struct folder_rights *rights)
{
    free(rights);
}
