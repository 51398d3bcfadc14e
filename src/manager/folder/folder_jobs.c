/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are removed, until nothing is left of them. */
#include "manager/folder/folder_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_feature.h"
#include "store/folder.h"
#include "store/folder.h"

#define AGAIN_MSEC 5000

struct folder_jobs {
    struct api *api;
    struct defer *timer;
    struct list purges;
    bool is_stopped;
};

struct folder_purge {
    struct list link;
    struct folder_jobs *jobs;
    struct uuid id;
    char host[FOLDER_HOST_MAX + 1];
    bool is_asked, is_warned;
};

/* ---- one folder ---- */

static void folder_purge_free(struct folder_purge *purge)
{
    list_remove(&purge->link);
    free(purge);
}

static int folder_purge_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    return folder_remove(tx, &((const struct folder_purge *)data)->id, err);
}

static void folder_purge_fail(struct folder_purge *purge, const struct aq_error *err)
{
    char id[UUID_TEXT_MAX];

    purge->is_asked = false;
    if (!purge->is_warned && err->code != EHOSTUNREACH)
        log_warning("the files of folder %s on '%s' are not removed yet: %s",
                    uuid_format(&purge->id, id), purge->host, err->text);
    purge->is_warned |= err->code != EHOSTUNREACH;
    defer_start(purge->jobs->timer, AGAIN_MSEC);
}

static void folder_purge_on_removed(void *data, int r, const struct aq_error *err)
{
    struct folder_purge *purge = data;

    if (purge->jobs->is_stopped || r == 0)
        folder_purge_free(purge);
    else
        folder_purge_fail(purge, err);
}

/* Files that are not there are removed. */
static void folder_purge_on_answer(void *data, json_t *answer, const struct aq_error *err)
{
    struct folder_purge *purge = data;

    AQ_FAULT("folder.purge.done");
    if (!answer && err->code != ENOENT)
        folder_purge_fail(purge, err);
    else
        store_write(core_store(purge->jobs->api->core), folder_purge_run, folder_purge_on_removed,
                    purge);
}

static void folder_purge_start(struct folder_purge *purge)
{
    struct storage_call *ignored;
    struct aq_error err = { 0 };
    char id[UUID_TEXT_MAX];
    json_auto_t *args = json_pack("{s:s}", "id", uuid_format(&purge->id, id));

    purge->is_asked = true;
    if (storage_ask(purge->jobs->api->folder->hosts, purge->host, "purge", args,
                    folder_purge_on_answer, purge, &ignored, &err)
        < 0)
        folder_purge_fail(purge, &err);
}

void folder_jobs_purge(struct folder_jobs *jobs, const struct folder *folder)
{
    struct folder_purge *purge;
    size_t len = strlen(folder->host);

    if (len > FOLDER_HOST_MAX) {
        log_error("a folder on '%s' is not removed before the next start: its host has no name "
                  "that is valid",
                  folder->host);
        return;
    }
    purge = aq_alloc(sizeof(*purge));
    purge->jobs = jobs;
    purge->id = folder->id;
    memcpy(purge->host, folder->host, len + 1);
    list_add(&jobs->purges, &purge->link);
    folder_purge_start(purge);
}

static void folder_jobs_try_again(void *data)
{
    struct folder_jobs *jobs = data;

    LIST_FOREACH(it, &jobs->purges) {
        struct folder_purge *purge = LIST_ENTRY(it, struct folder_purge, link);

        if (!purge->is_asked)
            folder_purge_start(purge);
    }
}

/* ---- the start ---- */

/* store_tx_fn */
static int folder_jobs_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct store_page **unfinished = data;
    int r = folder_list_unfinished(tx, unfinished, err);
    struct folder *rows = r == 0 ? (*unfinished)->rows : NULL;

    for (size_t i = 0; r == 0 && i < (*unfinished)->count; i++) {
        rows[i].status = FOLDER_DELETE_ONGOING;
        r = folder_update(tx, &rows[i], err);
    }
    return r;
}

static int folder_jobs_find_automatic(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return folder_has_automatic(tx, err);
}

int folder_jobs_new(struct api *api, struct folder_jobs **ret, struct aq_error *err)
{
    struct folder_jobs *jobs = aq_alloc(sizeof(*jobs));
    AQ_CLEANUP(store_page_freep) struct store_page *unfinished = NULL;
    const struct folder *rows;
    int r;

    jobs->api = api;
    list_init(&jobs->purges);
    *ret = jobs;
    jobs->timer = defer_new(core_loop(api->core), folder_jobs_try_again, jobs);
    if ((r = store_call(core_store(api->core), folder_jobs_run, &unfinished, err)) < 0)
        return r;
    if ((r = store_call(core_store(api->core), folder_jobs_find_automatic, NULL, err)) < 0)
        return r;
    api->folder->has_automatic = r;
    rows = unfinished->rows;
    for (size_t i = 0; i < unfinished->count; i++)
        folder_jobs_purge(jobs, &rows[i]);
    return 0;
}

void folder_jobs_stop(struct folder_jobs *jobs)
{
    jobs->is_stopped = true;
    defer_cancel(AQ_TAKE(jobs->timer));
}

void folder_jobs_free(struct folder_jobs *jobs)
{
    if (!jobs)
        return;
    LIST_FOREACH(it, &jobs->purges)
        folder_purge_free(LIST_ENTRY(it, struct folder_purge, link));
    defer_cancel(jobs->timer);
    free(jobs);
}
