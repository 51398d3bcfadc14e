/* SPDX-License-Identifier: Apache-2.0 */
/* manager.c - the storage host's connection to the manager, which asks it */
#include <sys/statvfs.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "http/defer.h"
#include "storage/storage.h"

#define NEWS_MSEC 1000            /* between messages of folders' sizes */
#define MEASURE_MSEC (60u * 1000) /* between looks at how full volumes are */

static void manager_say_volumes(const struct storage *storage)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct message msg = { .type = MSG_STORAGE_HELLO };
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    jsonw_array_begin(&w);
    for (size_t i = 0; i < storage->volume_count; i++) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "name", storage->volumes[i].name);
        jsonw_member_str(&w, "backend", "vfs");
        jsonw_key(&w, "capabilities");
        jsonw_array_begin(&w);
        jsonw_str(&w, "vfolder");
        jsonw_array_end(&w);
        jsonw_member_int(&w, "used_bytes", (int64_t)storage->volumes[i].room.used);
        jsonw_member_int(&w, "capacity_bytes", (int64_t)storage->volumes[i].room.capacity);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    msg.storage_hello.volumes = out.data;
    if (front_send(storage->front, &msg, &err) < 0)
        log_error("cannot report the volumes to the manager: %s", err.text);
}

/* ---- how full volumes are ---- */

static void manager_run_measure(struct work *work)
{
    struct volume *volume = AQ_CONTAINER_OF(work, struct volume, measure);
    struct statvfs fs;

    volume->room_found = (struct volume_room){ 0 };
    if (!volume_is_away(&volume->dir) && statvfs(volume->dir.path, &fs) == 0)
        volume->room_found = (struct volume_room){
            .used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize,
            .capacity = (uint64_t)fs.f_blocks * fs.f_frsize,
        };
}

static void manager_on_measured(struct work *work)
{
    struct volume *volume = AQ_CONTAINER_OF(work, struct volume, measure);
    struct storage *storage = volume->storage;

    volume->is_measuring = false;
    volume->room = volume->room_found;
    if (!storage->http.is_closing && front_is_connected(storage->front))
        manager_say_volumes(storage);
    storage_settle(storage);
}

/* One that hangs is asked again when it has answered. */
static void manager_measure(struct storage *storage)
{
    for (size_t i = 0; i < storage->volume_count; i++) {
        struct volume *volume = &storage->volumes[i];

        volume->is_measuring = volume->is_measuring
                               || work_submit(&volume->lanes[WORK_SHORT], &volume->measure, NULL,
                                              manager_run_measure, manager_on_measured, NULL)
                                      == 0;
    }
}

static void manager_on_measure(void *data)
{
    struct storage *storage = data;

    storage->measure = defer_call(storage->loop, MEASURE_MSEC, manager_on_measure, storage);
    manager_measure(storage);
}

/* ---- what folders hold ---- */

static void manager_tell_size(const struct volume *volume, const struct uuid *folder,
                              const struct tree_usage *usage)
{
    const struct message msg = { .type = MSG_STORAGE_SIZE,
                                 .storage_size = { .volume = volume->name,
                                                   .folder = *folder,
                                                   .files = (int64_t)usage->files,
                                                   .bytes = (int64_t)usage->bytes } };

    (void)front_send(volume->storage->front, &msg, NULL);
}

static void manager_on_news(void *data)
{
    struct storage *storage = data;

    storage->news = NULL;
    if (front_is_connected(storage->front)) /* else on_connected sends it */
        usage_take_news(storage->usage, manager_tell_size);
}

void manager_tell_sizes(struct storage *storage)
{
    if (!storage->news && usage_has_news(storage->usage))
        storage->news = defer_call(storage->loop, NEWS_MSEC, manager_on_news, storage);
}

/* ---- the connection ---- */

void manager_on_connected(void *self)
{
    struct storage *storage = self;

    manager_say_volumes(storage);
    manager_measure(storage);
    manager_tell_sizes(storage);
    if (!storage->measure)
        storage->measure = defer_call(storage->loop, MEASURE_MSEC, manager_on_measure, storage);
    rights_on_connected(storage->rights);
}

void manager_on_message(void *self, const struct message *msg)
{
    struct storage *storage = self;

    if (msg->type == MSG_STORAGE_ASK)
        op_begin(storage, &msg->storage_ask);
    else if (msg->type == MSG_STORAGE_CHECKED)
        rights_on_checked(storage->rights, &msg->storage_checked);
    else if (msg->type == MSG_STORAGE_CANCEL)
        op_cancel(storage, &msg->storage_cancel.request_id);
}

void manager_on_disconnected(void *self)
{
    const struct storage *storage = self;

    rights_on_disconnected(storage->rights);
}
