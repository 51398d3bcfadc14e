/* SPDX-License-Identifier: Apache-2.0 */
/* copy_list.c - see copy_list.h
 *
 * A list is its own queue: directories that were added are read in turn, so that depth costs
 * nothing.
 */
#include "cli/folder/copy_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/folder/folder.h"
#include "transfer/beneath.h"
#include "transfer/name.h"

#define PAGE 1000

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

/* Takes the two texts, which may be NULL: memory is short then. */
static int copy_list_add(struct copy_list *list, const struct copy_item *item, char *path, char *to,
                         struct aq_error *err)
{
    if (!path || !to
        || !vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items))) {
        free(path);
        free(to);
        return aq_fail_oom(err);
    }
    list->items[list->count] = *item;
    list->items[list->count].path = path;
    list->items[list->count++].to = to;
    return 0;
}

/* What is no file or directory is told and left out. */
static int copy_list_take(struct cli *cli, struct copy_list *list, const struct copy_item *item,
                          char *path, char *to, bool is_link, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    if (item->type != COPY_OTHER || !path || !to)
        return copy_list_add(list, item, path, to, err);
    utf8_write_printable(path, strlen(path), &clean);
    cli_note(cli, "skipped: %s: it is %s", clean.data,
             is_link ? "a symbolic link" : "no file, directory or link");
    list->skipped++;
    free(path);
    free(to);
    return 0;
}

/* ---- this machine ---- */

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

static int copy_list_read_dir(struct cli *cli, struct copy_list *list, int root, const char *path,
                              const char *to, struct aq_error *err)
{
    int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY, true), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        aq_closep(&fd);
        return fd < 0 ? beneath_fail(err, -fd, *path ? path : ".") : aq_fail_oom(err);
    }
    while (r == 0 && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        struct copy_item item;
        struct stat st;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || copy_is_part(name))
            continue;
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            r = errno == ENOENT ? 0 : beneath_fail(err, errno, name);
            continue; /* it has gone meanwhile, or the list ends */
        }
        item = copy_item_of(root, &st);
        r = copy_list_take(cli, list, &item, copy_join(path, name), copy_join(to, name),
                           S_ISLNK(st.st_mode), err);
    }
    (void)closedir(dir);
    return r;
}

int copy_list_add_local(struct cli *cli, struct copy_list *list, int root, const char *path,
                        const char *to, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = beneath_open(root, path, O_PATH | O_NOFOLLOW, false);
    size_t next = list->count;
    struct copy_item item;
    struct stat st;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return beneath_fail(err, fd < 0 ? -fd : errno, *path ? path : ".");
    item = copy_item_of(root, &st);
    if (*to || item.type != COPY_FOLDER)
        r = copy_list_take(cli, list, &item, strdup(path), strdup(to), S_ISLNK(st.st_mode), err);
    else
        r = copy_list_read_dir(cli, list, root, path, to, err);
    for (; r == 0 && next < list->count; next++) {
        const struct copy_item *at = &list->items[next];

        if (at->type == COPY_FOLDER)
            r = copy_list_read_dir(cli, list, root, at->path, at->to, err);
    }
    return r;
}

/* ---- a folder ---- */

static int copy_fail_answer(const struct cli *cli, struct aq_error *err)
{
    return cli_fail_answer(cli, "a list of files cannot be read", err);
}

/* "-rwxr-xr-x" */
static mode_t copy_parse_mode(const char *text)
{
    mode_t mode = 0;

    for (size_t i = 0; text && text[0] && i < 9 && text[1 + i]; i++)
        if (text[1 + i] != '-')
            mode |= 0400u >> i;
    return mode;
}

/* False if it is none: a name must not lead elsewhere. */
static bool copy_parse_item(const json_t *row, struct copy_item *ret, char name[NAME_MAX + 1])
{
    const char *text = json_string_value(json_object_get(row, "name"));
    const char *type = json_string_value(json_object_get(row, "type"));
    const char *modified = json_string_value(json_object_get(row, "modified"));
    json_int_t size = json_integer_value(json_object_get(row, "size"));

    *ret = (struct copy_item){
        .root = -1, .mode = copy_parse_mode(json_string_value(json_object_get(row, "mode")))
    };
    if (!text || !type || !modified || size < 0 || !name_read(text, name, NAME_MAX + 1) || !*name
        || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0
        || clock_parse_date(modified, &ret->modified_usec) < 0)
        return false;
    ret->type = strcmp(type, "FILE") == 0        ? COPY_FILE
                : strcmp(type, "DIRECTORY") == 0 ? COPY_FOLDER
                                                 : COPY_OTHER;
    ret->size = ret->type == COPY_FILE ? (uint64_t)size : 0;
    return true;
}

