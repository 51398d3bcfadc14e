/* SPDX-License-Identifier: Apache-2.0 */
/* image_lookup.c - whether an image has something at a path, through links across its layers */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/image/image.h"

#define LINKS_MAX 40  /* as many as Linux follows */
#define KNOWN_MAX 256 /* answers kept of an image, whose PATH may be long */

/* A walk from the image's root. */
struct image_lookup {
    char done[PATH_MAX];  /* "/usr/bin": without links, "" = the root */
    char ahead[PATH_MAX]; /* what is left of the path */
    int links;
};

/* '*ret_unsure' is set if it failed for want of memory or descriptors, which says nothing about the
 * image.
 */
static int image_lookup_open(const char *layer, const char *path, uint64_t resolve,
                             bool *ret_unsure)
{
    const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = resolve };
    AQ_CLEANUP(aq_closep) int root = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

    *ret_unsure |= fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    return fd;
}

static bool image_lookup_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* What the topmost layer has that has anything there. 'link' is its target, "" = it is no link. */
static bool image_lookup_find(const struct image *image, const char *path, char link[PATH_MAX],
                              bool *ret_unsure)
{
    link[0] = '\0';
    for (size_t i = 0; i < image->lower_count; i++) {
        AQ_CLEANUP(aq_closep) int fd = image_lookup_open(
            image->lowers[i], path + 1, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, ret_unsure);
        struct stat st;
        ssize_t len;

        if (fd < 0 || fstat(fd, &st) < 0)
            continue;
        if (S_ISLNK(st.st_mode) && (len = readlinkat(fd, "", link, PATH_MAX - 1)) >= 0)
            link[len] = '\0';
        return !image_lookup_is_whiteout(&st);
    }
    return false;
}

/* The next part of what is left, behind what is done; false at the end. */
static bool image_lookup_advance(struct image_lookup *walk)
{
    const char *part = walk->ahead + strspn(walk->ahead, "/");
    size_t len = strcspn(part, "/"), done = strlen(walk->done);
    char *slash = strrchr(walk->done, '/');

    if (len == 0 || done + len + 2 > sizeof(walk->done))
        return false;
    if (len == 2 && part[0] == '.' && part[1] == '.') {
        if (slash)
            *slash = '\0';
    } else if (len != 1 || part[0] != '.') {
        walk->done[done] = '/';
        memcpy(walk->done + done + 1, part, len);
        walk->done[done + 1 + len] = '\0';
    }
    memmove(walk->ahead, part + len, strlen(part + len) + 1);
    return true;
}

/* What is left begins with the link's target now. False = too many, or too long. */
static bool image_lookup_follow(struct image_lookup *walk, const char *link)
{
    char rest[PATH_MAX];
    int len;

    (void)strcpy(rest, walk->ahead);
    len = snprintf(walk->ahead, sizeof(walk->ahead), "%s%s", link, rest);
    *(link[0] == '/' ? walk->done : strrchr(walk->done, '/')) = '\0';
    return ++walk->links <= LINKS_MAX && len < PATH_MAX;
}

/* Linux follows the links of a single layer. 1 or 0; -EAGAIN if a rename or a mount disturbed it. */
static int image_lookup_in_one(const char *layer, const char *path, bool *ret_unsure)
{
    AQ_CLEANUP(aq_closep) int fd = image_lookup_open(layer, path, RESOLVE_IN_ROOT, ret_unsure);
    struct stat st;

    if (fd < 0)
        return errno == EAGAIN ? -EAGAIN : 0;
    return fstat(fd, &st) == 0 && !image_lookup_is_whiteout(&st);
}

static bool image_lookup_in_layers(const struct image *image, const char *path, bool *ret_unsure)
{
    struct image_lookup walk = { .links = 0 };
    char link[PATH_MAX];

    if (snprintf(walk.ahead, sizeof(walk.ahead), "%s", path) >= PATH_MAX)
        return false;
    while (image_lookup_advance(&walk)) {
        if (!walk.done[0])
            continue;
        if (!image_lookup_find(image, walk.done, link, ret_unsure))
            return false;
        if (!walk.ahead[strspn(walk.ahead, "/")])
            return true;
        if (link[0] && !image_lookup_follow(&walk, link))
            return false;
    }
    return !walk.ahead[0];
}

bool image_has(const struct image *image, const char *path)
{
    static char is_there, is_missing;
    void *known = image->known ? map_gets(image->known, path) : NULL;
    bool is_unsure = false;
    int r = -EAGAIN;

    if (known)
        return known == &is_there;
    if (image->lower_count == 1)
        r = image_lookup_in_one(image->lowers[0], path, &is_unsure);
    if (r == -EAGAIN)
        r = image_lookup_in_layers(image, path, &is_unsure);
    if (image->known && !is_unsure && image->known->count < KNOWN_MAX)
        (void)map_sets(image->known, path, r ? &is_there : &is_missing);
    return r;
}
