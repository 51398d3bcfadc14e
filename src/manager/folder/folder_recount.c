/* SPDX-License-Identifier: Apache-2.0 */
/* folder_recount.c - see folder_recount.h */
#include "manager/folder/folder_recount.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "http/defer.h"
#include "manager/core/bus.h"
#include "manager/folder/folder_call.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_feature.h"

#define TICK_MSEC 5000
#define TICKS_BETWEEN 24 /* while a session mounts the folder */

/* A folder whose host is to be asked. */
struct recount_folder {
    struct uuid id;
    char host[FOLDER_HOST_MAX + 1];
};

struct folder_recount {
    struct api *api;
    struct core_subscriber *subscriber;
    struct defer *timer;
    struct map folders; /* id -> struct recount_folder */
    unsigned ticks;
};

static void recount_mark(struct folder_recount *recount, const struct uuid *id, const char *host)
{
    struct recount_folder *folder;

    if (strlen(host) > FOLDER_HOST_MAX || map_get(&recount->folders, id->bytes, sizeof(id->bytes)))
        return;
    folder = aq_alloc(sizeof(*folder));
    folder->id = *id;
    strcpy(folder->host, host);
    (void)map_set(&recount->folders, folder->id.bytes, sizeof(folder->id.bytes), folder);
}

static void recount_mark_all(struct folder_recount *recount, const struct folder_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        if (!mounts->items[i].is_read_only)
            recount_mark(recount, &mounts->items[i].folder, mounts->items[i].host);
}

/* core_event_fn */
static void recount_on_event(void *data, const struct core_event *event)
{
    if (strcmp(event->name, "session_terminated") == 0 && event->session->spec)
        recount_mark_all(data, &event->session->spec->mounts);
}

/* storage_done_fn: the size comes as a message of its own. */
static void recount_on_answer(void *data, json_t *answer, const struct aq_error *err)
{
    (void)data;
    (void)answer;
    (void)err;
}

static bool recount_ask(struct folder_recount *recount, const struct recount_folder *folder)
{
    struct storage_call *ignored;
    char id[UUID_TEXT_MAX];
    json_auto_t *args = json_pack("{s:s}", "id", uuid_format(&folder->id, id));

    return args
           && storage_ask(recount->api->folder->hosts, folder->host, "recount", args,
                          recount_on_answer, NULL, &ignored, NULL)
                  == 0;
}

/* A host that is away, or has too much to do, is asked again at the next tick. */
static void recount_on_tick(void *data)
{
    struct folder_recount *recount = data;
    const struct core *core = recount->api->core;

    if (recount->ticks++ % TICKS_BETWEEN == 0)
        for (const struct session *s = NULL; (s = core_next_session(core, s));)
            recount_mark_all(recount, folder_mounts_of(s));
    for (size_t i = recount->folders.count; i-- > 0;) {
        struct recount_folder *folder = recount->folders.entries[i].value;

        if (!recount_ask(recount, folder))
            continue;
        (void)map_remove(&recount->folders, folder->id.bytes, sizeof(folder->id.bytes));
        free(folder);
    }
    defer_start(recount->timer, TICK_MSEC);
}

/* store_tx_fn */
static int recount_find_unmeasured(struct store_tx *tx, void *data, struct aq_error *err)
{
    return folder_list_unmeasured(tx, data, err);
}

int folder_recount_new(struct api *api, struct folder_recount **ret, struct aq_error *err)
{
    struct folder_recount *recount = aq_alloc(sizeof(*recount));
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const struct folder *rows;
    int r;

    *ret = recount;
    recount->api = api;
    recount->timer = defer_new(core_loop(api->core), recount_on_tick, recount);
    recount->subscriber = core_subscribe(api->core, NULL, recount_on_event, recount);
    if ((r = store_call(core_store(api->core), recount_find_unmeasured, &page, err)) < 0)
        return r;
    rows = page->rows;
    for (size_t i = 0; i < page->count; i++)
        recount_mark(recount, &rows[i].id, rows[i].host);
    defer_start(recount->timer, TICK_MSEC);
    return 0;
}

void folder_recount_stop(struct folder_recount *recount)
{
    if (recount->subscriber)
        core_unsubscribe(recount->api->core, AQ_TAKE(recount->subscriber));
    defer_cancel(AQ_TAKE(recount->timer));
}

void folder_recount_free(struct folder_recount *recount)
{
    if (!recount)
        return;
    folder_recount_stop(recount);
    for (size_t i = 0; i < recount->folders.count; i++)
        free(recount->folders.entries[i].value);
    map_done(&recount->folders);
    free(recount);
}
