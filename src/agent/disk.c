#include "agent/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/list.h"

#define SPARES_MAX 128

struct queued {
    struct list link;
    struct disk_job job;
    struct aq_error err;
};

struct disk {
    uv_loop_t *loop;
    char *state;
    int kernels, logs, spare_folder;
    struct list waiting;      /* struct queued */
    struct list running;      /* the batch in the worker thread */
    uv_work_t work;
    bool is_busy, is_closing;
    char *spares[SPARES_MAX]; /* names in spares/; the worker's while is_busy */
    size_t spare_count;
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

bool disk_is_leftover(const char *name)
{
    return strncmp(name, ".new-", 5) == 0 || strncmp(name, ".gone-", 6) == 0;
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

static int make_folder(int at, const char *path, struct aq_error *err)
{
    if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "mkdir '%s'", path);
    return 0;
}

static int write_plain(int at, const char *path, const char *text, size_t len, int *ret_fd,
                       struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd =
        openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", path);
    r = fs_write_all(fd, text, len);
    if (r < 0)
        return aq_fail(err, -r, "write '%s': %s", path, strerror(-r));
    if (ret_fd)
        *ret_fd = AQ_TAKE_FD(fd);
    return 0;
}

static int write_text(int at, const char *path, const char *text, struct aq_error *err)
{
    return write_plain(at, path, text, strlen(text), NULL, err);
}

/* The parts that are given, below the kernel's folder. Only the order must
 * survive a power failure: programs do not, and devices can be given again.
 */
static int write_parts(int folder, const struct disk_job *job, struct aq_error *err)
{
    char run[32], program[48];
    int r = make_folder(folder, "config", err);

    (void)snprintf(run, sizeof(run), "run/%" PRId64, job->attempt);
    if (r == 0)
        r = make_folder(folder, "work", err);
    if (r == 0)
        r = make_folder(folder, "run", err);
    if (r == 0)
        r = make_folder(folder, run, err);
    (void)snprintf(program, sizeof(program), "%s/program", run);
    if (r == 0 && job->program.len)
        r = write_plain(folder, program, job->program.data, job->program.len, NULL, err);
    if (r == 0 && job->resource)
        r = write_text(folder, "config/resource.txt", job->resource, err);
    if (r == 0 && job->environ)
        r = write_text(folder, "config/environ.txt", job->environ, err);
    if (r == 0 && job->uid != (uid_t)-1 && fchownat(folder, "work", job->uid, job->gid, 0) < 0)
        r = aq_fail_errno(err, "give the work folder to user %u", (unsigned)job->uid);
    return r;
}

/* A used folder must not show what its former kernel left, not even after a
 * power failure.
 */
static int renew(int folder, const struct disk_job *job, struct aq_error *err)
{
    char run[32];
    AQ_CLEANUP(aq_closep) int fd = -1;

    if (!job->resource)
        (void)unlinkat(folder, "config/resource.txt", 0);
    (void)snprintf(run, sizeof(run), "run/%" PRId64, job->attempt);
    fd = openat(folder, run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? aq_fail_errno(err, "sync the run folder") : 0;
}

static int fill_new(int folder, const struct disk_job *job, bool is_used, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int spec = -1;
    int r = write_plain(folder, "spec.json", job->spec, strlen(job->spec), &spec, err);

    if (r == 0)
        r = write_parts(folder, job, err);
    if (r == 0 && is_used)
        r = renew(folder, job, err);
    if (r == 0 && (fsync(spec) < 0 || fsync(folder) < 0))
        r = aq_fail_errno(err, "sync the kernel's folder");
    AQ_FAULT("agent.create.written");
    return r;
}

/* A spare folder under the new name, if there is one. */
static bool take_spare(struct disk *disk, const char *name)
{
    AQ_CLEANUP(aq_freep) char *spare = NULL;

    if (disk->spare_count == 0)
        return false;
    spare = disk->spares[--disk->spare_count];
    return renameat(disk->spare_folder, spare, disk->kernels, name) == 0;
}

static int do_create(struct disk *disk, const struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], temporary[UUID_TEXT_MAX + 8];
    AQ_CLEANUP(aq_closep) int folder = -1;
    bool is_used;
    int r;

    (void)snprintf(temporary, sizeof(temporary), ".new-%s", uuid_format(&job->id, id));
    is_used = take_spare(disk, temporary);
    r = is_used ? 0 : make_folder(disk->kernels, temporary, err);
    if (r < 0)
        return r;
    folder = openat(disk->kernels, temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = folder < 0 ? aq_fail_errno(err, "open '%s'", temporary)
                   : fill_new(folder, job, is_used, err);
    if (r == 0 && renameat(disk->kernels, temporary, disk->kernels, id) < 0)
        r = aq_fail_errno(err, "rename to '%s'", id);
    if (r < 0)
        (void)fs_remove_tree(disk->kernels, temporary, NULL);
    AQ_FAULT("agent.create.renamed");
    return r;
}

static int do_replace(struct disk *disk, const struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_closep) int folder =
        openat(disk->kernels, uuid_format(&job->id, id), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (folder < 0)
        return aq_fail_errno(err, "open the folder of kernel %s", id);
    r = write_parts(folder, job, err);
    if (r == 0 && job->spec)
        r = fs_write_atomic(folder, "spec.json", job->spec, strlen(job->spec), 0600, err);
    AQ_FAULT("agent.replace.written");
    return r;
}

/* What a monitor would have written of a program that it did not start. */
static int do_conclude(struct disk *disk, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *run = disk_run_path(disk, &job->id, job->attempt);
    AQ_CLEANUP(aq_freep) char *path = run ? aq_format("%s/exit.json", run) : NULL;
    struct jsonw w = jsonw_make(&text);
    int r;

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "version", 1);
    jsonw_member_str(&w, "reason", job->reason);
    jsonw_member_str(&w, "text", job->text);
    jsonw_member_null(&w, "exit_code");
    jsonw_member_null(&w, "signal");
    jsonw_member_int(&w, "started_at", 0);
    jsonw_member_int(&w, "ended_at", clock_realtime_usec());
    jsonw_object_end(&w);
    if (!path || !strbuf_ok(&text))
        return aq_fail(err, ENOMEM, "exit record");
    r = fs_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err);
    AQ_FAULT("agent.destroy.recorded");
    return r;
}

