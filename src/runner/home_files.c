/* SPDX-License-Identifier: Apache-2.0 */
/* home_files.c - files that a container's user is given: copied into his directory where
 * he has none of that name yet, but dotfiles in any case
 *
 * A process of the user copies them, so links that he made lead nowhere that
 * he could not go himself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/runner.h"

#define DEPTH_MAX 130 /* of a path of 255 bytes */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* How they are copied. */
struct home_files {
    mode_t mode;
    bool replaces; /* what is there already */
};

static int home_files_copy_file(int from, int to, const char *name, const struct home_files *how)
{
    AQ_CLEANUP(aq_closep) int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int target = -1;
    ssize_t put;

    if (source < 0)
        return -errno;
    if (how->replaces && unlinkat(to, name, 0) < 0 && errno != ENOENT)
        return -errno;
    target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0)
        return errno == EEXIST ? 0 : -errno;
    while ((put = sendfile(target, source, NULL, 1 << 20)) > 0)
        ;
    return put < 0 || fchmod(target, how->mode) < 0 ? -errno : 0;
}

static int home_files_copy_directory(int from, int to, int depth, const struct home_files *how);

static int home_files_copy_entry(int from, int to, const char *name, int depth,
                                 const struct home_files *how)
{
    struct stat st;
    int source, target, r;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return home_files_copy_file(from, to, name, how);
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return -EINVAL;
    if (mkdirat(to, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    source = openat(from, name, FOLDER_FLAGS);
    target = openat(to, name, FOLDER_FLAGS);
    r = source < 0 || target < 0 ? -errno
                                 : home_files_copy_directory(source, target, depth + 1, how);
    aq_closep(&source);
    aq_closep(&target);
    return r;
}

/* What cannot be copied does not keep the rest away; the first failure. */
static int home_files_copy_directory(int from, int to, int depth, const struct home_files *how)
{
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 0), first = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        int r = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
                    ? 0
                    : home_files_copy_entry(from, to, entry->d_name, depth, how);

        if (first == 0)
            first = r;
    }
    (void)closedir(dir);
    return first;
}

/* The folder has one for each permission, called "644" and so on. */
static int home_files_copy_dotfiles(int from, int to)
{
    static const char digits[] = "01234567";
    int first = 0;

    for (mode_t mode = 0; mode <= 0777; mode++) {
        const struct home_files how = { .mode = mode, .replaces = true };
        const char name[] = { digits[mode >> 6], digits[mode >> 3 & 7], digits[mode & 7], '\0' };
        AQ_CLEANUP(aq_closep) int folder = openat(from, name, FOLDER_FLAGS);
        int r = folder < 0 ? 0 : home_files_copy_directory(folder, to, 0, &how);

        if (first == 0)
            first = r;
    }
    return first;
}

static int home_files_open(const char *path, int *ret)
{
    *ret = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return path && *ret < 0 ? -errno : 0;
}

static int runner_home_fill(const struct options *o)
{
    const struct home_files ours = { .mode = 0600 };
    int dotfiles, from, to, r;

    if ((r = home_files_open(o->dotfiles, &dotfiles)) < 0
        || (r = home_files_open(o->home_from, &from)) < 0
        || (r = home_files_open(o->home_to, &to)) < 0)
        return r;
    if (command_set_identity(o))
        return -errno;
    r = dotfiles < 0 ? 0 : home_files_copy_dotfiles(dotfiles, to);
    if (from >= 0)
        r = AQ_MIN(home_files_copy_directory(from, to, 0, &ours), r);
    return r;
}

void home_files_copy(const struct options *o)
{
    int status = 0;
    pid_t pid = o->home_to ? fork() : 0;

    if (!o->home_to || pid < 0)
        return;
    if (pid == 0)
        _exit(-runner_home_fill(o));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status))
        (void)dprintf(STDERR_FILENO, "aliquot-runner: files for '%s' could not be copied: %s\n",
                      o->home_to, strerror(WEXITSTATUS(status)));
    /* what lay beside the folders would be lost with the session */
    if (o->is_for_files && chown(o->home_to, 0, 0) < 0)
        (void)dprintf(STDERR_FILENO, "aliquot-runner: '%s' is not closed: %s\n", o->home_to,
                      strerror(errno));
}
