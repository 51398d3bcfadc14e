/* SPDX-License-Identifier: Apache-2.0 */
/* home_files.c - files that a container's user is given: copied into his directory where
 * he has none of that name yet
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

#define DEPTH_MAX 8
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int home_files_copy_file(int from, int to, const char *name)
{
    AQ_CLEANUP(aq_closep) int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int target = -1;
    struct stat st;
    ssize_t put;

    if (source < 0 || fstat(source, &st) < 0)
        return -errno;
    target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    st.st_mode & 0700);
    if (target < 0)
        return errno == EEXIST ? 0 : -errno;
    while ((put = sendfile(target, source, NULL, 1 << 20)) > 0)
        ;
    return put < 0 ? -errno : 0;
}

static int home_files_copy_directory(int from, int to, int depth);

static int home_files_copy_entry(int from, int to, const char *name, int depth)
{
    struct stat st;
    int source, target, r;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return home_files_copy_file(from, to, name);
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return -EINVAL;
    if (mkdirat(to, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    source = openat(from, name, FOLDER_FLAGS);
    target = openat(to, name, FOLDER_FLAGS);
    r = source < 0 || target < 0 ? -errno : home_files_copy_directory(source, target, depth + 1);
    aq_closep(&source);
    aq_closep(&target);
    return r;
}

/* What cannot be copied does not keep the rest away; the first failure. */
static int home_files_copy_directory(int from, int to, int depth)
{
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 0), first = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        int r = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
                    ? 0
                    : home_files_copy_entry(from, to, entry->d_name, depth);

        if (first == 0)
            first = r;
    }
    (void)closedir(dir);
    return first;
}

static int runner_home_fill(const struct options *o)
{
    int from = open(o->home_from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to = open(o->home_to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (from < 0 || to < 0)
        return -errno;
    if (command_set_identity(o))
        return -errno;
    return home_files_copy_directory(from, to, 0);
}

void home_files_copy(const struct options *o)
{
    int status = 0;
    pid_t pid = o->home_from ? fork() : 0;

    if (!o->home_from || pid < 0)
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
