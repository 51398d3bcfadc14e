/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mounts.c - see volume_mounts.h */
#include "monitor/volume_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "monitor/id_map.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

static bool volume_mounts_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return strncmp(path, above, len) == 0 && path[len] == '/';
}

/* The mount whose target is right above that of number 'at'; NULL = none is. */
static const struct volume_mount *volume_mounts_find_above(const struct volume_mount *mounts,
                                                           size_t at)
{
    const struct volume_mount *found = NULL;

    for (size_t i = 0; i < at; i++)
        if (volume_mounts_is_below(mounts[at].target, mounts[i].target)
            && (!found || volume_mounts_is_below(mounts[i].target, found->target)))
            found = &mounts[i];
    return found;
}

/* ---- finding ---- */

/* A container can make a setuid program there, which others on the node could run with the rights
 * of the folder's owner.
 */
static int volume_mounts_check_mode(const struct volume_mount *m, int volume, struct aq_error *err)
{
    struct stat st;

    if (fstat(volume, &st) < 0)
        return aq_fail_errno(err, "the volume of folder '%s'", m->name);
    if (st.st_mode & S_IRWXO)
        return aq_fail(err, EPERM,
                       "folder '%s' is on the volume %s of mode %04o, so that other users of the "
                       "node could run setuid programs in it: chmod 0700 %s",
                       m->name, m->volume, st.st_mode & 07777, m->volume);
    return 0;
}

/* The folder's directory, and who owns it. */
static int volume_mounts_open_folder(const struct volume_mount *m, struct id_pair *ret_owner,
                                     struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int volume = open(m->volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int folder = -1;
    struct stat st;
    int r;

    if (volume < 0)
        return aq_fail_errno(err, "the volume of folder '%s'", m->name);
    folder = beneath_open_folder(volume, m->folder);
    if (folder == -ENOENT)
        return aq_fail(err, ENOENT, "folder '%s' is gone", m->name);
    if (folder < 0 || fstat(folder, &st) < 0)
        return aq_fail(err, folder < 0 ? -folder : errno, "folder '%s': %s", m->name,
                       strerror(folder < 0 ? -folder : errno));
    r = volume_mounts_check_mode(m, volume, err);
    *ret_owner = (struct id_pair){ st.st_uid, st.st_gid };
    return r < 0 ? r : AQ_TAKE_FD(folder);
}

static int volume_mounts_fail_path(const struct volume_mount *m, const char *path, int code,
                                   struct aq_error *err)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return aq_fail(err, code, "folder '%s' has no directory '%.200s'", m->name, path);
    case ELOOP:
    case EXDEV:
        return aq_fail(err, code,
                       "'%.200s' of folder '%s' is or goes through a symbolic link or another "
                       "mount, which is not followed",
                       path, m->name);
    default:
        return aq_fail(err, code, "'%.200s' of folder '%s': %s", path, m->name, strerror(code));
    }
}

/* Uploads under way are hidden from the session by a mount, which needs their directory now, as it
 * could be made later. Where that fails no storage host makes one either.
 */
static void volume_mounts_make_uploads(int folder, struct id_pair owner)
{
    if (mkdirat(folder, FOLDER_UPLOADS, 0700) == 0
        && fchownat(folder, FOLDER_UPLOADS, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
        (void)unlinkat(folder, FOLDER_UPLOADS,
                       AT_REMOVEDIR); /* the storage host could not use it */
}

/* The directory that is to be mounted. */
static int volume_mounts_open(const struct volume_mount *m, struct id_pair *ret_owner,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = volume_mounts_open_folder(m, ret_owner, err);
    int fd;

    if (folder < 0)
        return folder;
    if (!*m->path) {
        volume_mounts_make_uploads(folder, *ret_owner);
        return AQ_TAKE_FD(folder);
    }
    fd = beneath_open_folder(folder, m->path);
    return fd < 0 ? volume_mounts_fail_path(m, m->path, -fd, err) : fd;
}

/* ---- mounting ---- */

/* A mount of the directory that is nowhere yet, with the owner's files shown as the user's. */
static int volume_mounts_make(const struct volume_mount *m, struct id_pair user,
                              struct aq_error *err)
{
    struct id_pair owner;
    AQ_CLEANUP(aq_closep) int folder = volume_mounts_open(m, &owner, err);
    AQ_CLEANUP(aq_closep) int users = folder < 0 ? -1 : id_map_open_pair(owner, user, err);
    AQ_CLEANUP(aq_closep) int tree = -1;
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                               .userns_fd = (uint64_t)(unsigned)users };

    if (users < 0)
        return -err->code;
    tree = open_tree(folder, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0)
        return aq_fail_errno(err, "mount folder '%s'", m->name);
    if (!m->may_write)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (owner.uid != user.uid || owner.gid != user.gid)
        attr.attr_set |= MOUNT_ATTR_IDMAP;
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return aq_fail(err, errno,
                       "folder '%s': the file system of its volume cannot show the files of user "
                       "%u as those of a container's user: %s",
                       m->name, (unsigned)owner.uid, strerror(errno));
    return AQ_TAKE_FD(tree);
}

/* The runtime would make a directory in another's folder, or follow a link there. */
static int volume_mounts_check_inner(const struct sandbox *sandbox, size_t at, const int *trees,
                                     struct aq_error *err)
{
    const struct volume_mount *above = volume_mounts_find_above(sandbox->volume_mounts, at);
    const char *path = above ? sandbox->volume_mounts[at].target + strlen(above->target) + 1 : "";
    AQ_CLEANUP(aq_closep) int fd = -1;

    if (!above)
        return 0;
    fd = beneath_open_folder(trees[above - sandbox->volume_mounts], path);
    return fd < 0 ? volume_mounts_fail_path(above, path, -fd, err) : 0;
}

static int volume_mounts_attach_one(const struct sandbox *sandbox, size_t at, int *trees,
                                    struct aq_error *err)
{
    const struct id_pair user = { sandbox->id_base + sandbox->home_uid,
                                  sandbox->id_base + sandbox->home_gid };
    const struct volume_mount *m = &sandbox->volume_mounts[at];
    char place[sizeof(VOLUME_MOUNTS) + 24];
    int r = volume_mounts_check_inner(sandbox, at, trees, err);

    if (r < 0)
        return r;
    trees[at] = volume_mounts_make(m, user, err);
    if (trees[at] < 0)
        return trees[at];
    (void)snprintf(place, sizeof(place), VOLUME_MOUNTS "/%zu", at);
    if (mkdir(place, 0755) < 0
        || move_mount(trees[at], "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return aq_fail_errno(err, "mount folder '%s'", m->name);
    return 0;
}

int volume_mounts_attach(const struct sandbox *sandbox, struct aq_error *err)
{
    size_t count = sandbox->volume_mount_count;
    int *trees, r = 0;

    if (count == 0)
        return 0;
    if (!(trees = calloc(count, sizeof(*trees))))
        return aq_fail_oom(err);
    if (mkdir(VOLUME_MOUNTS, 0755) < 0)
        r = aq_fail_errno(err, "make '" VOLUME_MOUNTS "'");
    for (size_t i = 0; i < count; i++)
        trees[i] = -1;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = volume_mounts_attach_one(sandbox, i, trees, err);
    AQ_FAULT("monitor.volumes.mounted");
    for (size_t i = 0; i < count; i++)
        aq_closep(&trees[i]);
    free(trees);
    return r;
}
