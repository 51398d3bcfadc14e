/* SPDX-License-Identifier: Apache-2.0 */
/* "folder sync": one side becomes what the other is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "cli/folder/folder.h"
#include "cli/folder/place.h"
#include "cli/verbs.h"
#include "transfer/name.h"

#define REMOVED_AT_ONCE 500

struct sync_opts {
    bool removes, is_dry, follows_links;
};

struct sync {
    struct cli *cli;
    const struct sync_opts *opts;
    const struct place *from, *to;
    struct copy_list list, there;
    int root; /* of this machine */
    size_t unchanged, removed;
    struct strbuf out; /* what is done, a line each */
};

static void sync_say(struct sync *s, const char *what, const char *path)
{
    if (!output_is_human(&s->cli->output) || s->cli->globals.quiet)
        return;
    strbuf_addf(&s->out, "%-7s ", what);
    utf8_write_printable(path, strlen(path), &s->out);
    strbuf_addc(&s->out, '\n');
}

static const struct place *sync_remote(const struct sync *s)
{
    return s->to->folder[0] ? s->to : s->from;
}

/* What is in a directory, here or in the folder; nothing if it is where all goes and not there yet.
 */
static int sync_read(struct sync *s, bool is_remote, bool is_target, struct copy_list *list,
                     struct aq_error *err)
{
    const struct place *place = sync_remote(s);
    struct copy_item item;
    bool is_there;
    int r;

    if (!is_remote)
        return s->root < 0 ? 0
                           : copy_list_add_local(s->cli, list, s->root, "", "",
                                                 s->opts->follows_links, err);
    r = copy_look_remote(s->cli, place->folder, place->path, &is_there, &item, err);
    if (r < 0 || (!is_there && is_target))
        return r;
    if (is_there && item.type != COPY_FOLDER)
        return aq_fail_kind(err, ENOTDIR, CLI_KIND_USAGE,
                            "'%s' is a file; to copy it: aliquot folder cp", place->word);
    return copy_list_add_remote(s->cli, list, place->folder, place->path, "", err);
}

/* ---- what is to be removed ---- */

static bool sync_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return strncmp(path, above, len) == 0 && path[len] == '/';
}

static int sync_remove_remote(struct sync *s, json_t *files, struct aq_error *err)
{
    return folder_send(s->cli, METHOD_DELETE, s->to->folder, "/delete-files",
                       json_pack("{s:O, s:b}", "files", files, "recursive", true), NULL, err);
}

static int sync_add_removed(struct sync *s, json_t *files, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *whole = copy_join(s->to->path, path);
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    int r = 0;

    name_write(whole, &name);
    (void)json_array_append_new(files, json_string(name.data));
    if (json_array_size(files) < REMOVED_AT_ONCE)
        return 0;
    r = sync_remove_remote(s, files, err);
    (void)json_array_clear(files);
    return r;
}

/* All that the source lacks, or has as something else; what is in a directory goes with it. */
static int sync_remove(struct sync *s, struct aq_error *err)
{
    json_auto_t *files = json_array();
    const char *last = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->there.count; i++) {
        const struct copy_item *item = &s->there.items[i];
        const struct copy_item *source = copy_list_find(&s->list, item->to);

        if ((last && sync_is_below(item->to, last)) || (source && source->type == item->type))
            continue;
        last = item->to;
        s->removed++;
        sync_say(s, "remove", item->to);
        if (s->opts->is_dry)
            continue;
        r = s->to->folder[0] ? sync_add_removed(s, files, item->to, err)
                             : fs_remove_tree(s->root, item->to, err);
    }
    return r == 0 && json_array_size(files) ? sync_remove_remote(s, files, err) : r;
}

/* ---- what is to be copied ---- */

static void sync_compare(struct sync *s)
{
    for (size_t i = 0; i < s->list.count; i++) {
        struct copy_item *item = &s->list.items[i];
        const struct copy_item *other = copy_list_find(&s->there, item->to);
        bool is_equal = other
                        && (item->type == COPY_FOLDER ? other->type == COPY_FOLDER
                                                      : copy_item_equals(item, other));

        item->has_failed = is_equal; /* it is dropped below */
        s->unchanged += is_equal && item->type == COPY_FILE;
        if (!is_equal)
            sync_say(s, item->type == COPY_FOLDER ? "mkdir" : other ? "update" : "copy", item->to);
    }
    for (size_t i = 0; i < s->list.count;)
        if (s->list.items[i].has_failed)
            copy_list_drop(&s->list, i);
        else
            i++;
}

