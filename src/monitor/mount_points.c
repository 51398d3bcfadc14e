/* SPDX-License-Identifier: Apache-2.0 */
/* mount_points.c - places of the root file system that something is mounted at */
#include "monitor/mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strbuf.h"

static int mount_points_open(int root, const char *path, int flags)
{
    const struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
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

/* The runtime has mounted over these when it comes to ours. */
static int mount_points_check_place(int root, int folder, const char *target, struct aq_error *err)
{
    static const char *const covered[] = { "/dev", "/proc", "/sys" };
    char top[PATH_MAX], path[PATH_MAX];
    size_t len;

    if (mount_points_locate(root, top, err) < 0 || mount_points_locate(folder, path, err) < 0)
        return -err->code;
    len = strlen(top);
    for (size_t i = 0; i < AQ_COUNT(covered); i++) {
        size_t part = strlen(covered[i]);

        if (strncmp(path, top, len) == 0 && strncmp(path + len, covered[i], part) == 0
            && (path[len + part] == '/' || path[len + part] == '\0'))
            return aq_fail_field(err, EINVAL, "image",
                                 "a link in the image leads from above '%s' into %s: build it "
                                 "without that link",
                                 target, covered[i]);
    }
    return 0;
}

/* The folder cannot be opened. What is missing altogether the runtime makes, but it would follow a
 * link that leads nowhere yet, or to where it has mounted something.
 */
static int mount_points_check_missing(int root, const char *folder, const char *target,
                                      struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *above = strdup(folder);
    AQ_CLEANUP(aq_closep) int there = -1;
    size_t len = 0;
    int r = above ? 0 : aq_fail_oom(err);

    for (bool more = true; r == 0 && more;) { /* until the first part that is no folder */
        AQ_CLEANUP(aq_closep) int fd = -1;

        len += strcspn(folder + len, "/");
        memcpy(above, folder, len);
        above[len] = '\0';
        fd = mount_points_open(root, above, O_DIRECTORY);
        if (fd < 0)
            break;
        r = mount_points_check_place(root, fd, target, err);
        more = folder[len++] == '/';
    }
    if (r < 0)
        return r;
    there = mount_points_open(root, above, O_NOFOLLOW);
    return there < 0 ? 0
                     : aq_fail_field(err, EINVAL, "image",
                                     "the image's '/%s' is no folder and no link to one, so "
                                     "nothing can be mounted at '%s'",
                                     above, target);
}

static int mount_points_replace(int folder, const char *name, bool is_folder,
                                const struct sandbox *sandbox, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    if (unlinkat(folder, name, 0) < 0)
        return aq_fail_errno(err, "remove the image's link '%s'", name);
    if (is_folder && mkdirat(folder, name, 0755) < 0)
        return aq_fail_errno(err, "make a folder for the image's link '%s'", name);
    if (!is_folder
        && (fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
        return aq_fail_errno(err, "make a file for the image's link '%s'", name);
    if (fchownat(folder, name, sandbox->id_base, sandbox->id_base, AT_SYMLINK_NOFOLLOW) < 0)
        return aq_fail_errno(err, "give '%s' to the container", name);
    return 0;
}

static int mount_points_prepare_one(int root, const char *target, bool is_folder,
                                    const struct sandbox *sandbox, struct aq_error *err)
{
    const char *slash = strrchr(target, '/');
    AQ_CLEANUP(aq_freep) char *above = strndup(target + 1,
                                               slash > target ? (size_t)(slash - target - 1) : 0);
    AQ_CLEANUP(aq_closep) int folder = -1;
    int r;

    if (!above)
        return aq_fail_oom(err);
    folder = mount_points_open(root, *above ? above : ".", O_DIRECTORY);
    if (folder < 0)
        return mount_points_check_missing(root, above, target, err);
    r = mount_points_check_place(root, folder, target, err);
    return r < 0 ? r : mount_points_replace(folder, slash + 1, is_folder, sandbox, err);
}

int mount_points_prepare(const char *rootfs, const struct sandbox *sandbox, struct aq_error *err)
{
    const struct texts *lists[] = { &sandbox->files, &sandbox->folders };
    AQ_CLEANUP(aq_closep) int root = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = root < 0 ? aq_fail_errno(err, "open '%s'", rootfs) : 0;

    for (size_t i = 0; i < AQ_COUNT(lists); i++)
        for (size_t k = 0; r == 0 && k < lists[i]->count; k++)
            r = mount_points_prepare_one(root, lists[i]->items[k], i == 1, sandbox, err);
    return r;
}