static int64_t file_size(int at, const char *path)
{
    struct stat st;

    return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : 0;
}

/* Move the newest run folder to logs/, if it has any output. */
static int64_t keep_log(struct disk *disk, int folder, const char *id, int64_t attempt)
{
    static const char *const useless[] = { "program", "monitor.sock", "lock", "started" };
    char run[32], kept[UUID_TEXT_MAX + 32], path[64];
    int64_t size;

    (void)snprintf(run, sizeof(run), "run/%" PRId64, attempt);
    (void)snprintf(path, sizeof(path), "%s/log", run);
    size = file_size(folder, path);
    (void)snprintf(path, sizeof(path), "%s/log.1", run);
    size += file_size(folder, path);
    if (size == 0 || (mkdirat(disk->logs, id, 0700) < 0 && errno != EEXIST))
        return 0;
    for (size_t i = 0; i < AQ_COUNT(useless); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", run, useless[i]);
        (void)unlinkat(folder, path, 0);
    }
    (void)snprintf(kept, sizeof(kept), "%s/%" PRId64, id, attempt);
    if (renameat(folder, run, disk->logs, kept) < 0)
        return 0;
    AQ_FAULT("agent.forget.log-kept");
    return size;
}

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* True if the folder has no entries but, perhaps, those of 'except'. */
static bool is_empty(int at, const char *path, const char *const *except)
{
    static const char *const dots[] = { ".", "..", NULL };
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry = NULL;

    if (!dir) {
        aq_closep(&fd);
        return false;
    }
    while ((entry = readdir(dir))) {
        if (!is_among(dots, entry->d_name) && !is_among(except, entry->d_name))
            break;
    }
    (void)closedir(dir);
    return entry == NULL;
}

/* Empty the folder of a kernel that ran once and left no files behind, and
 * keep it for another one. False if it has to be removed.
 */
static bool make_spare(struct disk *disk, int folder, const char *gone, const char *id)
{
    static const char *const traces[] = { "run/1/started", "run/1/exit.json", "run/1/log",
                                          "run/1/monitor.sock" };
    static const char *const none[] = { NULL }, *const first[] = { "1", NULL },
                      *const reused[] = { "lock", "program", NULL };
    char *spare = disk->spare_count < SPARES_MAX ? strdup(id) : NULL;

    if (!spare)
        return false;
    for (size_t i = 0; i < AQ_COUNT(traces); i++)
        (void)unlinkat(folder, traces[i], 0);
    if (!is_empty(folder, "work", none) || !is_empty(folder, "run", first)
        || (faccessat(folder, "run/1", F_OK, 0) == 0 && !is_empty(folder, "run/1", reused))
        || renameat(disk->kernels, gone, disk->spare_folder, spare) < 0) {
        free(spare);
        return false;
    }
    disk->spares[disk->spare_count++] = spare;
    return true;
}

