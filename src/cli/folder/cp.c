/* SPDX-License-Identifier: Apache-2.0 */
/* "folder cp": files and directories into a folder and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "cli/folder/folder.h"
#include "cli/folder/place.h"
#include "cli/verbs.h"
#include "transfer/beneath.h"

struct folder_cp_opts {
    bool recursive, follows_links;
};

struct folder_cp {
    struct cli *cli;
    const struct folder_cp_opts *opts;
    const struct place *sources, *to;
    int count;
    struct copy_list list;
    struct copy_transfer transfer;
    char base[PATH_MAX]; /* where it goes in the folder */
    char name[PATH_MAX]; /* the new name of the only source; "" = it keeps its own */
    size_t unchanged;
    int *roots; /* of this machine; the last is where it goes */
    size_t root_count;
};

/* What is there already goes from the list. */
static void cp_drop_unchanged(struct folder_cp *cp, const struct copy_list *there, size_t from)
{
    for (size_t i = from; i < cp->list.count;) {
        const struct copy_item *item = &cp->list.items[i];
        const struct copy_item *other = copy_list_find(there, item->to);

        if (!other || !copy_item_equals(item, other)) {
            i++;
            continue;
        }
        cp->unchanged += item->type == COPY_FILE;
        copy_list_drop(&cp->list, i);
    }
}

static int cp_check_kind(const struct folder_cp *cp, bool is_folder, const char *word,
                         struct aq_error *err)
{
    if (!is_folder || cp->opts->recursive)
        return 0;
    return aq_fail_kind(err, EISDIR, CLI_KIND_USAGE,
                        "'%.200s' is a directory; to copy all that is in it: -r", word);
}

/* ---- into a folder ---- */

static int cp_find_base(struct folder_cp *cp, bool is_folder, struct aq_error *err)
{
    const struct place *to = cp->to;
    struct copy_item item;
    bool is_there;
    int r = copy_look_remote(cp->cli, to->folder, to->path, &is_there, &item, err);

    if (r < 0)
        return r;
    if (to->is_into || cp->count > 1 || (is_there && item.type == COPY_FOLDER && !is_folder)) {
        if (is_there && item.type != COPY_FOLDER)
            return aq_fail_kind(err, ENOTDIR, CLI_KIND_USAGE,
                                "'%s' is a file; several files go into a directory", to->word);
        memcpy(cp->base, to->path, sizeof(cp->base));
        return 0;
    }
    if (is_there && is_folder && item.type != COPY_FOLDER)
        return aq_fail_kind(err, ENOTDIR, CLI_KIND_USAGE,
                            "'%s' is a file, which no directory replaces", to->word);
    memcpy(cp->name, place_split(to->path, cp->base), strlen(place_split(to->path, cp->base)) + 1);
    return 0;
}

/* The directory that a path lies in, opened, unless the one before was the same. 'path' is without
 * links; *ret_name is its last part.
 */
static int cp_open_root(struct folder_cp *cp, const char *path, char last[PATH_MAX],
                        const char **ret_name, struct aq_error *err)
{
    char above[PATH_MAX];

    *ret_name = place_split(path, above);
    if (cp->root_count && strcmp(above, last) == 0)
        return cp->roots[cp->root_count - 1];
    memcpy(last, above, sizeof(above));
    cp->roots[cp->root_count] = open(*above ? above : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cp->roots[cp->root_count] < 0)
        return aq_fail_errno(err, "'%.200s'", above);
    return cp->roots[cp->root_count++];
}

/* "DIR/." and the like are what is in a directory. */
static bool cp_is_content(const char *word)
{
    size_t len = strlen(word);

    return strcmp(word, ".") == 0 || (len > 1 && strcmp(word + len - 2, "/.") == 0);
}

/* The name that a source has by its word, into 'ret'; 'real' where that says none. */
static void cp_read_name(const char *word, const char *real, char ret[NAME_MAX + 1])
{
    size_t len = strlen(word), from;

    while (len > 1 && word[len - 1] == '/')
        len--;
    for (from = len; from && word[from - 1] != '/';)
        from--;
    (void)snprintf(ret, NAME_MAX + 1, "%.*s", (int)(len - from), word + from);
    if (!*ret || strcmp(ret, "..") == 0)
        (void)snprintf(ret, NAME_MAX + 1, "%s", real);
}

