/* SPDX-License-Identifier: Apache-2.0 */
/* mount_points.c - places of the root file system that something is mounted at */
#include "monitor/mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strbuf.h"

#define OWN "/opt/kernel" /* what is below is ours, and process 1 */

struct mount_point {
    const char *target; /* inside, as the runtime is told */
    bool is_folder;
    bool is_strict;   /* no link above it is followed */
    int root;         /* the root file system, or the home directory; borrowed */
    const char *path; /* from there on, without a slash before it */
    char *folder;     /* where it really is: what is above it, "" = the root; NULL = at home */
};

static bool mount_points_is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && path[len] == '/';
}

static int mount_points_open(const struct mount_point *p, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
                   | (p->is_strict ? RESOLVE_NO_SYMLINKS : 0),
    };

    return (int)syscall(SYS_openat2, p->root, *path ? path : ".", &how, sizeof(how));
}

/* Where the descriptor is, as the node sees it. */
static int mount_points_locate(int fd, char ret[PATH_MAX], struct aq_error *err)
{
    char name[64];
    ssize_t len;

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    len = readlink(name, ret, PATH_MAX - 1);
    if (len < 0)
        return aq_fail_errno(err, "find a folder of the image");
    ret[len] = '\0';
    return 0;
}

/* The point is in 'fd', or, unless 'rest' is "", in a folder of it that the runtime is to make. */
static int mount_points_note_folder(struct mount_point *p, int fd, const char *rest,
                                    struct aq_error *err)
{
    char top[PATH_MAX], path[PATH_MAX];

    if (mount_points_locate(p->root, top, err) < 0 || mount_points_locate(fd, path, err) < 0)
        return -err->code;
    free(p->folder);
    p->folder = aq_format("%s%s%s", path + strlen(top), *rest ? "/" : "", rest);
    return p->folder ? 0 : aq_fail_oom(err);
}

static int mount_points_refuse(const struct mount_point *p, size_t len, struct aq_error *err)
{
    int above = (int)((size_t)(p->path - p->target) + len);

    if (p->is_strict)
        return aq_fail_field(err, EINVAL, "image",
                             "'%.*s' is a link or no folder, so nothing is mounted at '%s': build "
                             "the image without it, or begin a new session if a program of this "
                             "one has made it",
                             above, p->target, p->target);
    return aq_fail_field(err, EINVAL, "image",
                         "the image's '%.*s' is no folder and no link to one, so nothing can be "
                         "mounted at '%s'",
                         above, p->target, p->target);
}

/* The folder cannot be opened. What is missing altogether the runtime makes, but it would follow a
 * link that leads nowhere yet, or to where it has mounted something.
 */
static int mount_points_find_missing(struct mount_point *p, const char *folder,
                                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *above = strdup(folder);
    AQ_CLEANUP(aq_closep) int there = -1;
    size_t from = 0, len = 0;
    int r = above ? 0 : aq_fail_oom(err);

    for (bool more = true; r == 0 && more;) { /* until the first part that is no folder */
        AQ_CLEANUP(aq_closep) int fd = -1;

        memcpy(above, folder, len);
        above[len] = '\0';
        fd = mount_points_open(p, above, O_DIRECTORY);
        if (fd < 0)
            break;
        from = len + (folder[len] == '/');
        r = mount_points_note_folder(p, fd, folder + from, err);
        more = folder[from] != '\0';
        len = from + strcspn(folder + from, "/");
    }
    if (r < 0)
        return r;
    there = mount_points_open(p, above, O_NOFOLLOW);
    return there < 0 ? 0 : mount_points_refuse(p, strlen(above), err);
}

