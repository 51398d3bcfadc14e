#include "agent/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/exit_file.h"
#include "base/fault.h"
#include "base/fs.h"

#define NAME_TEXT_MAX 24
#define CONFIG_MODE 0644 /* containers read it as other users; nobody else gets that far */

/* ---- the folders of folders ---- */

static int open_folder(const char *state, const char *name, int *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", state, name);
    int r = path ? fs_mkdirs(path, 0700, err) : aq_fail(err, ENOMEM, "disk");

    if (r < 0)
        return r;
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? aq_fail_errno(err, "open '%s'", path) : 0;
}

int folders_open(struct folders *folders, const char *state, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *spares = aq_format("%s/spares", state);
    int r = spares ? fs_remove_tree(AT_FDCWD, spares, err) : aq_fail(err, ENOMEM, "disk");

    *folders = (struct folders){ .kernels = -1, .logs = -1, .spares = -1 };
    if (r == 0)
        r = open_folder(state, "kernels", &folders->kernels, err);
    if (r == 0)
        r = open_folder(state, "logs", &folders->logs, err);
    if (r == 0)
        r = open_folder(state, "spares", &folders->spares, err);
    return r;
}

static const char *name_text(uint64_t name, char text[NAME_TEXT_MAX])
{
    (void)snprintf(text, NAME_TEXT_MAX, "%" PRIu64, name);
    return text;
}

static int remove_spare(struct folders *folders, uint64_t name, struct aq_error *err)
{
    char text[NAME_TEXT_MAX];

    return fs_remove_tree(folders->spares, name_text(name, text), err);
}

void folders_close(struct folders *folders)
{
    while (folders->spare_count)
        (void)remove_spare(folders, folders->spare_names[--folders->spare_count], NULL);
    aq_closep(&folders->spares);
    aq_closep(&folders->kernels);
    aq_closep(&folders->logs);
}