/* What an earlier copy has brought of a directory already goes from the list. */
static int cp_compare(struct folder_cp *cp, const char *to, size_t from, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *whole = copy_join(cp->base, to);
    struct copy_list there = { 0 };
    struct copy_item item;
    bool is_there = false;
    int r = copy_look_remote(cp->cli, cp->to->folder, whole, &is_there, &item, err);

    if (r == 0 && is_there && item.type == COPY_FOLDER)
        r = copy_list_add_remote(cp->cli, &there, cp->to->folder, whole, to, err);
    copy_list_sort(&there);
    if (r == 0)
        cp_drop_unchanged(cp, &there, from);
    copy_list_done(&there);
    return r;
}

static int cp_add_source(struct folder_cp *cp, const struct place *source, char last[PATH_MAX],
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = realpath(source->word, NULL);
    char own[NAME_MAX + 1];
    size_t from = cp->list.count;
    const char *name, *to;
    struct stat st;
    int root, r;

    if (!path || stat(path, &st) < 0)
        return aq_fail_errno(err, "'%.200s'", source->word);
    r = cp_check_kind(cp, S_ISDIR(st.st_mode), source->word, err);
    if (r == 0 && cp->count == 1)
        r = cp_find_base(cp, S_ISDIR(st.st_mode), err);
    root = r < 0 ? r : cp_open_root(cp, path, last, &name, err);
    if (root < 0)
        return root;
    cp_read_name(source->word, name, own);
    to = cp->name[0] ? cp->name : cp_is_content(source->word) ? "" : own;
    r = copy_list_add_local(cp->cli, &cp->list, root, name, to, cp->opts->follows_links, err);
    return r < 0 || !S_ISDIR(st.st_mode) ? r : cp_compare(cp, to, from, err);
}

static int cp_upload(struct folder_cp *cp, struct aq_error *err)
{
    char last[PATH_MAX] = "";
    int r = cp->count > 1 ? cp_find_base(cp, false, err) : 0;

    for (int i = 0; r == 0 && i < cp->count; i++)
        r = cp_add_source(cp, &cp->sources[i], last, err);
    cp->transfer.is_upload = true;
    cp->transfer.folder = cp->to->folder;
    cp->transfer.base = cp->base;
    return r < 0 ? r : copy_transfer_run(&cp->transfer, err);
}

/* ---- out of a folder ---- */

/* The directory here, made if it is to be one, and the name in it. */
static int cp_open_here(struct folder_cp *cp, bool is_folder, struct aq_error *err)
{
    const char *word = cp->to->word;
    size_t len = strlen(word);
    char above[PATH_MAX], clean[PATH_MAX];
    const char *name;
    struct stat st;
    bool is_into;
    int r = 0;

    if (len >= sizeof(clean))
        return aq_fail(err, ENAMETOOLONG, "'%.200s' is too long", word);
    if (cp->to->is_into || cp->count > 1)
        r = fs_mkdirs(word, 0777, err);
    if (r < 0)
        return r;
    is_into = cp->to->is_into || cp->count > 1 || !is_folder;
    if (is_into && stat(word, &st) == 0 && S_ISDIR(st.st_mode)) {
        memcpy(above, word, len + 1);
    } else {
        memcpy(clean, word, len + 1);
        name = place_split(clean, above);
        memcpy(cp->name, name, strlen(name) + 1);
        if (!above[0])
            memcpy(above, name == clean ? "." : "/", 2);
    }
    cp->transfer.root = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cp->transfer.root < 0)
        return aq_fail_errno(err, "'%.200s'", above);
    cp->roots[cp->root_count++] = cp->transfer.root;
    return 0;
}

static int cp_add_remote(struct folder_cp *cp, const struct place *source, struct aq_error *err)
{
    char above[PATH_MAX];
    const char *name = place_split(source->path, above);
    struct copy_item item;
    bool is_there;
    int r = copy_look_remote(cp->cli, source->folder, source->path, &is_there, &item, err);

    if (r == 0 && !is_there)
        r = beneath_fail(err, ENOENT, source->word);
    if (r == 0)
        r = cp_check_kind(cp, item.type == COPY_FOLDER, source->word, err);
    if (r < 0)
        return r;
    name = cp->name[0] ? cp->name : cp_is_content(source->word) ? "" : name;
    return copy_list_add_remote(cp->cli, &cp->list, source->folder, source->path, name, err);
}

static void cp_drop_equal_here(struct folder_cp *cp)
{
    for (size_t i = 0; i < cp->list.count;) {
        const struct copy_item *item = &cp->list.items[i];
        int fd = beneath_open(cp->transfer.root, item->to, O_PATH | O_NOFOLLOW, true);
        struct copy_item here = { .type = COPY_OTHER };
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            here = (struct copy_item){ .type = COPY_FILE,
                                       .size = (uint64_t)st.st_size,
                                       .modified_usec = st.st_mtim.tv_sec * USEC_PER_SEC
                                                        + st.st_mtim.tv_nsec / 1000 };
        aq_closep(&fd);
        if (item->type != COPY_FILE || !copy_item_equals(item, &here)) {
            i++;
            continue;
        }
        cp->unchanged++;
        copy_list_drop(&cp->list, i);
    }
}

