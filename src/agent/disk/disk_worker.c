/* SPDX-License-Identifier: Apache-2.0 */
/* disk_worker.c - a worker thread that changes kernel directories, several changes to a flush */
#include "agent/disk/disk_worker.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/disk/accepted_log.h"
#include "agent/disk/kernel_directory.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/memory.h"

struct disk_worker_entry {
    struct list link;
    struct disk_job job;
    struct aq_error err;
};

struct disk_worker {
    uv_loop_t *loop;
    char *state;
    struct kernel_directories directories; /* the worker's while is_busy, as is 'accepted' */
    struct accepted_log *accepted;
    struct list waiting; /* struct disk_worker_entry */
    struct list running; /* the batch in the worker thread */
    uv_work_t work;
    bool is_busy, is_closing;
    atomic_bool lacks_room; /* the last write failed for lack of it */
};

/* ---- paths ---- */

char *disk_worker_kernel_path(const struct disk_worker *disk, const struct uuid *id,
                              const char *rest)
{
    char text[UUID_TEXT_MAX];

    return aq_format("%s/kernels/%s%s%s", disk->state, uuid_format(id, text), rest[0] ? "/" : "",
                     rest);
}

char *disk_worker_run_path(const struct disk_worker *disk, const struct uuid *id, int64_t attempt)
{
    char rest[32];

    (void)snprintf(rest, sizeof(rest), "run/%" PRId64, attempt);
    return disk_worker_kernel_path(disk, id, rest);
}

char *disk_worker_log_path(const struct disk_worker *disk, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return aq_format("%s/logs/%s", disk->state, uuid_format(id, text));
}

int64_t disk_worker_newest_attempt(const char *directory)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    int64_t newest = 0;

    while (dir && (entry = readdir(dir))) {
        char *end;
        long long number = strtoll(entry->d_name, &end, 10);

        if (*end == '\0' && number > newest)
            newest = number;
    }
    if (dir)
        (void)closedir(dir);
    return newest;
}

/* ---- in the worker thread ---- */

static int disk_worker_perform(struct disk_worker *disk, struct disk_job *job, struct aq_error *err)
{
    switch (job->action) {
    case DISK_CREATE:
        return kernel_directory_create(&disk->directories, job, err);
    case DISK_REPLACE:
        return kernel_directory_replace(&disk->directories, job, err);
    case DISK_DESCRIBE:
        return kernel_directory_describe(&disk->directories, job, err);
    case DISK_INTEND:
        return kernel_directory_intend(&disk->directories, job, err);
    case DISK_CONCLUDE:
        return kernel_directory_conclude(&disk->directories, job, err);
    case DISK_FORGET:
        return kernel_directory_forget(&disk->directories, job, err);
    case DISK_PRUNE:
        return kernel_directory_prune(&disk->directories, job, err);
    case DISK_TRY:
        return kernel_directories_try_room(&disk->directories, err);
    }
    return 0;
}

static bool disk_worker_is_command(const struct disk_job *job)
{
    return job->action == DISK_CREATE || job->action == DISK_REPLACE;
}

/* Do one job and note it for accepted_log_write(). True if it was a command. */
static bool disk_worker_perform_noted(struct disk_worker *disk, struct disk_worker_entry *q)
{
    if (disk_worker_perform(disk, &q->job, &q->err) < 0)
        return false;
    if (disk_worker_is_command(&q->job))
        accepted_log_note(disk->accepted, &q->job.id, q->job.attempt);
    else if (q->job.action == DISK_FORGET)
        accepted_log_note(disk->accepted, &q->job.id, 0);
    return disk_worker_is_command(&q->job);
}

/* Commands that are not durable are not accepted. */
static void disk_worker_reject_commands(struct disk_worker *disk, const struct aq_error *why)
{
    LIST_FOREACH(it, &disk->running) {
        struct disk_worker_entry *q = LIST_ENTRY(it, struct disk_worker_entry, link);

        if (disk_worker_is_command(&q->job) && !q->err.code)
            q->err = *why;
        if (q->job.action != DISK_CREATE)
            continue;
        kernel_directory_undo_create(&disk->directories, &q->job);
        accepted_log_note(disk->accepted, &q->job.id, 0);
    }
}

