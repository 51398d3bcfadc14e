/* SPDX-License-Identifier: Apache-2.0 */
/* folder_list.c - a page of a directory, in order: see folder.h
 *
 * Of all names only those of the page are kept, in a heap with the last one at its top, so that a
 * directory of any size takes no more memory than its page.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/jsonw.h"
#include "base/memory.h"
#include "storage/folder.h"
#include "transfer/name.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

#define LIST_BYTES_MAX ((size_t)2 << 20) /* of a page's JSON: it goes into a message */

struct folder_page {
    char **names; /* heap, later sorted */
    size_t count, max;
    char after[NAME_MAX + 1]; /* "" = from the first */
    bool is_root, has_more;
};

static void folder_page_clear(struct folder_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->names[i]);
    page->count = 0;
    page->has_more = false;
}

static void folder_page_done(struct folder_page *page)
{
    folder_page_clear(page);
    free(page->names);
}

/* Let the name at 'i' sink to where it is behind both below it. */
static void folder_page_sink(struct folder_page *page, size_t i)
{
    for (;;) {
        size_t last = i, child = 2 * i + 1;

        for (size_t c = child; c < page->count && c <= child + 1; c++)
            if (strcmp(page->names[c], page->names[last]) > 0)
                last = c;
        if (last == i)
            return;
        AQ_SWAP(page->names[i], page->names[last]);
        i = last;
    }
}

static void folder_page_rise(struct folder_page *page, size_t i)
{
    for (; i && strcmp(page->names[i], page->names[(i - 1) / 2]) > 0; i = (i - 1) / 2)
        AQ_SWAP(page->names[i], page->names[(i - 1) / 2]);
}

static bool folder_page_wants(struct folder_page *page, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, page->after) <= 0
        || (page->is_root && strcmp(name, FOLDER_UPLOADS) == 0))
        return false;
    if (page->count < page->max)
        return true;
    page->has_more = true;
    return strcmp(name, page->names[0]) < 0;
}

static void folder_page_add(struct folder_page *page, const char *name)
{
    if (!folder_page_wants(page, name))
        return;
    if (page->count < page->max) {
        page->names[page->count++] = aq_strdup(name);
        folder_page_rise(page, page->count - 1);
        return;
    }
    free(page->names[0]);
    page->names[0] = aq_strdup(name);
    folder_page_sink(page, 0);
}

static int folder_page_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int64_t folder_usec(struct statx_timestamp t)
{
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* False if it has gone meanwhile. */
static bool folder_write_item(struct jsonw *w, int fd, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct statx st;

    if (statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &st)
        < 0)
        return false;
    jsonw_object_begin(w);
    name_write(name, &text);
    jsonw_member_str(w, "name", text.data);
    jsonw_member_str(w, "type",
                     S_ISREG(st.stx_mode)   ? "FILE"
                     : S_ISDIR(st.stx_mode) ? "DIRECTORY"
                     : S_ISLNK(st.stx_mode) ? "SYMLINK"
                                            : "OTHER");
    jsonw_member_int(w, "size", (int64_t)st.stx_size);
    jsonw_member_int(w, "mode", st.stx_mode);
    jsonw_member_int(w, "created",
                     folder_usec(st.stx_mask & STATX_BTIME ? st.stx_btime : st.stx_ctime));
    jsonw_member_int(w, "modified", folder_usec(st.stx_mtime));
    jsonw_object_end(w);
    return true;
}

static void folder_page_fill(struct folder_page *page, DIR *dir)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)))
        folder_page_add(page, entry->d_name);
    if (page->count)
        qsort(page->names, page->count, sizeof(*page->names), folder_page_compare);
}

/* How many items were written; *ret_more whether names are left. */
static size_t folder_page_write(const struct folder_page *page, int fd, struct jsonw *w,
                                bool *ret_more)
{
    size_t from = w->out->len, written = 0, i;

    for (i = 0; i < page->count && w->out->len - from < LIST_BYTES_MAX; i++)
        written += folder_write_item(w, fd, page->names[i]);
    *ret_more = page->has_more || i < page->count;
    return written;
}

/* Clients go on after the last item, so there is one as long as names are left: a page whose files
 * were all removed meanwhile is followed by the next one.
 */
static void folder_list_directory(struct folder_page *page, DIR *dir, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    bool has_more = true;
    size_t written = 0;

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    while (!written && has_more) {
        if (page->count)
            strcpy(page->after, page->names[page->count - 1]);
        folder_page_clear(page);
        rewinddir(dir);
        folder_page_fill(page, dir);
        written = folder_page_write(page, dirfd(dir), &w, &has_more);
    }
    jsonw_array_end(&w);
    jsonw_member_bool(&w, "more", has_more);
    jsonw_object_end(&w);
}

/* The page of a path that is no directory: itself. False if it is not there. */
static bool folder_list_file(int root, const char *path, struct strbuf *out)
{
    const char *name;
    AQ_CLEANUP(aq_closep) int parent = beneath_open_parent(root, path, false, false, &name);
    struct jsonw w = jsonw_make(out);
    struct stat st;

    if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    (void)folder_write_item(&w, parent, name);
    jsonw_array_end(&w);
    jsonw_member_bool(&w, "more", false);
    jsonw_member_bool(&w, "is_file", true);
    jsonw_object_end(&w);
    return true;
}

int folder_list(int root, const char *path, const char *after, size_t limit, struct strbuf *out,
                struct aq_error *err)
{
    struct folder_page page = { .max = AQ_MAX(AQ_MIN(limit, (size_t)FOLDER_LIST_MAX), (size_t)1),
                                .is_root = !*path };
    int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY, false), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd == -ENOTDIR && folder_list_file(root, path, out))
        return 0;
    if (!dir) {
        r = beneath_fail(err, fd < 0 ? -fd : errno, *path ? path : ".");
        if (err)
            strcpy(err->field, "path");
        aq_closep(&fd);
        return r;
    }
    page.names = aq_alloc_array(page.max, sizeof(*page.names));
    if (name_read(after, page.after, sizeof(page.after)))
        folder_list_directory(&page, dir, out);
    else
        r = aq_fail_field(err, EINVAL, "after", "must be the name of a file, up to %d bytes",
                          NAME_MAX);
    folder_page_done(&page);
    (void)closedir(dir);
    return r;
}
