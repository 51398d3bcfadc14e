/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c - paths that stay below a folder */
#include "transfer/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"

int beneath_clean(const char *raw, char out[PATH_MAX], struct aq_error *err)
{
    const char *path = raw;
    size_t at = 0;

    if (raw[0] == '/')
        return aq_fail_kind(err, EINVAL, "path-leads-out", "'%.200s' is an absolute path", path);
    while (*raw) {
        size_t len = strcspn(raw, "/");

        if (len == 2 && raw[0] == '.' && raw[1] == '.')
            return aq_fail_kind(err, EINVAL, "path-leads-out", "'%.200s' has '..' in it", path);
        if (len > NAME_MAX || at + len + 2 > PATH_MAX)
            return aq_fail(err, ENAMETOOLONG, "'%.200s' is longer than a file's name can be", path);
        if (len && !(len == 1 && raw[0] == '.')) {
            if (at)
                out[at++] = '/';
            memcpy(out + at, raw, len);
            at += len;
        }
        raw += len + (raw[len] == '/');
    }
    out[at] = '\0';
    return 0;
}

static int beneath_resolve(int root, const char *path, int flags, uint64_t rules)
{
    const struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? 0600 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | rules,
    };
    long fd;

    do
        fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
    while (fd < 0 && (errno == EAGAIN || errno == EINTR));
    return fd < 0 ? -errno : (int)fd;
}

int beneath_open(int root, const char *path, int flags, bool no_links)
{
    return beneath_resolve(root, path, flags, no_links ? RESOLVE_NO_SYMLINKS : 0);
}

int beneath_open_folder(int root, const char *path)
{
    return beneath_resolve(root, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

static int beneath_open_above(int root, const char *path, bool no_links)
{
    return beneath_open(root, path, O_PATH | O_DIRECTORY, no_links);
}

int beneath_make(int root, const char *path, bool no_links)
{
    char part[PATH_MAX];
    int fd = beneath_open_above(root, path, no_links);

    for (size_t at = 0; fd == -ENOENT && path[at];) {
        const char *name;
        int parent, r;

        at += strcspn(path + at, "/");
        memcpy(part, path, at);
        part[at] = '\0';
        parent = beneath_open_parent(root, part, no_links, false, &name);
        if (parent < 0)
            return parent;
        r = mkdirat(parent, name, 0777) < 0 && errno != EEXIST ? -errno : 0;
        aq_closep(&parent);
        if (r < 0)
            return r;
        if (!path[at])
            fd = beneath_open_above(root, path, no_links);
        at += path[at] == '/';
    }
    return fd;
}

int beneath_open_parent(int root, const char *path, bool no_links, bool make, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    char above[PATH_MAX];

    if (len >= sizeof(above))
        return -ENAMETOOLONG;
    memcpy(above, path, len);
    above[len] = '\0';
    *ret_name = slash ? slash + 1 : path;
    return make ? beneath_make(root, above, no_links) : beneath_open_above(root, above, no_links);
}

int beneath_fail(struct aq_error *err, int code, const char *path)
{
    switch (code) {
    case EXDEV:
        return aq_fail_kind(err, EINVAL, "path-leads-out",
                            "'%.200s' leads out of the folder through a symbolic link", path);
    case ELOOP:
        return aq_fail_kind(err, EINVAL, "path-leads-out",
                            "'%.200s' is, or goes through, a "
                            "symbolic link, which is not followed here",
                            path);
    case ENOENT:
        return aq_fail_kind(err, code, "no-such-file", "there is no '%.200s'", path);
    case ENOSPC:
    case EDQUOT: /* of the file system; a limit of ours is not enforced here */
        return aq_fail_kind(err, ENOSPC, "disk-full", "'%.200s': %s", path, fs_explain(code));
    default:
        return aq_fail_kind(err, code, "file-failed", "'%.200s': %s", path, fs_explain(code));
    }
}
