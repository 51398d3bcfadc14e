/* SPDX-License-Identifier: Apache-2.0 */
/* implied_directories.c - directories that a layer uses without describing them */
#include "agent/image/implied_directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/image/config.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/memory.h"

#define IMPLIED_MAX (64u << 20) /* bytes of a layer's list */

struct implied_directories_layer {
    int root;           /* fs/ */
    struct strbuf text; /* implied */
    struct map implied;
};

struct parents {
    struct implied_directories_layer parts[IMAGE_LAYERS_MAX]; /* lowest first */
    size_t count;
    struct map made; /* paths, in the order they were made */
    const char *path;
};

enum found { FOUND_NOTHING, FOUND_FOLDER, FOUND_END }; /* END: what is below is not seen */

/* ---- one layer ---- */

static int implied_directories_open_plain(int root, const char *path)
{
    const struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    long fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

static bool implied_directories_is_opaque(int directory)
{
    char value[4];

    return fgetxattr(directory, "trusted.overlay.opaque", value, sizeof(value)) > 0;
}

/* What this layer has at 'path', which is a directory or must not be crossed. */
static enum found implied_directories_look_exact(const struct implied_directories_layer *part,
                                                 const char *path, int *ret_fd)
{
    int fd = implied_directories_open_plain(part->root, path);

    if (fd >= 0) {
        *ret_fd = fd;
        return FOUND_FOLDER;
    }
    return fd == -ENOENT ? FOUND_NOTHING : FOUND_END;
}

/* The same, and whether layers below are hidden by one of the directories above. */
static enum found implied_directories_find(const struct implied_directories_layer *part,
                                           const char *path, int *ret_fd, bool *ret_hides)
{
    char above[PATH_MAX];
    enum found found = implied_directories_look_exact(part, path, ret_fd);

    *ret_hides = implied_directories_is_opaque(part->root)
                 || (found == FOUND_FOLDER && implied_directories_is_opaque(*ret_fd));
    for (const char *slash = path;
         found != FOUND_END && !*ret_hides && (slash = strchr(slash, '/')); slash++) {
        AQ_CLEANUP(aq_closep) int fd = -1;

        memcpy(above, path, (size_t)(slash - path));
        above[slash - path] = '\0';
        *ret_hides = implied_directories_look_exact(part, above, &fd) == FOUND_FOLDER
                     && implied_directories_is_opaque(fd);
    }
    return found;
}

/* ---- the stack ---- */

/* The directory whose attributes 'path' has in the end; -1 = none is described.
 * *ret_covered: a layer above that one has the directory without describing it.
 */
static int implied_directories_find_source(const struct parents *p, const char *path,
                                           bool *ret_covered)
{
    bool hides = false;

    *ret_covered = false;
    for (size_t i = p->count; i-- > 0 && !hides;) {
        int fd = -1;
        enum found found = implied_directories_find(&p->parts[i], path, &fd, &hides);

        if (found == FOUND_END)
            break;
        if (found == FOUND_NOTHING)
            continue;
        if (!map_gets(&p->parts[i].implied, path))
            return fd;
        *ret_covered = true;
        aq_closep(&fd);
    }
    return -1;
}

static int implied_directories_copy_attributes(int from, int to, struct aq_error *err)
{
    char names[65536], value[65536];
    ssize_t len = flistxattr(from, names, sizeof(names));
    struct stat st;

    if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0
        || fchmod(to, st.st_mode & 07777) < 0)
        return aq_fail_errno(err, "copy a folder's attributes");
    for (const char *at = names; at < names + len; at += strlen(at) + 1) {
        ssize_t size = strncmp(at, "trusted.", 8) == 0 ? -1
                                                       : fgetxattr(from, at, value, sizeof(value));

        if (size >= 0 && fsetxattr(to, at, value, (size_t)size, 0) < 0)
            return aq_fail_errno(err, "copy the attribute '%.60s'", at);
    }
    return 0;
}