static int sync_copy(struct sync *s, struct copy_transfer *t, struct aq_error *err)
{
    int r;

    copy_list_sort(&s->list);
    copy_list_sort(&s->there);
    if (s->opts->removes && (r = sync_remove(s, err)) < 0)
        return r;
    sync_compare(s);
    if ((r = cli_print(&s->out, err)) < 0 || s->opts->is_dry)
        return r;
    t->is_upload = s->to->folder[0];
    t->folder = sync_remote(s)->folder;
    t->base = sync_remote(s)->path;
    t->root = s->root;
    return copy_transfer_run(t, err);
}

static int sync_open_here(struct sync *s, struct aq_error *err)
{
    const char *word = s->to->folder[0] ? s->from->word : s->to->word;
    int r = s->to->folder[0] || s->opts->is_dry ? 0 : fs_mkdirs(word, 0777, err);

    if (r < 0)
        return r;
    s->root = open(word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->root < 0 && !(errno == ENOENT && s->opts->is_dry && !s->to->folder[0]))
        return aq_fail_errno(err, "'%.200s'", word);
    return 0;
}

static int sync_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct place from, to;
    struct sync s = { .cli = cli, .opts = data, .from = &from, .to = &to, .root = -1 };
    struct copy_transfer transfer = { .cli = cli, .list = &s.list };
    int64_t begun = clock_monotonic_usec();
    int r = place_read(argv[0], &from, err);

    (void)argc;
    strbuf_init(&s.out);
    if (r == 0)
        r = place_read(argv[1], &to, err);
    if (r == 0 && !from.folder[0] == !to.folder[0])
        r = aq_fail_kind(
            err, EINVAL, CLI_KIND_USAGE,
            "one side must be a folder's, and the other a directory here: FOLDER:[PATH]");
    if (r == 0)
        r = place_check_links(&to, s.opts->follows_links, err);
    if (r == 0)
        r = sync_open_here(&s, err);
    if (r == 0)
        r = sync_read(&s, from.folder[0], false, &s.list, err);
    if (r == 0)
        r = sync_read(&s, to.folder[0], true, &s.there, err);
    if (r == 0)
        r = sync_copy(&s, &transfer, err);
    if (r == 0 && !s.opts->is_dry)
        r = place_report(cli, &transfer, s.unchanged, s.removed, s.list.skipped,
                         clock_monotonic_usec() - begun, err);
    copy_list_done(&s.list);
    copy_list_done(&s.there);
    strbuf_done(&s.out);
    aq_closep(&s.root);
    return r;
}

static const struct cli_opt sync_options[] = {
    { 0, "delete", CLI_FLAG, offsetof(struct sync_opts, removes), NULL,
      "remove what the source does not have" },
    { 'n', "dry-run", CLI_FLAG, offsetof(struct sync_opts, is_dry), NULL,
      "only show what would be done" },
    { 'L', "copy-links", CLI_FLAG, offsetof(struct sync_opts, follows_links), NULL,
      "into a folder: what links lead to, if that is copied, too" },
    CLI_OPT_END,
};

const struct cli_verb verb_folder_sync = {
    .name = "folder sync",
    .args = "SOURCE DESTINATION",
    .summary = "Make a directory in a folder what one here is, or the other way round",
    .details =
        "One side is FOLDER:PATH, the other a directory of this machine; what is in the\n"
        "source goes into the destination. Files differ if their sizes or times do. Each\n"
        "line says what is done: copy, update, mkdir, remove. A file where the source has a\n"
        "directory, or the other way round, goes with --delete alone. Links are named and\n"
        "left out, or followed, as by 'aliquot folder cp'. Interrupted, the same command goes\n"
        "on as that does.",
    .examples = "aliquot folder sync corpus data:corpus\n"
                "aliquot folder sync --delete --dry-run data:runs results",
    .opts = sync_options,
    .opts_size = sizeof(struct sync_opts),
    .min_args = 2,
    .max_args = 2,
    .run = sync_run,
};