static int mount_points_replace(int folder, const struct mount_point *p, const char *name,
                                uint32_t owner, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    if (unlinkat(folder, name, 0) < 0)
        return aq_fail_errno(err, "remove the image's link '%s'", name);
    if (p->is_folder && mkdirat(folder, name, 0755) < 0)
        return aq_fail_errno(err, "make a folder for the image's link '%s'", name);
    if (!p->is_folder
        && (fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
        return aq_fail_errno(err, "make a file for the image's link '%s'", name);
    if (fchownat(folder, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return aq_fail_errno(err, "give '%s' to the container", name);
    return 0;
}

static int mount_points_prepare_one(struct mount_point *p, uint32_t owner, struct aq_error *err)
{
    const char *slash = strrchr(p->path, '/');
    AQ_CLEANUP(aq_freep) char *above = strndup(p->path, slash ? (size_t)(slash - p->path) : 0);
    AQ_CLEANUP(aq_closep) int folder = -1;
    int r;

    if (!above)
        return aq_fail_oom(err);
    folder = mount_points_open(p, above, O_DIRECTORY);
    if (folder < 0)
        return mount_points_find_missing(p, above, err);
    r = mount_points_note_folder(p, folder, "", err);
    return r < 0 ? r : mount_points_replace(folder, p, slash ? slash + 1 : p->path, owner, err);
}

/* Is 'p' below of where 'other' is mounted, which hides it, or lets others change what is there? */
static int mount_points_compare(const struct mount_point *p, const struct mount_point *other,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *place = aq_format("%s%s", other->folder,
                                                 strrchr(other->target, '/'));
    bool is_named = mount_points_is_below(p->target, other->target);
    bool is_own = mount_points_is_below(p->target, OWN);

    if (!place)
        return aq_fail_oom(err);
    if (strcmp(p->folder, place) != 0 && !mount_points_is_below(p->folder, place))
        return 0;
    if (!is_named)
        return aq_fail_field(err, EINVAL, "image",
                             "by a link in the image '%s' is below '%s', where something else is "
                             "mounted: build it without that link",
                             p->target, other->target);
    return is_own && !mount_points_is_below(other->target, OWN) ? aq_fail_field(
               err, EINVAL, "image", "nothing else may be mounted at '%s'", other->target)
                                                                : 0;
}

static int mount_points_compare_all(const struct mount_point *points, size_t count,
                                    struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; r == 0 && k < count; k++)
            if (i != k && points[i].folder && points[k].folder)
                r = mount_points_compare(&points[i], &points[k], err);
    return r;
}

/* A target below the home directory is where that is mounted, and not in the root file system. */
static struct mount_point mount_points_make(const char *target, bool is_folder, int root, int home,
                                            const struct sandbox *sandbox)
{
    bool is_home = sandbox->home && mount_points_is_below(target, sandbox->home);

    return (struct mount_point){
        .target = target,
        .is_folder = is_folder,
        .is_strict = is_home || mount_points_is_below(target, OWN),
        .root = is_home ? home : root,
        .path = target + (is_home ? strlen(sandbox->home) : 0) + 1,
    };
}

int mount_points_prepare(const char *rootfs, const char *home, const struct sandbox *sandbox,
                         struct aq_error *err)
{
    const struct texts *files = &sandbox->files, *folders = &sandbox->folders;
    AQ_CLEANUP(aq_closep) int root = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int inner = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t count = files->count + folders->count;
    struct mount_point *points = calloc(count + 1, sizeof(*points));
    int r = points ? 0 : aq_fail_oom(err);

    if (r == 0 && (root < 0 || inner < 0))
        r = aq_fail_errno(err, "open '%s'", root < 0 ? rootfs : home);
    for (size_t i = 0; r == 0 && i < count; i++) {
        bool is_file = i < files->count;

        points[i] = mount_points_make(is_file ? files->items[i] : folders->items[i - files->count],
                                      !is_file, root, inner, sandbox);
        r = mount_points_prepare_one(&points[i], sandbox->id_base, err);
        if (points[i].root == inner)
            free(AQ_TAKE(points[i].folder));
    }
    if (r == 0)
        r = mount_points_compare_all(points, count, err);
    for (size_t i = 0; points && i < count; i++)
        free(points[i].folder);
    free(points);
    return r;
}
