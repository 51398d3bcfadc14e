/* SPDX-License-Identifier: Apache-2.0 */
/* copy_list.c - see copy_list.h; of a folder it is copy_list_remote.c
 *
 * A list is its own queue: directories that were added are read in turn, so that depth costs
 * nothing.
 */
#include "cli/folder/copy_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "transfer/beneath.h"

void copy_list_done(struct copy_list *list)
{
    while (list->count)
        copy_list_drop(list, list->count - 1);
    free(list->items);
    *list = (struct copy_list){ 0 };
}

void copy_list_drop(struct copy_list *list, size_t i)
{
    free(list->items[i].path);
    free(list->items[i].to);
    list->items[i] = list->items[--list->count];
}

/* A directory before what is in it, and that before names that go on: "a", "a/b", "a-b". */
static int copy_compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (*a == '/' ? 1 : (int)(unsigned char)*a) - (*b == '/' ? 1 : (int)(unsigned char)*b);
}

static int copy_item_compare(const void *a, const void *b)
{
    return copy_compare_paths(((const struct copy_item *)a)->to, ((const struct copy_item *)b)->to);
}

void copy_list_sort(struct copy_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), copy_item_compare);
}

const struct copy_item *copy_list_find(const struct copy_list *list, const char *to)
{
    const struct copy_item key = { .to = (char *)to };

    return list->count ? bsearch(&key, list->items, list->count, sizeof(key), copy_item_compare)
                       : NULL;
}

bool copy_item_equals(const struct copy_item *a, const struct copy_item *b)
{
    bool is_coarse = a->modified_usec % USEC_PER_SEC == 0 || b->modified_usec % USEC_PER_SEC == 0;
    int64_t unit = is_coarse ? USEC_PER_SEC : 1;

    return a->type == b->type && a->size == b->size
           && a->modified_usec / unit == b->modified_usec / unit;
}

char *copy_join(const char *a, const char *b)
{
    return aq_format("%s%s%s", a, *a && *b ? "/" : "", b);
}

void copy_list_take(struct cli *cli, struct copy_list *list, const struct copy_item *item,
                    char *path, char *to, const char *why)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    if (item->type != COPY_OTHER) {
        vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
        list->items[list->count] = *item;
        list->items[list->count].path = path;
        list->items[list->count++].to = to;
        return;
    }
    utf8_write_printable(path, strlen(path), &clean);
    cli_note(cli, "skipped: %s: %s", clean.data, why ? why : "it is no file, directory or link");
    list->skipped++;
    free(path);
    free(to);
}

/* ---- this machine ---- */

struct copy_tree {
    int root, top;  /* what paths are below; what is copied */
    size_t top_len; /* of the path of the latter, with a slash */
    bool follows_links;
};

struct copy_dir {
    const char *path, *to;
    bool is_below_link;
};

/* What a download that is not complete has here. */
static bool copy_is_part(const char *name)
{
    size_t len = strlen(name);

    return strncmp(name, ".aliquot-", 9) == 0 && len > 14
           && (strcmp(name + len - 5, ".part") == 0 || strcmp(name + len - 5, ".etag") == 0);
}

static struct copy_item copy_item_of(int root, const struct stat *st)
{
    return (struct copy_item){
        .type = S_ISREG(st->st_mode)   ? COPY_FILE
                : S_ISDIR(st->st_mode) ? COPY_FOLDER
                                       : COPY_OTHER,
        .root = root,
        .mode = st->st_mode & 0777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .modified_usec = AQ_MAX(st->st_mtim.tv_sec * USEC_PER_SEC + st->st_mtim.tv_nsec / 1000,
                                INT64_C(0)),
    };
}

/* The absolute path of what is open. 0 or -errno */
static int copy_path_of(int fd, char ret[PATH_MAX])
{
    char self[64];
    ssize_t len;

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    len = readlink(self, ret, PATH_MAX - 1);
    if (len < 0)
        return -errno;
    ret[len] = '\0';
    return 0;
}

