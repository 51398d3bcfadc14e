/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_directory.c - creates, changes and removes kernel directories; run by the disk worker */
#include "agent/disk/kernel_directory.h"

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
#include "monitor/log_times.h"

#define NAME_TEXT_MAX 24
#define CONFIG_MODE 0644 /* containers read it as other users; nobody else gets that far */

/* ---- the directories of directories ---- */

#define PASSAGE_MODE 0711 /* programs of [process] user go through to their own; nobody lists it */

static int kernel_directory_open(const char *state, const char *name, mode_t mode, int *ret,
                                 struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", state, name);
    int r = fs_mkdirs(path, 0700, err);

    if (r < 0)
        return r;
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* An earlier start has set the mode if nothing can be written now. */
    if (*ret < 0 || (fchmod(*ret, mode) < 0 && !fs_is_out_of_room(errno)))
        return aq_fail_errno(err, "open '%s'", path);
    return 0;
}

static bool kernel_directory_strip(int at, const char *path, const char *const *except);

#define TRIED_BYTES 65536

int kernel_directories_open(struct kernel_directories *directories, const char *state,
                            struct aq_error *err)
{
    static const char *const none[] = { NULL };
    AQ_CLEANUP(aq_freep) char *spares = aq_format("%s/spares", state);
    int r;

    *directories = (struct kernel_directories){ .kernels = -1, .logs = -1, .spares = -1 };
    r = kernel_directory_open(state, "kernels", PASSAGE_MODE, &directories->kernels, err);
    if (r == 0)
        r = kernel_directory_open(state, "logs", 0700, &directories->logs, err);
    if (r == 0)
        r = kernel_directory_open(state, "spares", 0700, &directories->spares, err);
    /* The folder itself stays: a full disk may have no room for another one. */
    if (r == 0 && !kernel_directory_strip(AT_FDCWD, spares, none))
        r = aq_fail(err, EIO, "cannot empty the folder '%s'; remove its contents", spares);
    return r;
}

int kernel_directories_try_room(struct kernel_directories *directories, struct aq_error *err)
{
    static const char bytes[TRIED_BYTES];
    int r = fs_overwrite(directories->spares, "room", bytes, sizeof(bytes), 0600, err);

    (void)unlinkat(directories->spares, "room", 0);
    return r;
}

static const char *kernel_directory_name_text(uint64_t name, char text[NAME_TEXT_MAX])
{
    (void)snprintf(text, NAME_TEXT_MAX, "%" PRIu64, name);
    return text;
}

static int kernel_directory_remove_spare(struct kernel_directories *directories, uint64_t name,
                                         struct aq_error *err)
{
    char text[NAME_TEXT_MAX];

    return fs_remove_tree(directories->spares, kernel_directory_name_text(name, text), err);
}

void kernel_directories_close(struct kernel_directories *directories)
{
    while (directories->spare_count)
        (void)kernel_directory_remove_spare(
            directories, directories->spare_names[--directories->spare_count], NULL);
    aq_closep(&directories->spares);
    aq_closep(&directories->kernels);
    aq_closep(&directories->logs);
}

