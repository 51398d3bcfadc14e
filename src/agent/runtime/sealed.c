/* SPDX-License-Identifier: Apache-2.0 */
/* sealed.c - a program in sealed memory (memfd), from which it is executed */
#include "agent/runtime/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* What crun and runc look for: these and no others. */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int sealed_make_memory(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    /* kernels before 6.3 do not know the flag and need none */
    return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int sealed_copy(int from, int to, off_t size)
{
    off_t at = 0;

    while (at < size) {
        ssize_t copied = sendfile(to, from, &at, (size_t)(size - at));

        if (copied <= 0 && !(copied < 0 && errno == EINTR))
            return copied < 0 ? -errno : -EIO;
    }
    return fcntl(to, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

static bool sealed_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A script is not executed from memory. */
static bool sealed_is_executable(int fd)
{
    char magic[4];

    return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic)
           && memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

int sealed_get(struct sealed *sealed, const char *path)
{
    const char *slash = strrchr(path, '/');
    AQ_CLEANUP(aq_closep) int from = -1, to = -1;
    struct stat now;

    if (stat(path, &now) < 0)
        return -1;
    if (sealed_is_same(&sealed->of, &now))
        return sealed->fd;
    aq_closep(&sealed->fd);
    sealed->of = now;
    from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &now) < 0 || !sealed_is_same(&sealed->of, &now)
        || !sealed_is_executable(from))
        return -1;
    to = sealed_make_memory(slash ? slash + 1 : path);
    if (to >= 0 && sealed_copy(from, to, now.st_size) == 0)
        sealed->fd = AQ_TAKE_FD(to);
    return sealed->fd;
}

void sealed_done(struct sealed *sealed)
{
    aq_closep(&sealed->fd);
}