static void disk_on_work(uv_work_t *work)
{
    struct disk_worker *disk = work->data;
    bool has_commands = false, lacks_room = false;
    struct aq_error err = { 0 };
    int r;

    LIST_FOREACH(it, &disk->running) {
        struct disk_worker_entry *q = LIST_ENTRY(it, struct disk_worker_entry, link);

        has_commands = disk_worker_perform_noted(disk, q) || has_commands;
        lacks_room = lacks_room || fs_is_out_of_room(q->err.code);
    }
    /* one flush for all of them */
    r = accepted_log_write(disk->accepted, has_commands, &err);
    if (r < 0 && has_commands)
        disk_worker_reject_commands(disk, &err);
    atomic_store(&disk->lacks_room, lacks_room || fs_is_out_of_room(-r));
}

/* ---- on the loop ---- */

void disk_job_done(struct disk_job *job)
{
    free(job->spec);
    free(job->resource);
    free(job->environ);
    free(job->text);
    if (job->program.data) /* a job without was zeroed, which is no strbuf */
        strbuf_done(&job->program);
}

static void disk_start(struct disk_worker *disk);

static void disk_release(struct disk_worker *disk)
{
    kernel_directories_close(&disk->directories);
    accepted_log_free(disk->accepted);
    free(disk->state);
    free(disk);
}

static void disk_on_worked(uv_work_t *work, int status)
{
    struct disk_worker *disk = work->data;

    (void)status; /* nobody cancels it */
    LIST_FOREACH(it, &disk->running) {
        struct disk_worker_entry *q = LIST_ENTRY(it, struct disk_worker_entry, link);

        list_remove(it);
        if (!disk->is_closing && q->job.on_done)
            q->job.on_done(q->job.data, &q->job, &q->err);
        disk_job_done(&q->job);
        free(q);
    }
    disk->is_busy = false; /* not before: callbacks add jobs */
    if (!list_is_empty(&disk->waiting))
        disk_start(disk);
    else if (disk->is_closing)
        disk_release(disk);
}

static void disk_start(struct disk_worker *disk)
{
    LIST_FOREACH(it, &disk->waiting) {
        list_remove(it);
        list_add(&disk->running, it);
    }
    disk->is_busy = true;
    (void)uv_queue_work(disk->loop, &disk->work, disk_on_work, disk_on_worked);
}

void disk_worker_add(struct disk_worker *disk, const struct disk_job *job)
{
    struct disk_worker_entry *q = aq_alloc(sizeof(*q));

    q->job = *job;
    list_add(&disk->waiting, &q->link);
    if (!disk->is_busy)
        disk_start(disk);
}

int disk_worker_new(uv_loop_t *loop, const char *state, struct disk_worker **ret,
                    struct aq_error *err)
{
    struct disk_worker *disk = aq_alloc(sizeof(*disk));
    int r;

    disk->loop = loop;
    disk->work.data = disk;
    disk->state = aq_strdup(state);
    list_init(&disk->waiting);
    list_init(&disk->running);
    r = kernel_directories_open(&disk->directories, state, err);
    if (r == 0)
        r = accepted_log_open(state, &disk->accepted, err);
    if (r == 0)
        atomic_init(&disk->lacks_room, accepted_log_is_behind(disk->accepted));
    if (r < 0)
        disk_release(disk);
    else
        *ret = disk;
    return r;
}

bool disk_worker_lacks_room(const struct disk_worker *disk)
{
    return atomic_load(&disk->lacks_room);
}

void disk_worker_free(struct disk_worker *disk)
{
    if (!disk)
        return;
    disk->is_closing = true;
    if (!disk->is_busy)
        disk_release(disk);
}