static int cp_download(struct folder_cp *cp, struct aq_error *err)
{
    const struct place *first = &cp->sources[0];
    struct copy_item item = { 0 };
    bool is_there;
    int r = copy_look_remote(cp->cli, first->folder, first->path, &is_there, &item, err);

    if (r == 0)
        r = cp_open_here(cp, item.type == COPY_FOLDER, err);
    for (int i = 0; r == 0 && i < cp->count; i++)
        r = cp_add_remote(cp, &cp->sources[i], err);
    if (r < 0)
        return r;
    cp_drop_equal_here(cp);
    cp->transfer.folder = cp->sources[0].folder;
    cp->transfer.base = "";
    return copy_transfer_run(&cp->transfer, err);
}

/* ---- the command ---- */

static int cp_check(const struct place *places, int count, struct aq_error *err)
{
    const struct place *to = &places[count];

    for (int i = 0; i < count; i++) {
        if (!places[i].folder[0] == !to->folder[0])
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s",
                                to->folder[0]
                                    ? "from a folder into a folder it takes two steps; all of one: "
                                      "'aliquot folder clone'"
                                    : "one side must be a folder's: FOLDER:[PATH]");
        if (strcmp(places[i].folder, places[0].folder) != 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "copy from one folder at a time: '%s' and '%s' are two",
                                places[0].folder, places[i].folder);
    }
    return 0;
}

static int cp_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct place *places = aq_alloc_array((size_t)argc, sizeof(*places));
    struct folder_cp cp = { .cli = cli, .opts = data, .count = argc - 1 };
    int64_t begun = clock_monotonic_usec();
    int r = 0;

    cp.roots = aq_alloc_array((size_t)argc, sizeof(*cp.roots));
    for (int i = 0; r == 0 && i < argc; i++)
        r = place_read(argv[i], &places[i], err);
    if (r == 0)
        r = cp_check(places, argc - 1, err);
    if (r == 0)
        r = place_check_links(&places[argc - 1], cp.opts->follows_links, err);
    if (r == 0) {
        cp.sources = places;
        cp.to = &places[argc - 1];
        cp.transfer = (struct copy_transfer){ .cli = cli, .list = &cp.list };
        r = cp.to->folder[0] ? cp_upload(&cp, err) : cp_download(&cp, err);
    }
    if (r == 0)
        r = place_report(cli, &cp.transfer, cp.unchanged, 0, cp.list.skipped,
                         clock_monotonic_usec() - begun, err);
    while (cp.root_count)
        aq_closep(&cp.roots[--cp.root_count]);
    copy_list_done(&cp.list);
    free(cp.roots);
    free(places);
    return r;
}

static const struct cli_opt cp_options[] = {
    { 'r', "recursive", CLI_FLAG, offsetof(struct folder_cp_opts, recursive), NULL,
      "directories with all that is in them" },
    { 'L', "copy-links", CLI_FLAG, offsetof(struct folder_cp_opts, follows_links), NULL,
      "into a folder: what links lead to, if that is copied, too" },
    CLI_OPT_END,
};

const struct cli_verb verb_folder_cp = {
    .name = "folder cp",
    .args = "SOURCE... DESTINATION",
    .summary = "Copy files and directories into a folder and out of it",
    .details =
        "FOLDER:PATH is a path in a folder; any other is one of this machine. A destination\n"
        "that ends with '/', or is '.', takes the copies under their names, and so does a\n"
        "directory one file or several. A single directory is copied to that name, whether\n"
        "it is there or not. 'DIR/.' is what is in a directory.\n"
        "Modes and times stay. Links are named and left out; with -L what they lead to is\n"
        "copied in their place, unless that is elsewhere. Files appear when they are\n"
        "complete. What is there with the same size and time is not copied again, and a\n"
        "large file goes on where it ended: after Ctrl-C, or a lost connection, the same\n"
        "command copies the rest.",
    .examples = "aliquot folder cp train.csv data:\n"
                "aliquot folder cp -r images labels data:corpus/\n"
                "aliquot folder cp data:runs/3/model.pt .\n"
                "aliquot folder cp -r data:runs .",
    .opts = cp_options,
    .opts_size = sizeof(struct folder_cp_opts),
    .min_args = 2,
    .max_args = -1,
    .run = cp_run,
};
