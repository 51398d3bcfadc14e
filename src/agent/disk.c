#include "agent/disk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/accepted.h"
#include "agent/folder.h"
#include "base/list.h"

struct queued {
    struct list link;
    struct disk_job job;
    struct aq_error err;
};

struct disk {
    uv_loop_t *loop;
    char *state;
    struct folders folders;   /* the worker's while is_busy, as is 'accepted' */
    struct accepted *accepted;
    struct list waiting;      /* struct queued */
    struct list running;      /* the batch in the worker thread */
    uv_work_t work;
    bool is_busy, is_closing;
};

/* ---- paths ---- */

char *disk_kernel_path(const struct disk *disk, const struct uuid *id, const char *rest)
{
    char text[UUID_TEXT_MAX];

    return aq_format("%s/kernels/%s%s%s", disk->state, uuid_format(id, text), rest[0] ? "/" : "",
                     rest);
}

char *disk_run_path(const struct disk *disk, const struct uuid *id, int64_t attempt)
{
    char rest[32];

    (void)snprintf(rest, sizeof(rest), "run/%" PRId64, attempt);
    return disk_kernel_path(disk, id, rest);
}

char *disk_kept_path(const struct disk *disk, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return aq_format("%s/logs/%s", disk->state, uuid_format(id, text));
}

int64_t disk_newest_attempt(const char *folder)
{
    DIR *dir = opendir(folder);
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

static int perform(struct disk *disk, struct disk_job *job, struct aq_error *err)
{
    switch (job->action) {
    case DISK_CREATE:
        return folder_create(&disk->folders, job, err);
    case DISK_REPLACE:
        return folder_replace(&disk->folders, job, err);
    case DISK_DESCRIBE:
        return folder_describe(&disk->folders, job, err);
    case DISK_INTEND:
        return folder_intend(&disk->folders, job, err);
    case DISK_CONCLUDE:
        return folder_conclude(&disk->folders, job, err);
    case DISK_FORGET:
        return folder_forget(&disk->folders, job, err);
    case DISK_PRUNE:
        return folder_prune(&disk->folders, job, err);
    }
    return 0;
}

static bool is_order(const struct disk_job *job)
{
    return job->action == DISK_CREATE || job->action == DISK_REPLACE;
}

/* Do one job and note it for accepted_write(). */
static bool perform_noted(struct disk *disk, struct queued *q)
{
    if (perform(disk, &q->job, &q->err) < 0)
        return false;
    if (is_order(&q->job))
        return accepted_note(disk->accepted, &q->job.id, q->job.attempt, &q->err) == 0;
    if (q->job.action == DISK_FORGET) /* if not, it is forgotten once more */
        (void)accepted_note(disk->accepted, &q->job.id, 0, NULL);
    return false;
}

/* Orders that are not durable are not accepted. */
static void refuse_orders(struct disk *disk, const struct aq_error *why)
{
    LIST_FOREACH(it, &disk->running) {
        struct queued *q = LIST_ENTRY(it, struct queued, link);

        if (is_order(&q->job) && !q->err.code)
            q->err = *why;
        if (q->job.action != DISK_CREATE)
            continue;
        folder_undo_create(&disk->folders, &q->job);
        (void)accepted_note(disk->accepted, &q->job.id, 0, NULL);
    }
}

static void on_work(uv_work_t *work)
{
    struct disk *disk = work->data;
    bool has_orders = false;
    struct aq_error err = { 0 };

    LIST_FOREACH(it, &disk->running)
        has_orders = perform_noted(disk, LIST_ENTRY(it, struct queued, link)) || has_orders;
    /* one flush for all of them */
    if (accepted_write(disk->accepted, has_orders, &err) < 0 && has_orders)
        refuse_orders(disk, &err);
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

static void start(struct disk *disk);

static void disk_release(struct disk *disk)
{
    folders_close(&disk->folders);
    accepted_free(disk->accepted);
    free(disk->state);
    free(disk);
}

static void on_worked(uv_work_t *work, int status)
{
    struct disk *disk = work->data;

    (void)status; /* nobody cancels it */
    LIST_FOREACH(it, &disk->running) {
        struct queued *q = LIST_ENTRY(it, struct queued, link);

        list_remove(it);
        if (!disk->is_closing && q->job.on_done)
            q->job.on_done(q->job.data, &q->job, &q->err);
        disk_job_done(&q->job);
        free(q);
    }
    disk->is_busy = false; /* not before: callbacks add jobs */
    if (!list_is_empty(&disk->waiting))
        start(disk);
    else if (disk->is_closing)
        disk_release(disk);
}

static void start(struct disk *disk)
{
    LIST_FOREACH(it, &disk->waiting) {
        list_remove(it);
        list_add(&disk->running, it);
    }
    disk->is_busy = true;
    (void)uv_queue_work(disk->loop, &disk->work, on_work, on_worked);
}

int disk_add(struct disk *disk, struct disk_job *job, struct aq_error *err)
{
    struct queued *q = calloc(1, sizeof(*q));

    if (!q) {
        disk_job_done(job);
        return aq_fail(err, ENOMEM, "disk");
    }
    q->job = *job;
    list_add(&disk->waiting, &q->link);
    if (!disk->is_busy)
        start(disk);
    return 0;
}

int disk_new(uv_loop_t *loop, const char *state, struct disk **ret, struct aq_error *err)
{
    struct disk *disk = calloc(1, sizeof(*disk));
    int r;

    if (!disk)
        return aq_fail(err, ENOMEM, "disk");
    disk->loop = loop;
    disk->work.data = disk;
    list_init(&disk->waiting);
    list_init(&disk->running);
    r = folders_open(&disk->folders, state, err);
    if (r == 0)
        r = accepted_open(state, &disk->accepted, err);
    if (r == 0 && !(disk->state = strdup(state)))
        r = aq_fail(err, ENOMEM, "disk");
    if (r < 0)
        disk_release(disk);
    else
        *ret = disk;
    return r;
}

void disk_free(struct disk *disk)
{
    if (!disk)
        return;
    disk->is_closing = true;
    if (!disk->is_busy)
        disk_release(disk);
}
