/* SPDX-License-Identifier: Apache-2.0 */
/* copy_list.h - what there is to copy: files and directories of this machine and of a folder
 *
 * Names are bytes, as Linux has them; the manager's text is read by transfer/name.h.
 */
#ifndef AQ_CLI_FOLDER_COPY_LIST_H
#define AQ_CLI_FOLDER_COPY_LIST_H

#include <sys/types.h>

#include "cli/cli.h"

enum copy_type { COPY_FILE, COPY_FOLDER, COPY_OTHER };

struct copy_item {
    enum copy_type type;
    char *path; /* where it is: below 'root' on this machine, or in the folder */
    char *to;   /* where it goes: below what is copied to; "" = that itself */
    int root;   /* of this machine; borrowed */
    mode_t mode;
    uint64_t size;
    int64_t modified_usec;
    bool has_failed;
    bool has_come;      /* in an archive of the storage host */
    bool is_below_link; /* in a directory that a link led to */
};

struct copy_list {
    struct copy_item *items;
    size_t count, cap;
    size_t skipped; /* links and what else is no file or directory; each was told */
};

void copy_list_done(struct copy_list *list);

/* Remove item 'i'; the order is not kept. */
void copy_list_drop(struct copy_list *list, size_t i);

/* By 'to', so that a directory comes before what is in it. */
void copy_list_sort(struct copy_list *list);

/* In a sorted list; NULL = it has none. */
const struct copy_item *copy_list_find(const struct copy_list *list, const char *to);

/* Is it the same file, as far as size and time of change tell? A time without a fraction is that of
 * a file system that has none.
 */
bool copy_item_equals(const struct copy_item *a, const struct copy_item *b);

/* Add an item; one that is no file or directory is told instead, and left out: 'why', NULL = it is
 * something else. Takes 'path' and 'to'.
 */
void copy_list_take(struct cli *cli, struct copy_list *list, const struct copy_item *item,
                    char *path, char *to, const char *why);

/* Add 'path' below a directory of this machine, and all that is in it if it is a directory. "" is
 * what is in the directory itself. With 'follows_links' what links lead to stands for them, as long
 * as that is in the directory, too. -ENOENT, -errno.
 */
int copy_list_add_local(struct cli *cli, struct copy_list *list, int root, const char *path,
                        const char *to, bool follows_links, struct aq_error *err);

/* The same of a path in a folder, links left out. */
int copy_list_add_remote(struct cli *cli, struct copy_list *list, const char *folder,
                         const char *path, const char *to, struct aq_error *err);

/* What is at a path in a folder: *ret_is_there is false if nothing is. item->path and ->to are
 * NULL.
 */
int copy_look_remote(struct cli *cli, const char *folder, const char *path, bool *ret_is_there,
                     struct copy_item *ret, struct aq_error *err);

/* "A/B", or the other one where one is "". */
char *copy_join(const char *a, const char *b);

#endif