static int copy_get_page(struct cli *cli, const char *folder, const char *path, const char *after,
                         int limit, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT, name = STRBUF_INIT;

    name_write(*path ? path : ".", &name);
    strbuf_addf(&rest, "/files?missing_ok=true&limit=%d", limit);
    cli_path_query(&rest, "path", name.data);
    cli_path_query(&rest, "after", after);
    return strbuf_ok(&rest) && strbuf_ok(&name)
               ? folder_call(cli, METHOD_GET, folder, rest.data, NULL, ret, err)
               : aq_fail_oom(err);
}

/* All of a directory; 'path' and 'to' are of no item, as the list grows. */
static int copy_list_read_pages(struct cli *cli, struct copy_list *list, const char *folder,
                                const char *path, const char *to, struct aq_error *err)
{
    json_auto_t *answer = NULL, *last = NULL;
    bool more = true;
    int r = 0;

    while (r == 0 && more) {
        const json_t *items, *row;
        size_t i;

        json_decref(AQ_TAKE(answer));
        r = copy_get_page(cli, folder, path, json_string_value(last), PAGE, &answer, err);
        if (r < 0)
            return r;
        items = json_object_get(answer, "items");
        more = json_is_true(json_object_get(answer, "more")) && json_array_size(items);
        json_array_foreach(items, i, row) {
            const char *type = json_string_value(json_object_get(row, "type"));
            char name[NAME_MAX + 1];
            struct copy_item item;

            if (!copy_parse_item(row, &item, name))
                return copy_fail_answer(cli, err);
            r = copy_list_take(cli, list, &item, copy_join(path, name), copy_join(to, name),
                               type && strcmp(type, "SYMLINK") == 0, err);
            if (r < 0)
                return r;
        }
        json_decref(last);
        last = json_incref(
            json_object_get(json_array_get(items, json_array_size(items) - 1), "name"));
    }
    return r;
}

int copy_look_remote(struct cli *cli, const char *folder, const char *path, bool *ret_is_there,
                     struct copy_item *ret, struct aq_error *err)
{
    json_auto_t *answer = NULL;
    int r = copy_get_page(cli, folder, path, NULL, 1, &answer, err);
    char name[NAME_MAX + 1];

    *ret = (struct copy_item){ .type = COPY_FOLDER, .mode = 0755, .root = -1 };
    if (r < 0)
        return r;
    *ret_is_there = !json_is_true(json_object_get(answer, "is_missing"));
    if (json_is_true(json_object_get(answer, "is_file"))
        && !copy_parse_item(json_array_get(json_object_get(answer, "items"), 0), ret, name))
        return copy_fail_answer(cli, err);
    return 0;
}

int copy_list_add_remote(struct cli *cli, struct copy_list *list, const char *folder,
                         const char *path, const char *to, struct aq_error *err)
{
    size_t next = list->count;
    struct copy_item item;
    bool is_there;
    int r = copy_look_remote(cli, folder, path, &is_there, &item, err);

    if (r < 0 || !is_there)
        return r < 0 ? r : beneath_fail(err, ENOENT, path);
    if (*to || item.type != COPY_FOLDER)
        r = copy_list_take(cli, list, &item, strdup(path), strdup(to), true, err);
    else
        r = copy_list_read_pages(cli, list, folder, path, to, err);
    for (; r == 0 && next < list->count; next++) {
        AQ_CLEANUP(aq_freep) char *at = NULL, *into = NULL;

        if (list->items[next].type != COPY_FOLDER)
            continue;
        at = strdup(list->items[next].path);
        into = strdup(list->items[next].to);
        r = at && into ? copy_list_read_pages(cli, list, folder, at, into, err) : aq_fail_oom(err);
    }
    return r;
}