static int do_forget(struct disk *disk, struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], gone[UUID_TEXT_MAX + 8];
    AQ_CLEANUP(aq_closep) int folder =
        openat(disk->kernels, uuid_format(&job->id, id), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (folder < 0)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "open the folder of kernel %s", id);
    job->kept_bytes = keep_log(disk, folder, id, job->attempt);
    (void)snprintf(gone, sizeof(gone), ".gone-%s", id);
    (void)fs_remove_tree(disk->kernels, gone, NULL);
    if (renameat(disk->kernels, id, disk->kernels, gone) < 0)
        return aq_fail_errno(err, "rename the folder of kernel %s", id);
    AQ_FAULT("agent.forget.renamed");
    r = make_spare(disk, folder, gone, id) ? 0 : fs_remove_tree(disk->kernels, gone, err);
    AQ_FAULT("agent.forget.removed");
    return r;
}

static int do_prune(struct disk *disk, const struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    int r = fs_remove_tree(disk->logs, uuid_format(&job->id, id), err);

    AQ_FAULT("agent.log.pruned");
    return r;
}

static int perform(struct disk *disk, struct disk_job *job, struct aq_error *err)
{
    switch (job->action) {
    case DISK_CREATE:
        return do_create(disk, job, err);
    case DISK_REPLACE:
        return do_replace(disk, job, err);
    case DISK_CONCLUDE:
        return do_conclude(disk, job, err);
    case DISK_FORGET:
        return do_forget(disk, job, err);
    case DISK_PRUNE:
        return do_prune(disk, job, err);
    case DISK_CLEAR:
        return fs_remove_tree(disk->kernels, job->leftover, err);
    }
    return 0;
}

static void on_work(uv_work_t *work)
{
    struct disk *disk = work->data;
    bool has_new = false;
    struct aq_error err = { 0 };

    LIST_FOREACH(it, &disk->running) {
        struct queued *q = LIST_ENTRY(it, struct queued, link);

        if (perform(disk, &q->job, &q->err) == 0)
            has_new = has_new || q->job.action == DISK_CREATE;
    }
    /* one sync makes all new names durable, one more the loss of former ones */
    if (!has_new || (fsync(disk->kernels) == 0 && fsync(disk->spare_folder) == 0))
        return;
    (void)aq_fail_errno(&err, "sync the folder of kernels");
    LIST_FOREACH(it, &disk->running) {
        struct queued *q = LIST_ENTRY(it, struct queued, link);

        if (q->job.action == DISK_CREATE && !q->err.code)
            q->err = err;
    }
}

/* ---- on the loop ---- */

void disk_job_done(struct disk_job *job)
{
    free(job->spec);
    free(job->resource);
    free(job->environ);
    free(job->leftover);
    free(job->text);
    if (job->program.data) /* a job without was zeroed, which is no strbuf */
        strbuf_done(&job->program);
}

static void start(struct disk *disk);

static void disk_release(struct disk *disk)
{
    while (disk->spare_count) {
        char *spare = disk->spares[--disk->spare_count];

        (void)fs_remove_tree(disk->spare_folder, spare, NULL);
        free(spare);
    }
    aq_closep(&disk->spare_folder);
    aq_closep(&disk->kernels);
    aq_closep(&disk->logs);
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

static int open_folder(const char *state, const char *name, int *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", state, name);
    int r = path ? fs_mkdirs(path, 0700, err) : aq_fail(err, ENOMEM, "disk");

    if (r < 0)
        return r;
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? aq_fail_errno(err, "open '%s'", path) : 0;
}

/* Whatever a former process kept there is removed. */
static int open_spares(struct disk *disk, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/spares", disk->state);
    int r = path ? fs_remove_tree(AT_FDCWD, path, err) : aq_fail(err, ENOMEM, "disk");

    return r < 0 ? r : open_folder(disk->state, "spares", &disk->spare_folder, err);
}

int disk_new(uv_loop_t *loop, const char *state, struct disk **ret, struct aq_error *err)
{
    struct disk *disk = calloc(1, sizeof(*disk));
    int r;

    if (!disk)
        return aq_fail(err, ENOMEM, "disk");
    disk->loop = loop;
    disk->kernels = disk->logs = disk->spare_folder = -1;
    disk->work.data = disk;
    list_init(&disk->waiting);
    list_init(&disk->running);
    disk->state = strdup(state);
    r = disk->state ? open_folder(state, "kernels", &disk->kernels, err)
                    : aq_fail(err, ENOMEM, "disk");
    if (r == 0)
        r = open_folder(state, "logs", &disk->logs, err);
    if (r == 0)
        r = open_spares(disk, err);
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