/* A descriptor, or -1 with errno. */
static int open_kernel(const struct folders *folders, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return openat(folders->kernels, uuid_format(id, text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- a new one ---- */

static int make_folder(int at, const char *path, mode_t mode, struct aq_error *err)
{
    if (mkdirat(at, path, mode) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "mkdir '%s'", path);
    return 0;
}

static int write_text(int at, const char *path, const char *text, mode_t mode,
                      struct aq_error *err)
{
    return text ? fs_overwrite(at, path, text, strlen(text), mode, err) : 0;
}

static int write_config(int folder, const char *path, const char *text, struct aq_error *err)
{
    return text ? fs_write_quick(folder, path, text, strlen(text), CONFIG_MODE, err) : 0;
}

/* The parts that are given, below the kernel's folder. */
static int write_parts(int folder, const struct disk_job *job, struct aq_error *err)
{
    char run[32], program[48];
    int r = make_folder(folder, "config", 0755, err);

    (void)snprintf(run, sizeof(run), "run/%" PRId64, job->attempt);
    (void)snprintf(program, sizeof(program), "%s/program", run);
    if (r == 0)
        r = make_folder(folder, "work", 0700, err);
    if (r == 0)
        r = make_folder(folder, "run", 0700, err);
    if (r == 0)
        r = make_folder(folder, run, 0700, err);
    if (r == 0 && job->program.len)
        r = fs_overwrite(folder, program, job->program.data, job->program.len, 0600, err);
    if (r == 0) /* what a running kernel holds is whole at any time */
        r = job->action == DISK_REPLACE
                ? write_config(folder, "config/resource.txt", job->resource, err)
                : write_text(folder, "config/resource.txt", job->resource, CONFIG_MODE, err);
    if (r == 0)
        r = write_text(folder, "config/environ.txt", job->environ, CONFIG_MODE, err);
    if (r == 0 && job->uid != (uid_t)-1 && fchownat(folder, "work", job->uid, job->gid, 0) < 0)
        r = aq_fail_errno(err, "give the work folder to user %u", (unsigned)job->uid);
    return r;
}

/* What a former kernel could have changed or has left. */
static int renew(int folder, const struct disk_job *job, struct aq_error *err)
{
    if (!job->resource && unlinkat(folder, "config/resource.txt", 0) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "remove 'resource.txt'");
    return fchmodat(folder, "work", 0700, 0) < 0 ? aq_fail_errno(err, "renew the work folder") : 0;
}

static int fill(const struct folders *folders, const char *name, bool is_used,
                const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder =
        openat(folders->spares, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (folder < 0)
        return aq_fail_errno(err, "open 'spares/%s'", name);
    r = write_text(folder, "spec.json", job->spec, 0600, err);
    if (r == 0)
        r = write_parts(folder, job, err);
    if (r == 0 && is_used)
        r = renew(folder, job, err);
    AQ_FAULT("agent.create.written");
    return r;
}

int folder_create(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX], name[NAME_TEXT_MAX];
    bool is_used = folders->spare_count > 0;
    int r = 0;

    (void)name_text(is_used ? folders->spare_names[--folders->spare_count] : ++folders->last_name,
                    name);
    if (!is_used)
        r = make_folder(folders->spares, name, 0700, err);
    if (r == 0)
        r = fill(folders, name, is_used, job, err);
    if (r == 0 && renameat(folders->spares, name, folders->kernels, uuid_format(&job->id, id)) < 0)
        r = aq_fail_errno(err, "rename to '%s'", id);
    if (r < 0)
        (void)fs_remove_tree(folders->spares, name, NULL);
    AQ_FAULT("agent.create.renamed");
    return r;
}

void folder_undo_create(struct folders *folders, const struct disk_job *job)
{
    char id[UUID_TEXT_MAX];

    (void)fs_remove_tree(folders->kernels, uuid_format(&job->id, id), NULL);
}

/* Nothing is flushed: a power failure ends the kernel, too. */
static int write_intended(int folder, int64_t attempt, const char *text, struct aq_error *err)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "run/%" PRId64 "/resize.txt", attempt);
    if (text)
        return fs_write_quick(folder, path, text, strlen(text), 0600, err);
    return unlinkat(folder, path, 0) < 0 && errno != ENOENT ? aq_fail_errno(err, "remove '%s'", path)
                                                             : 0;
}

int folder_intend(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = open_kernel(folders, &job->id);

    return folder < 0 ? aq_fail_errno(err, "open the kernel's folder")
                      : write_intended(folder, job->attempt, job->resource, err);
}

int folder_replace(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = open_kernel(folders, &job->id);
    int r = folder < 0 ? aq_fail_errno(err, "open the kernel's folder")
                       : write_parts(folder, job, err);

    if (r == 0 && job->spec)
        r = fs_write_atomic(folder, "spec.json", job->spec, strlen(job->spec), 0600, err);
    AQ_FAULT("agent.replace.written");
    return r < 0 ? r : write_intended(folder, job->attempt, NULL, err);
}

int folder_describe(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = open_kernel(folders, &job->id);
    int r = folder < 0 ? aq_fail_errno(err, "open the kernel's folder")
                       : write_config(folder, "config/resource.txt", job->resource, err);

    if (r == 0)
        r = write_config(folder, "config/environ.txt", job->environ, err);
    AQ_FAULT("agent.describe.written");
    return r;
}

int folder_conclude(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int folder = open_kernel(folders, &job->id);
    int r = folder < 0 ? aq_fail_errno(err, "open the kernel's folder") : 0;
    char path[48];

    (void)snprintf(path, sizeof(path), "run/%" PRId64 "/exit.json", job->attempt);
    if (r == 0 && exit_file_write(&job->id, job->reason, job->text, &text) < 0)
        r = aq_fail(err, ENOMEM, "exit record");
    if (r == 0)
        r = fs_write_quick(folder, path, text.data, text.len, 0600, err);
    AQ_FAULT("agent.destroy.recorded");
    return r;
}

/* ---- an old one ---- */

static int64_t file_size(int at, const char *path)
{
    struct stat st;

    return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : 0;
}

/* Move the newest attempt's log to logs/, if there is any output. */
static int64_t keep_log(const struct folders *folders, int folder, const char *id, int64_t attempt)
{
    static const char *const halves[] = { "log.1", "log" };
    char kept[UUID_TEXT_MAX + 40], path[48];
    int64_t bytes = 0;

    for (size_t i = 0; i < AQ_COUNT(halves); i++) {
        int64_t size;

        (void)snprintf(path, sizeof(path), "run/%" PRId64 "/%s", attempt, halves[i]);
        size = file_size(folder, path);
        if (size == 0)
            continue;
        (void)mkdirat(folders->logs, id, 0700);
        (void)snprintf(kept, sizeof(kept), "%s/%" PRId64, id, attempt);
        (void)mkdirat(folders->logs, kept, 0700);
        (void)snprintf(kept, sizeof(kept), "%s/%" PRId64 "/%s", id, attempt, halves[i]);
        if (renameat(folder, path, folders->logs, kept) == 0)
            bytes += size;
    }
    if (bytes)
        AQ_FAULT("agent.forget.log-kept");
    return bytes;
}

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static DIR *open_dir(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        aq_closep(&fd);
    return dir;
}

/* The next entry that is none of 'except', or NULL. */
static const char *next_other(DIR *dir, const char *const *except)
{
    static const char *const dots[] = { ".", "..", NULL };
    struct dirent *entry;

    while ((entry = readdir(dir)) && (is_among(dots, entry->d_name) || is_among(except, entry->d_name)))
        ;
    return entry ? entry->d_name : NULL;
}

static bool is_empty(int at, const char *path)
{
    static const char *const none[] = { NULL };
    DIR *dir = open_dir(at, path);
    bool is_empty = dir && !next_other(dir, none);

    if (dir)
        (void)closedir(dir);
    return is_empty;
}

/* Remove all entries of the folder but those of 'except'; false if it cannot. */
static bool strip(int at, const char *path, const char *const *except)
{
    DIR *dir = open_dir(at, path);
    const char *name;
    int r = dir ? 0 : -errno;

    while (r == 0 && (name = next_other(dir, except)))
        r = fs_remove_tree(dirfd(dir), name, NULL);
    if (dir)
        (void)closedir(dir);
    return r == 0;
}

/* What a container has written goes now, its file is used again; but not while
 * that is still mounted, which its lock tells (monitor/image_file.c).
 */
static void empty_scratch(int folder)
{
    AQ_CLEANUP(aq_closep) int fd =
        openat(folder, "scratch.img", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0)
        (void)renameat(folder, "scratch.img", folder, "scratch.img.new");
}

/* Make the folder of a kernel that ran once look as if it had never run. False
 * if it cannot: its program has left files in the work folder, say.
 */
static bool empty(int folder)
{
    static const char *const parts[] = { "spec.json", "config", "work", "run", "scratch.img.new",
                                         NULL },
                      *const files[] = { "resource.txt", "environ.txt", NULL },
                      *const runs[] = { "1", NULL },
                      *const reused[] = { "lock", "program", "log", "exit.tmp", "config.json", NULL };

    (void)renameat(folder, "run/1/started", folder, "run/1/program");
    (void)renameat(folder, "run/1/exit.json", folder, "run/1/exit.tmp");
    empty_scratch(folder);
    return file_size(folder, "run/1/log") == 0 && is_empty(folder, "work")
           && strip(folder, ".", parts) && strip(folder, "config", files)
           && strip(folder, "run", runs) && strip(folder, "run/1", reused);
}

int folder_forget(struct folders *folders, struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = open_kernel(folders, &job->id);
    uint64_t name = ++folders->last_name;
    char id[UUID_TEXT_MAX], text[NAME_TEXT_MAX];
    int r = 0;

    if (folder < 0)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "open the kernel's folder");
    job->kept_bytes = keep_log(folders, folder, uuid_format(&job->id, id), job->attempt);
    if (renameat(folders->kernels, id, folders->spares, name_text(name, text)) < 0)
        return aq_fail_errno(err, "rename the folder of kernel %s", id);
    AQ_FAULT("agent.forget.renamed");
    if (folders->spare_count < SPARES_MAX && empty(folder))
        folders->spare_names[folders->spare_count++] = name;
    else
        r = remove_spare(folders, name, err);
    AQ_FAULT("agent.forget.removed");
    return r;
}

int folder_prune(struct folders *folders, const struct disk_job *job, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    int r = fs_remove_tree(folders->logs, uuid_format(&job->id, id), err);

    AQ_FAULT("agent.log.pruned");
    return r;
}