/* Make the directory on top, below one that is there. */
static int implied_directories_make_one(struct parents *p, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *full = aq_format("%s/%s", p->path, path);
    AQ_CLEANUP(aq_closep) int to = -1, from = -1;
    bool covered;

    if (map_gets(&p->made, path))
        return 0;
    map_sets(&p->made, path, p);
    if (mkdir(full, 0755) < 0)
        return aq_fail_errno(err, "make '%s'", full);
    to = open(full, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return aq_fail_errno(err, "open '%s'", full);
    from = implied_directories_find_source(p, path, &covered);
    return from < 0 ? 0 : implied_directories_copy_attributes(from, to, err);
}

static int implied_directories_make_all(struct parents *p, const char *path, struct aq_error *err)
{
    char above[PATH_MAX];
    int r = implied_directories_make_one(p, "", err);

    for (const char *slash = path; r == 0 && (slash = strchr(slash, '/')); slash++) {
        memcpy(above, path, (size_t)(slash - path));
        above[slash - path] = '\0';
        r = implied_directories_make_one(p, above, err);
    }
    return r == 0 && *path ? implied_directories_make_one(p, path, err) : r;
}

/* Children come after their parents in 'made', so times are set from the end. */
static int implied_directories_set_times(const struct parents *p, struct aq_error *err)
{
    for (size_t i = p->made.count; i-- > 0;) {
        const char *path = p->made.entries[i].key;
        AQ_CLEANUP(aq_freep) char *full = aq_format("%s/%s", p->path, path);
        AQ_CLEANUP(aq_closep) int from = -1;
        struct stat st;
        bool covered;

        from = implied_directories_find_source(p, path, &covered);
        if (from < 0 || fstat(from, &st) < 0)
            continue;
        if (utimensat(AT_FDCWD, full, (struct timespec[2]){ st.st_atim, st.st_mtim }, 0) < 0)
            return aq_fail_errno(err, "set the times of '%s'", full);
    }
    return 0;
}

/* ---- */

static int implied_directories_open_part(const char *layer, struct implied_directories_layer *part,
                                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *root = aq_format("%s/fs", layer);
    AQ_CLEANUP(aq_freep) char *list = aq_format("%s/implied", layer);
    int r;

    strbuf_init(&part->text);
    part->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (part->root < 0)
        return aq_fail_errno(err, "open '%s'", root);
    r = fs_read(AT_FDCWD, list, IMPLIED_MAX, &part->text, err);
    for (const char *at = part->text.data; r == 0 && at < part->text.data + part->text.len;
         at += strlen(at) + 1)
        map_sets(&part->implied, at, part);
    return r;
}

static int implied_directories_make_needed(struct parents *p, struct aq_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        for (size_t k = 0; k < p->parts[i].implied.count; k++) {
            const char *path = p->parts[i].implied.entries[k].key;
            bool covered;
            int source = implied_directories_find_source(p, path, &covered), r;

            if (source < 0)
                continue;
            aq_closep(&source);
            r = covered ? implied_directories_make_all(p, path, err) : 0;
            if (r < 0)
                return r;
        }
    }
    return p->made.count ? implied_directories_set_times(p, err) : 0;
}

int implied_directories_make(const char *const *layers, size_t count, const char *path,
                             struct aq_error *err)
{
    struct parents *p = aq_alloc(sizeof(*p));
    int r = 0;

    p->path = path;
    for (size_t i = 0; r == 0 && i < count; i++) {
        p->parts[i].root = -1;
        r = implied_directories_open_part(layers[i], &p->parts[p->count++], err);
    }
    if (r == 0)
        r = implied_directories_make_needed(p, err);
    if (r == 0)
        r = p->made.count > 0;
    for (size_t i = 0; i < p->count; i++) {
        aq_closep(&p->parts[i].root);
        strbuf_done(&p->parts[i].text);
        map_done(&p->parts[i].implied);
    }
    map_done(&p->made);
    free(p);
    return r;
}