/* A descriptor, or -1 with errno. */
static int kernel_directory_open_kernel(const struct kernel_directories *directories,
                                        const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return openat(directories->kernels, uuid_format(id, text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- a new one ---- */

static int kernel_directory_make(int at, const char *path, mode_t mode, struct aq_error *err)
{
    if (mkdirat(at, path, mode) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "mkdir '%s'", path);
    return 0;
}

static int kernel_directory_write_text(int at, const char *path, const char *text, mode_t mode,
                                       struct aq_error *err)
{
    return text ? fs_overwrite(at, path, text, strlen(text), mode, err) : 0;
}

static int kernel_directory_write_config(int directory, const char *path, const char *text,
                                         struct aq_error *err)
{
    return text ? fs_write_quick(directory, path, text, strlen(text), CONFIG_MODE, err) : 0;
}

/* The parts that are given, below the kernel's directory. */
static int kernel_directory_write_parts(int directory, const struct disk_job *job,
                                        struct aq_error *err)
{
    char run[32], program[48];
    int r = kernel_directory_make(directory, "config", 0755, err);

    (void)snprintf(run, sizeof(run), "run/%" PRId64, job->attempt);
    (void)snprintf(program, sizeof(program), "%s/program", run);
    if (r == 0)
        r = kernel_directory_make(directory, "work", 0700, err);
    if (r == 0)
        r = kernel_directory_make(directory, "run", 0700, err);
    if (r == 0)
        r = kernel_directory_make(directory, run, 0700, err);
    if (r == 0 && job->program.len)
        r = fs_overwrite(directory, program, job->program.data, job->program.len, 0600, err);
    if (r == 0) /* what a running kernel holds is whole at any time */
        r = job->action == DISK_REPLACE
                ? kernel_directory_write_config(directory, "config/resource.txt", job->resource,
                                                err)
                : kernel_directory_write_text(directory, "config/resource.txt", job->resource,
                                              CONFIG_MODE, err);
    if (r == 0)
        r = kernel_directory_write_text(directory, "config/environ.txt", job->environ, CONFIG_MODE,
                                        err);
    if (r == 0 && job->uid != (uid_t)-1 && fchownat(directory, "work", job->uid, job->gid, 0) < 0)
        r = aq_fail_errno(err, "give the work folder to user %u", (unsigned)job->uid);
    return r;
}

/* What a former kernel could have changed or has left. */
static int kernel_directory_renew(int directory, const struct disk_job *job, struct aq_error *err)
{
    if (!job->resource && unlinkat(directory, "config/resource.txt", 0) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "remove 'resource.txt'");
    (void)fs_remove_tree(directory, "output", NULL); /* of a monitor that was killed */
    return fchmodat(directory, "work", 0700, 0) < 0 ? aq_fail_errno(err, "renew the work folder")
                                                    : 0;
}

/* Only the programs of a kernel that is no container go to its work directory from outside: ids
 * are seen in lists of processes, and what containers may read of 'config' is theirs alone.
 */
static int kernel_directory_admit(int directory, const struct disk_job *job, struct aq_error *err)
{
    bool is_passed = job->uid != (uid_t)-1;

    if ((is_passed && fchown(directory, (uid_t)-1, job->gid) < 0)
        || fchmod(directory, is_passed ? 0710 : 0700) < 0)
        return aq_fail_errno(err, "set who gets into the kernel's folder");
    return 0;
}

static int kernel_directory_fill(const struct kernel_directories *directories, const char *name,
                                 bool is_used, const struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = openat(directories->spares, name,
                                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (directory < 0)
        return aq_fail_errno(err, "open 'spares/%s'", name);
    r = kernel_directory_write_text(directory, "spec.json", job->spec, 0600, err);
    if (r == 0)
        r = kernel_directory_write_parts(directory, job, err);
    if (r == 0 && is_used)
        r = kernel_directory_renew(directory, job, err);
    if (r == 0)
        r = kernel_directory_admit(directory, job, err);
    AQ_FAULT("agent.create.written");
    return r;
}

int kernel_directory_create(struct kernel_directories *directories, const struct disk_job *job,
                            struct aq_error *err)
{
    char id[UUID_TEXT_MAX], name[NAME_TEXT_MAX];
    bool is_used = directories->spare_count > 0;
    int r = 0;

    (void)kernel_directory_name_text(is_used ? directories->spare_names[--directories->spare_count]
                                             : ++directories->last_name,
                                     name);
    if (!is_used)
        r = kernel_directory_make(directories->spares, name, 0700, err);
    if (r == 0)
        r = kernel_directory_fill(directories, name, is_used, job, err);
    if (r == 0
        && renameat(directories->spares, name, directories->kernels, uuid_format(&job->id, id)) < 0)
        r = aq_fail_errno(err, "rename to '%s'", id);
    if (r < 0)
        (void)fs_remove_tree(directories->spares, name, NULL);
    AQ_FAULT("agent.create.renamed");
    return r;
}

void kernel_directory_undo_create(struct kernel_directories *directories,
                                  const struct disk_job *job)
{
    char id[UUID_TEXT_MAX];

    (void)fs_remove_tree(directories->kernels, uuid_format(&job->id, id), NULL);
}

/* Nothing is flushed: a power failure ends the kernel, too. */
static int kernel_directory_write_intended(int directory, int64_t attempt, const char *text,
                                           struct aq_error *err)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "run/%" PRId64 "/resize.txt", attempt);
    if (text)
        return fs_write_quick(directory, path, text, strlen(text), 0600, err);
    return unlinkat(directory, path, 0) < 0 && errno != ENOENT
               ? aq_fail_errno(err, "remove '%s'", path)
               : 0;
}

int kernel_directory_intend(struct kernel_directories *directories, const struct disk_job *job,
                            struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = kernel_directory_open_kernel(directories, &job->id);

    return directory < 0
               ? aq_fail_errno(err, "open the kernel's folder")
               : kernel_directory_write_intended(directory, job->attempt, job->resource, err);
}

int kernel_directory_replace(struct kernel_directories *directories, const struct disk_job *job,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = kernel_directory_open_kernel(directories, &job->id);
    int r = directory < 0 ? aq_fail_errno(err, "open the kernel's folder")
                          : kernel_directory_write_parts(directory, job, err);

    if (r == 0 && job->spec)
        r = fs_write_atomic(directory, "spec.json", job->spec, strlen(job->spec), 0600, err);
    AQ_FAULT("agent.replace.written");
    return r < 0 ? r : kernel_directory_write_intended(directory, job->attempt, NULL, err);
}

int kernel_directory_describe(struct kernel_directories *directories, const struct disk_job *job,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = kernel_directory_open_kernel(directories, &job->id);
    int r = directory < 0 ? aq_fail_errno(err, "open the kernel's folder")
                          : kernel_directory_write_config(directory, "config/resource.txt",
                                                          job->resource, err);

    if (r == 0)
        r = kernel_directory_write_config(directory, "config/environ.txt", job->environ, err);
    AQ_FAULT("agent.describe.written");
    return r;
}

int kernel_directory_conclude(struct kernel_directories *directories, const struct disk_job *job,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int directory = kernel_directory_open_kernel(directories, &job->id);
    int r = directory < 0 ? aq_fail_errno(err, "open the kernel's folder") : 0;
    char path[48];

    (void)snprintf(path, sizeof(path), "run/%" PRId64 "/exit.json", job->attempt);
    exit_file_write(&job->id, job->reason, job->text, &text);
    if (r == 0)
        r = fs_write_quick(directory, path, text.data, text.len, 0600, err);
    AQ_FAULT("agent.destroy.recorded");
    return r;
}

/* ---- an old one ---- */

static int64_t kernel_directory_file_size(int at, const char *path)
{
    struct stat st;

    return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : 0;
}

/* Move one file of an attempt to logs/, unless it is empty: its size. */
static int64_t kernel_directory_keep_file(const struct kernel_directories *directories,
                                          int directory, const char *id, int64_t attempt,
                                          const char *name)
{
    char kept[UUID_TEXT_MAX + 40], path[48];
    int64_t size;

    (void)snprintf(path, sizeof(path), "run/%" PRId64 "/%s", attempt, name);
    size = kernel_directory_file_size(directory, path);
    if (size == 0)
        return 0;
    (void)mkdirat(directories->logs, id, 0700);
    (void)snprintf(kept, sizeof(kept), "%s/%" PRId64, id, attempt);
    (void)mkdirat(directories->logs, kept, 0700);
    (void)snprintf(kept, sizeof(kept), "%s/%" PRId64 "/%s", id, attempt, name);
    return renameat(directory, path, directories->logs, kept) == 0 ? size : 0;
}

/* Move the newest attempt's log to logs/, if there is any output, and its times before it:
 * so they are where it is.
 */
static int64_t kernel_directory_keep_log(const struct kernel_directories *directories,
                                         int directory, const char *id, int64_t attempt)
{
    static const char *const halves[][2] = { { LOG_TIMES_FILE_OLDER, "log.1" },
                                             { LOG_TIMES_FILE, "log" } };
    int64_t bytes = 0;

    for (size_t i = 0; i < AQ_COUNT(halves); i++) {
        char log[48];

        (void)snprintf(log, sizeof(log), "run/%" PRId64 "/%s", attempt, halves[i][1]);
        if (kernel_directory_file_size(directory, log) == 0)
            continue;
        bytes += kernel_directory_keep_file(directories, directory, id, attempt, halves[i][0]);
        bytes += kernel_directory_keep_file(directories, directory, id, attempt, halves[i][1]);
    }
    if (bytes)
        AQ_FAULT("agent.forget.log-kept");
    return bytes;
}

static bool kernel_directory_is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static DIR *kernel_directory_open_dir(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        aq_closep(&fd);
    return dir;
}

/* The next entry that is none of 'except', or NULL. */
static const char *kernel_directory_next_other(DIR *dir, const char *const *except)
{
    static const char *const dots[] = { ".", "..", NULL };
    struct dirent *entry;

    while ((entry = readdir(dir))
           && (kernel_directory_is_among(dots, entry->d_name)
               || kernel_directory_is_among(except, entry->d_name)))
        ;
    return entry ? entry->d_name : NULL;
}

static bool kernel_directory_is_empty(int at, const char *path)
{
    static const char *const none[] = { NULL };
    DIR *dir = kernel_directory_open_dir(at, path);
    bool is_empty = dir && !kernel_directory_next_other(dir, none);

    if (dir)
        (void)closedir(dir);
    return is_empty;
}

/* Remove all entries of the directory but those of 'except'; false if it cannot. */
static bool kernel_directory_strip(int at, const char *path, const char *const *except)
{
    DIR *dir = kernel_directory_open_dir(at, path);
    const char *name;
    int r = dir ? 0 : -errno;

    while (r == 0 && (name = kernel_directory_next_other(dir, except)))
        r = fs_remove_tree(dirfd(dir), name, NULL);
    if (dir)
        (void)closedir(dir);
    return r == 0;
}

/* What a container has written goes now, its file is used again; but not while
 * that is still mounted, which its lock tells (monitor/scratch_image.c).
 */
static void kernel_directory_empty_scratch(int directory)
{
    AQ_CLEANUP(aq_closep) int fd = openat(directory, "scratch.img",
                                          O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0)
        (void)renameat(directory, "scratch.img", directory, "scratch.img.new");
}

/* Make the directory of a kernel that ran once look as if it had never run. False
 * if it cannot: its program has left files in the work directory, say.
 */
static bool kernel_directory_empty(int directory)
{
    static const char *const
        parts[] = { "spec.json", "config", "work", "run", "scratch.img.new", NULL },
        *const files[] = { "resource.txt", "environ.txt", NULL }, *const runs[] = { "1", NULL },
        *const reused[] = { "lock", "program", "log", "exit.tmp", "config.json", NULL };

    (void)renameat(directory, "run/1/started", directory, "run/1/program");
    (void)renameat(directory, "run/1/exit.json", directory, "run/1/exit.tmp");
    kernel_directory_empty_scratch(directory);
    return kernel_directory_file_size(directory, "run/1/log") == 0
           && kernel_directory_is_empty(directory, "work")
           && kernel_directory_strip(directory, ".", parts)
           && kernel_directory_strip(directory, "config", files)
           && kernel_directory_strip(directory, "run", runs)
           && kernel_directory_strip(directory, "run/1", reused);
}

int kernel_directory_forget(struct kernel_directories *directories, struct disk_job *job,
                            struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = kernel_directory_open_kernel(directories, &job->id);
    uint64_t name = ++directories->last_name;
    char id[UUID_TEXT_MAX], text[NAME_TEXT_MAX];
    int r = 0;

    if (directory < 0)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "open the kernel's folder");
    job->retained_bytes = kernel_directory_keep_log(directories, directory,
                                                    uuid_format(&job->id, id), job->attempt);
    if (renameat(directories->kernels, id, directories->spares,
                 kernel_directory_name_text(name, text))
        < 0)
        return aq_fail_errno(err, "rename the folder of kernel %s", id);
    AQ_FAULT("agent.forget.renamed");
    if (directories->spare_count < SPARES_MAX && kernel_directory_empty(directory))
        directories->spare_names[directories->spare_count++] = name;
    else
        r = kernel_directory_remove_spare(directories, name, err);
    AQ_FAULT("agent.forget.removed");
    return r;
}

int kernel_directory_prune(struct kernel_directories *directories, const struct disk_job *job,
                           struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    int r = fs_remove_tree(directories->logs, uuid_format(&job->id, id), err);

    AQ_FAULT("agent.log.pruned");
    return r;
}