/* Put what a link leads to in the link's place, by a path without links. Returns why not. In a
 * directory that a link led to, no further one leads to a directory: there may be a circle.
 */
static const char *copy_follow(const struct copy_tree *tree, bool is_below_link,
                               struct copy_item *item, char **path)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char real[PATH_MAX], above[PATH_MAX];
    const char *below;
    struct stat st;

    if (!tree->follows_links)
        return "it is a symbolic link";
    fd = beneath_open(tree->top, *path + tree->top_len, O_PATH, false);
    if (fd == -EXDEV)
        return "it is a link out of what is copied";
    if (fd < 0 || fstat(fd, &st) < 0 || copy_path_of(fd, real) < 0
        || copy_path_of(tree->root, above) < 0)
        return "it is a link to nothing";
    if (S_ISDIR(st.st_mode) && is_below_link)
        return "it is a link to a directory, in one that a link led to";
    below = real + (above[1] ? strlen(above) : 0);
    free(*path);
    *path = aq_strdup(*below == '/' ? below + 1 : below);
    *item = copy_item_of(tree->root, &st);
    item->is_below_link = true;
    return NULL;
}

static int copy_list_add_entry(struct cli *cli, struct copy_list *list,
                               const struct copy_tree *tree, int fd, const char *name,
                               const struct copy_dir *dir, struct aq_error *err)
{
    char *path = copy_join(dir->path, name), *to = copy_join(dir->to, name);
    const char *why = NULL;
    struct copy_item item;
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        free(path);
        free(to);
        return errno == ENOENT ? 0 : beneath_fail(err, errno, name); /* it has gone meanwhile */
    }
    item = copy_item_of(tree->root, &st);
    item.is_below_link = dir->is_below_link;
    if (S_ISLNK(st.st_mode))
        why = copy_follow(tree, dir->is_below_link, &item, &path);
    copy_list_take(cli, list, &item, path, to, why);
    return 0;
}

static int copy_list_read_dir(struct cli *cli, struct copy_list *list, const struct copy_tree *tree,
                              const struct copy_dir *at, struct aq_error *err)
{
    int fd = beneath_open(tree->root, at->path, O_RDONLY | O_DIRECTORY, true), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        int code = fd < 0 ? -fd : errno;

        aq_closep(&fd);
        return beneath_fail(err, code, *at->path ? at->path : ".");
    }
    while (r == 0 && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
            && !copy_is_part(entry->d_name))
            r = copy_list_add_entry(cli, list, tree, fd, entry->d_name, at, err);
    (void)closedir(dir);
    return r;
}

int copy_list_add_local(struct cli *cli, struct copy_list *list, int root, const char *path,
                        const char *to, bool follows_links, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int top = beneath_open(root, path, O_PATH | O_NOFOLLOW, false);
    const struct copy_tree tree = { .root = root,
                                    .top = top,
                                    .top_len = *path ? strlen(path) + 1 : 0,
                                    .follows_links = follows_links };
    size_t next = list->count;
    struct copy_item item;
    struct stat st;
    int r = 0;

    if (top < 0 || fstat(top, &st) < 0)
        return beneath_fail(err, top < 0 ? -top : errno, *path ? path : ".");
    item = copy_item_of(root, &st);
    if (*to || item.type != COPY_FOLDER)
        copy_list_take(cli, list, &item, aq_strdup(path), aq_strdup(to), NULL);
    else
        r = copy_list_read_dir(cli, list, &tree, &(struct copy_dir){ path, to, false }, err);
    for (; r == 0 && next < list->count; next++) {
        const struct copy_item *at = &list->items[next];
        const struct copy_dir dir = { at->path, at->to, at->is_below_link };

        if (at->type == COPY_FOLDER)
            r = copy_list_read_dir(cli, list, &tree, &dir, err);
    }
    return r;
}
