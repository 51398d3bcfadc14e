/* SPDX-License-Identifier: Apache-2.0 */
/* dotfiles.c - the files that a kernel's owners want in its home directory */
#include "agent/kernel/dotfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "model/dotfile.h"
#include "transfer/beneath.h"

/* The folders on the way to 'path'. */
static int dotfiles_make_folders(int config, char *path, struct aq_error *err)
{
    for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        int r;

        *at = '\0';
        r = mkdirat(config, path, 0755) < 0 && errno != EEXIST
                ? aq_fail_errno(err, "make '%s'", path)
                : 0;
        *at = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

int dotfiles_store(const char *config, const char *dotfiles, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(aq_closep) int fd = open(config, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dotfile *files = NULL;
    int count = dotfiles_parse(dotfiles, &arena, &files, err), r = AQ_MIN(count, 0);

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", config);
    for (int i = 0; r == 0 && i < count; i++) {
        char path[sizeof(DOTFILES_FOLDER) + 8 + DOTFILE_PATH_MAX];

        (void)snprintf(path, sizeof(path), DOTFILES_FOLDER "/%s/%s", files[i].permission,
                       files[i].path);
        r = dotfiles_make_folders(fd, path, err);
        if (r == 0)
            r = fs_write_quick(fd, path, files[i].data, strlen(files[i].data), 0644, err);
    }
    return r;
}

/* ---- the home directory of a process ---- */

/* 0 or -errno */
static int dotfiles_make_owned(int home, const char *path, const struct dotfiles_owner *owner)
{
    const char *name;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(home, path, true, false, &name);

    if (parent < 0)
        return parent;
    if (mkdirat(parent, name, 0755) < 0)
        return errno == EEXIST ? 0 : -errno;
    return owner && fchownat(parent, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
                                                                                            : 0;
}

/* 0 or -errno */
static int dotfiles_place_file(int home, const struct dotfile *file,
                               const struct dotfiles_owner *owner)
{
    AQ_CLEANUP(aq_closep) int parent = -1, fd = -1;
    char path[DOTFILE_PATH_MAX + 1];
    const char *name;
    int r = 0;

    (void)snprintf(path, sizeof(path), "%s", file->path);
    for (char *at = strchr(path, '/'); at && r == 0; at = strchr(at + 1, '/')) {
        *at = '\0';
        r = dotfiles_make_owned(home, path, owner);
        *at = '/';
    }
    if (r < 0 || (parent = beneath_open_parent(home, path, true, false, &name)) < 0)
        return r < 0 ? r : parent;
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if ((r = fs_write_all(fd, file->data, strlen(file->data))) < 0)
        return r;
    return (owner && fchown(fd, owner->uid, owner->gid) < 0)
                   || fchmod(fd, (mode_t)strtoul(file->permission, NULL, 8)) < 0
               ? -errno
               : 0;
}

int dotfiles_place(const char *home, const char *dotfiles, const struct dotfiles_owner *owner,
                   struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(aq_closep) int fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dotfile *files = NULL;
    int count = dotfiles_parse(dotfiles, &arena, &files, err), r = AQ_MIN(count, 0);

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", home);
    for (int i = 0; r == 0 && i < count; i++)
        if ((r = dotfiles_place_file(fd, &files[i], owner)) < 0)
            return aq_fail(err, -r, "the dotfile '%s': %s", files[i].path, strerror(-r));
    return r;
}
