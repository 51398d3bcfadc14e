/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - files of the real machine: which host opened a descriptor, so that it is closed with its
 * process
 *
 * A lock that a crashed process held would stay otherwise. Only what open() and openat() gave is
 * known; a number that was closed within the C library and given to another file since is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/vec.h"
#include "simuv/simuv_internal.h"

struct simuv_file {
    simuv_host host; /* 0 = of nobody */
    dev_t device;
    ino_t inode;
};

static struct simuv_file *files;
static size_t file_count, file_cap;

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real___open_2(const char *path, int flags);
int __real___open64_2(const char *path, int flags);
int __real_openat(int folder, const char *path, int flags, ...);
int __real_openat64(int folder, const char *path, int flags, ...);
int __real___openat_2(int folder, const char *path, int flags);
int __real___openat64_2(int folder, const char *path, int flags);
int __real_close(int fd);
int __real_statvfs(const char *path, struct statvfs *ret);
int __real_statvfs64(const char *path, struct statvfs64 *ret);

int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_syncfs(int fd);

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap___open_2(const char *path, int flags);
int __wrap___open64_2(const char *path, int flags);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);
int __wrap___openat_2(int folder, const char *path, int flags);
int __wrap___openat64_2(int folder, const char *path, int flags);
int __wrap_close(int fd);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_syncfs(int fd);
int __wrap_statvfs(const char *path, struct statvfs *ret);
int __wrap_statvfs64(const char *path, struct statvfs64 *ret);

static int file_opened(int fd)
{
    simuv_host host = simuv_has_begun ? simuv_current_host() : 0;
    struct stat st;

    if (fd < 0 || !host || fstat(fd, &st) < 0)
        return fd;
    if ((size_t)fd >= file_count) {
        vec_grow(&files, &file_cap, (size_t)fd + 1, sizeof(*files));
        memset(files + file_count, 0, ((size_t)fd + 1 - file_count) * sizeof(*files));
        file_count = (size_t)fd + 1;
    }
    files[fd] = (struct simuv_file){ host, st.st_dev, st.st_ino };
    return fd;
}

void simuv_files_crash(simuv_host host)
{
    struct stat st;

    for (size_t fd = 0; fd < file_count; fd++) {
        if (files[fd].host != host)
            continue;
        files[fd].host = 0;
        if (fstat((int)fd, &st) == 0 && st.st_dev == files[fd].device
            && st.st_ino == files[fd].inode)
            (void)__real_close((int)fd);
    }
}

static mode_t file_mode(int flags, va_list rest)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define FILE_DEFINE_OPEN(name)                                \
    int __wrap_##name(const char *path, int flags, ...)       \
    {                                                         \
        va_list rest;                                         \
        mode_t mode;                                          \
                                                              \
        va_start(rest, flags);                                \
        mode = file_mode(flags, rest);                        \
        va_end(rest);                                         \
        return file_opened(__real_##name(path, flags, mode)); \
    }                                                         \
                                                              \
    int __wrap___##name##_2(const char *path, int flags)      \
    {                                                         \
        return file_opened(__real___##name##_2(path, flags)); \
    }

#define FILE_DEFINE_OPENAT(name)                                      \
    int __wrap_##name(int folder, const char *path, int flags, ...)   \
    {                                                                 \
        va_list rest;                                                 \
        mode_t mode;                                                  \
                                                                      \
        va_start(rest, flags);                                        \
        mode = file_mode(flags, rest);                                \
        va_end(rest);                                                 \
        return file_opened(__real_##name(folder, path, flags, mode)); \
    }                                                                 \
                                                                      \
    int __wrap___##name##_2(int folder, const char *path, int flags)  \
    {                                                                 \
        return file_opened(__real___##name##_2(folder, path, flags)); \
    }

FILE_DEFINE_OPEN(open)
FILE_DEFINE_OPEN(open64)
FILE_DEFINE_OPENAT(openat)
FILE_DEFINE_OPENAT(openat64)

int __wrap_close(int fd)
{
    if (fd >= 0 && (size_t)fd < file_count)
        files[fd].host = 0;
    return __real_close(fd);
}

/* How full the real machine's disk is must not matter to hosts. */
static bool file_hides_room(void)
{
    return simuv_has_begun && simuv_current_host();
}

int __wrap_statvfs(const char *path, struct statvfs *ret)
{
    if (!file_hides_room())
        return __real_statvfs(path, ret);
    errno = ENOSYS;
    return -1;
}

int __wrap_statvfs64(const char *path, struct statvfs64 *ret)
{
    if (!file_hides_room())
        return __real_statvfs64(path, ret);
    errno = ENOSYS;
    return -1;
}

/* ---- what waits for the disk ---- */

void simuv_set_sync_time(simuv_host host, int64_t min_usec, int64_t max_usec)
{
    struct simuv_machine *machine = simuv_machine_of(host);

    machine->sync_min_usec = min_usec;
    machine->sync_max_usec = max_usec;
}

void simuv_wait_for_sync(void)
{
    const struct simuv_machine *machine = simuv_machine_here();
    int64_t span = machine->sync_max_usec - machine->sync_min_usec;

    if (!simuv_task_now->is_driver)
        (void)simuv_wait(NULL,
                         simuv_now + machine->sync_min_usec
                             + (int64_t)simuv_random_of_below(SIMUV_TURNS, (uint64_t)span + 1),
                         "sync");
}

/* The files of hosts are in memory of the real machine: what they lose in a crash is not simulated. */
int __wrap_fsync(int fd)
{
    if (!simuv_has_begun || !simuv_current_host())
        return __real_fsync(fd);
    simuv_wait_for_sync();
    return 0;
}

int __wrap_fdatasync(int fd)
{
    if (!simuv_has_begun || !simuv_current_host())
        return __real_fdatasync(fd);
    simuv_wait_for_sync();
    return 0;
}

int __wrap_syncfs(int fd)
{
    if (!simuv_has_begun || !simuv_current_host())
        return __real_syncfs(fd);
    simuv_wait_for_sync();
    return 0;
}
