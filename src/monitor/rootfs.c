/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs.c - the root file system of a container, in a mount namespace of its own */
#include "monitor/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "monitor/passwd.h"
#include "monitor/id_map.h"
#include "monitor/mount_points.h"
#include "monitor/scratch_image.h"
#include "monitor/volume_mounts.h"

static int rootfs_make_directory(const char *path, mode_t mode, struct aq_error *err)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "make folder '%s'", path);
    return 0;
}

static int rootfs_enter_namespace(struct aq_error *err)
{
    if (unshare(CLONE_NEWNS) < 0)
        return aq_fail_errno(err, "make a mount namespace");
    /* what the node unmounts goes here too, nothing goes the other way */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return aq_fail_errno(err, "make mounts private");
    return 0;
}

int rootfs_hide(const struct sandbox *sandbox, struct aq_error *err)
{
    int r = sandbox->hidden.count ? rootfs_make_directory("hidden", 0755, err) : 0;

    /* covered, as to unmount waits for all processors */
    for (size_t i = 0; r == 0 && i < sandbox->hidden.count; i++)
        if (mount("hidden", sandbox->hidden.items[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            r = aq_fail_errno(err, "hide '%s'", sandbox->hidden.items[i]);
    return r;
}

/* The working directory becomes the stage; paths below are short then, which
 * the options of overlayfs, one page at most, have to be.
 */
static int rootfs_enter_stage(const struct sandbox *sandbox, struct aq_error *err)
{
    static const char *const directories[] = { "scratch", "layers", "rootfs" };
    int r = 0;

    if (mount("aliquot", sandbox->stage, "tmpfs", MS_NODEV | MS_NOSUID, "size=4m,mode=0755") < 0
        || chdir(sandbox->stage) < 0)
        return aq_fail_errno(err, "mount the stage '%s'", sandbox->stage);
    for (size_t i = 0; r == 0 && i < AQ_COUNT(directories); i++)
        r = rootfs_make_directory(directories[i], 0755, err);
    return r;
}

/* ---- scratch space ---- */

static int rootfs_mount_scratch(const struct sandbox *sandbox, struct aq_error *err)
{
    if (!sandbox->scratch_template) {
        if (rootfs_make_directory(sandbox->scratch, 0700, err) < 0)
            return -err->code;
        return mount(sandbox->scratch, "scratch", NULL, MS_BIND, NULL) < 0
                   ? aq_fail_errno(err, "mount '%s'", sandbox->scratch)
                   : 0;
    }
    return scratch_image_mount(sandbox->scratch_template, sandbox->scratch, "scratch", err);
}

/* A folder of the container's user 'uid', unless somebody has it already. Opened, as programs of a
 * former start may have put a link in its place, which is not followed. -errno.
 */
static int rootfs_open_owned(int above, const char *name, const struct sandbox *sandbox,
                             uint32_t uid, uint32_t gid, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "make folder '%s'", name);
    fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return aq_fail(err, ELOOP,
                       "a program of the session has put a link or file in the place of the "
                       "folder '%s': begin a new session",
                       name);
    if (fd < 0 || fstat(fd, &st) < 0
        || (st.st_uid == 0 && fchown(fd, sandbox->id_base + uid, sandbox->id_base + gid) < 0))
        return aq_fail_errno(err, "give '%s' to the container", name);
    return AQ_TAKE_FD(fd);
}

static int rootfs_make_owned(const char *path, const struct sandbox *sandbox, uint32_t uid,
                             uint32_t gid, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = rootfs_open_owned(AT_FDCWD, path, sandbox, uid, gid, err);

    return fd < 0 ? fd : 0;
}

/* The directory of overlayfs, without what a former attempt left in it. */
static int rootfs_make_work(struct aq_error *err)
{
    if (access("scratch/work"
               "/work",
               F_OK)
            == 0
        && fs_remove_tree(AT_FDCWD, "scratch/work", err) < 0)
        return -err->code;
    return rootfs_make_directory("scratch/work", 0700, err);
}

/* A directory in which nothing of the layers is seen; all may write into those for
 * temporary files. It and those above it are the container's root's.
 */
static int rootfs_make_empty(const struct sandbox *sandbox, const char *inside,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = strdup(inside);
    AQ_CLEANUP(aq_closep) int folder = open("scratch/upper",
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char *rest = NULL;

    if (!path)
        return aq_fail_oom(err);
    if (folder < 0)
        return aq_fail_errno(err, "open the container's layer");
    for (char *name = strtok_r(path, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
        int fd = rootfs_open_owned(folder, name, sandbox, 0, 0, err);

        aq_closep(&folder);
        if (fd < 0)
            return fd;
        folder = fd;
    }
    if (fsetxattr(folder, "trusted.overlay.opaque", "y", 1, 0) < 0
        || (strcmp(strrchr(inside, '/'), "/tmp") == 0 && fchmod(folder, 01777) < 0))
        return aq_fail_errno(err, "empty '%s'", inside);
    return 0;
}

/* The container's root owns "/". */
static int rootfs_make_scratch(const struct sandbox *sandbox, struct aq_error *err)
{
    int r = rootfs_make_work(err);

    if (r == 0)
        r = rootfs_make_owned("scratch/upper", sandbox, 0, 0, err);
    for (size_t i = 0; r == 0 && i < sandbox->empty.count; i++)
        r = rootfs_make_empty(sandbox, sandbox->empty.items[i], err);
    if (r == 0)
        r = rootfs_make_owned("scratch/home", sandbox, sandbox->home_uid, sandbox->home_gid, err);
    return r;
}

/* ---- layers ---- */

/* A copy of the mount at 'layer' with mapped users, at 'place'. */
static int rootfs_mount_mapped(const char *layer, const char *place, int user_namespace,
                               struct aq_error *err)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
                               .userns_fd = (uint64_t)user_namespace };
    AQ_CLEANUP(aq_closep) int tree = -1;

    if (rootfs_make_directory(place, 0755, err) < 0)
        return -err->code;
    tree = open_tree(AT_FDCWD, layer, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return aq_fail_errno(err, "map the users of '%s'", layer);
    if (move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return aq_fail_errno(err, "mount '%s'", layer);
    return 0;
}

static int rootfs_place_layers(const struct sandbox *sandbox, struct strbuf *options,
                               struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int users = -1;
    int r = 0;

    if (sandbox->id_count) {
        users = id_map_open(sandbox->id_base, sandbox->id_count, err);
        if (users < 0)
            return users;
    }
    for (size_t i = 0; r == 0 && i < sandbox->layers.count; i++) {
        const char *layer = sandbox->layers.items[i];
        char place[32];

        (void)snprintf(place, sizeof(place), "layers/%zu", i);
        if (users >= 0)
            r = rootfs_mount_mapped(layer, place, users, err);
        else if (symlink(layer, place) < 0)
            r = aq_fail_errno(err, "name layer '%s'", layer);
        strbuf_addf(options, "%s%s", i ? ":" : "", place);
    }
    return r;
}

static int rootfs_mount_overlay(const struct sandbox *sandbox, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf options = STRBUF_INIT;
    int r;

    strbuf_adds(&options, "lowerdir=");
    r = rootfs_place_layers(sandbox, &options, err);
    if (r < 0)
        return r;
    /* volatile: nothing of it has to survive, so nothing waits for a disk */
    strbuf_adds(&options, ",upperdir=scratch/upper,workdir=scratch/work,volatile");
    if (!strbuf_ok(&options))
        return aq_fail_oom(err);
    return mount("aliquot", "rootfs", "overlay", MS_NODEV, options.data) < 0
               ? aq_fail_errno(err, "mount the layers of the image")
               : 0;
}

static int rootfs_add_account(const struct sandbox *sandbox, struct aq_error *err)
{
    const struct passwd_user user = { .uid = sandbox->home_uid,
                                      .gid = sandbox->home_gid,
                                      .id_base = sandbox->id_base,
                                      .home = sandbox->home };

    return passwd_add_user("rootfs", &user, err);
}

/* A user namespace cannot mount one for a network that is not its own. */
static int rootfs_mount_sys(const struct sandbox *sandbox, struct aq_error *err)
{
    int r;

    if (!sandbox->uses_host_network)
        return 0;
    r = rootfs_make_directory("sys", 0555, err);
    if (r == 0
        && mount("sysfs", "sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) < 0)
        r = aq_fail_errno(err, "mount a sysfs that shows the node's network");
    return r;
}

int rootfs_enter(const struct sandbox *sandbox, struct aq_error *err)
{
    int r = rootfs_enter_namespace(err);

    if (r == 0)
        r = rootfs_enter_stage(sandbox, err);
    if (r == 0)
        r = rootfs_mount_scratch(sandbox, err);
    AQ_FAULT("monitor.scratch.mounted");
    if (r == 0)
        r = rootfs_make_scratch(sandbox, err);
    if (r == 0)
        r = rootfs_mount_overlay(sandbox, err);
    AQ_FAULT("monitor.rootfs.mounted");
    if (r == 0)
        r = rootfs_mount_sys(sandbox, err);
    if (r == 0)
        r = mount_points_prepare("rootfs", "scratch/home", sandbox, err);
    if (r == 0)
        r = volume_mounts_attach(sandbox, err);
    return r == 0 && sandbox->home ? rootfs_add_account(sandbox, err) : r;
}
