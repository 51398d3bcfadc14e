/* SPDX-License-Identifier: Apache-2.0 */
/* Files within a sealed file. */
#include "manager/backup/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

#define HEAD 10
#define BUFFER ((size_t)64 << 10)

/* ---- writing ---- */

static int members_add_head(struct sealed_file *f, const char *name, uint64_t size,
                            struct aq_error *err)
{
    size_t len = strlen(name);
    unsigned char head[HEAD] = { (unsigned char)len, (unsigned char)(len >> 8) };
    int r;

    for (int i = 0; i < 8; i++)
        head[2 + i] = (unsigned char)(size >> 8 * i);
    r = sealed_file_write(f, head, sizeof(head), err);
    return r < 0 ? r : sealed_file_write(f, name, len, err);
}

int members_add_file(struct sealed_file *f, const char *name, const char *path, struct pace *pace,
                     struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char buffer[BUFFER];
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return aq_fail_errno(err, "open '%s'", path);
    r = members_add_head(f, name, (uint64_t)st.st_size, err);
    for (off_t left = st.st_size; r == 0 && left > 0;) {
        ssize_t got = read(fd, buffer, AQ_MIN(sizeof(buffer), (size_t)left));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? aq_fail_errno(err, "read '%s'", path)
                           : aq_fail(err, EIO, "'%s' became shorter", path);
        r = sealed_file_write(f, buffer, (size_t)got, err);
        left -= got;
        pace_step(pace);
    }
    return r;
}

static int members_add_entry(struct sealed_file *f, const char *prefix, const char *folder,
                             const char *entry, struct pace *pace, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, entry);
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s/%s", prefix, entry);
    struct stat st;

    if (lstat(path, &st) < 0)
        return aq_fail_errno(err, "look at '%s'", path);
    return S_ISREG(st.st_mode) ? members_add_file(f, name, path, pace, err) : 0;
}

int members_add_folder(struct sealed_file *f, const char *prefix, const char *path,
                       struct pace *pace, struct aq_error *err)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int r = 0;

    if (!dir)
        return errno == ENOENT ? 0 : aq_fail_errno(err, "open '%s'", path);
    while (r == 0 && (entry = readdir(dir)))
        r = members_add_entry(f, prefix, path, entry->d_name, pace, err);
    (void)closedir(dir);
    return r;
}

/* ---- reading ---- */

/* "name" or "ca/name", of letters, digits and "._-", not hidden. */
static bool members_check_name(const char *name)
{
    const char *last = strncmp(name, "ca/", 3) == 0 ? name + 3 : name;

    return last[0] && last[0] != '.'
           && last[strspn(last,
                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")]
                  == '\0';
}

static int members_read_head(struct sealed_file *f, char name[MEMBER_NAME_MAX + 1],
                             uint64_t *ret_size, struct aq_error *err)
{
    unsigned char head[HEAD];
    size_t len;
    int r = sealed_file_read(f, head, sizeof(head), err);

    if (r < 0)
        return r;
    len = (size_t)head[0] | (size_t)head[1] << 8;
    *ret_size = 0;
    for (int i = 0; i < 8; i++)
        *ret_size |= (uint64_t)head[2 + i] << 8 * i;
    if (len == 0 || len > MEMBER_NAME_MAX)
        return aq_fail(err, EBADMSG, "the backup has a member without a name");
    r = sealed_file_read(f, name, len, err);
    name[len] = '\0';
    if (r == 0 && (strlen(name) != len || !members_check_name(name)))
        return aq_fail(err, EBADMSG, "the backup has a member that is none of ours");
    return r;
}

/* Before anything of it is written: little that is compressed may say that it is much. */
static int members_check_size(int folder, const char *name, uint64_t size, struct aq_error *err)
{
    struct statvfs fs;

    if (fstatvfs(folder, &fs) < 0)
        return aq_fail_errno(err, "look at the file system of the plain copy");
    return size <= (uint64_t)fs.f_bavail * fs.f_frsize
               ? 0
               : aq_fail(err, ENOSPC, "'%s' in it has %llu MiB, there is room for %llu MiB", name,
                         (unsigned long long)(size >> 20),
                         (unsigned long long)((uint64_t)fs.f_bavail * fs.f_frsize >> 20));
}

static int members_extract_one(struct sealed_file *f, int folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char name[MEMBER_NAME_MAX + 1], buffer[BUFFER];
    uint64_t left;
    int r = members_read_head(f, name, &left, err);

    if (r < 0 || (r = members_check_size(folder, name, left, err)) < 0)
        return r;
    if (strncmp(name, "ca/", 3) == 0 && mkdirat(folder, "ca", 0700) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "make the folder 'ca'");
    fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", name);
    while (r == 0 && left) {
        size_t now = (size_t)AQ_MIN((uint64_t)sizeof(buffer), left);

        r = sealed_file_read(f, buffer, now, err);
        left -= now;
        if (r == 0 && fs_write_all(fd, buffer, now) < 0)
            r = aq_fail_errno(err, "write '%s'", name);
    }
    if (r == 0 && fsync(fd) < 0)
        r = aq_fail_errno(err, "sync '%s'", name);
    return r;
}

int members_extract(struct sealed_file *f, const char *folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", folder);
    while ((r = sealed_file_is_at_end(f, err)) == 0)
        if ((r = members_extract_one(f, fd, err)) < 0)
            break;
    if (r > 0 && faccessat(fd, "ca", F_OK, 0) == 0)
        r = fs_sync_parent(fd, "ca/.", err); /* the names in it */
    return AQ_MIN(r, 0);
}
