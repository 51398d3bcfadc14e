/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - see place.h */
#include "cli/folder/place.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/list.h"
#include "transfer/beneath.h"

/* Is the last part "." or ".."? */
static bool place_is_dots(const char *word)
{
    const char *slash = strrchr(word, '/'), *last = slash ? slash + 1 : word;

    return strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

int place_read(const char *word, struct place *ret, struct aq_error *err)
{
    size_t len = strcspn(word, ":/");
    const char *path;

    *ret = (struct place){ .word = word };
    if (!word[0])
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "a path is empty");
    if (word[len] != ':') {
        ret->is_into = word[strlen(word) - 1] == '/' || place_is_dots(word);
        return 0;
    }
    if (len == 0 || len >= sizeof(ret->folder))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "'%s' begins with no folder's name; a file of that name is './%s'",
                            word, word);
    memcpy(ret->folder, word, len);
    path = word + len + 1;
    ret->is_into = !path[0] || path[strlen(path) - 1] == '/' || place_is_dots(path);
    path += strspn(path, "/");
    return beneath_clean(path, ret->path, err);
}

int place_check_links(const struct place *to, bool follows_links, struct aq_error *err)
{
    return follows_links && !to->folder[0]
               ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                              "-L is for copies into a folder; links in one are left out")
               : 0;
}

const char *place_split(const char *path, char *above)
{
    const char *slash = strrchr(path, '/');

    memcpy(above, path, slash ? (size_t)(slash - path) : 0);
    above[slash ? slash - path : 0] = '\0';
    return slash ? slash + 1 : path;
}

static const struct column place_columns[] = {
    { "files", "FILES", COLUMN_NUMBER, 0 },         { "bytes", "BYTES", COLUMN_BYTES, 0 },
    { "unchanged", "UNCHANGED", COLUMN_NUMBER, 0 }, { "removed", "REMOVED", COLUMN_NUMBER, 0 },
    { "skipped", "SKIPPED", COLUMN_NUMBER, 0 },     { "failed", "FAILED", COLUMN_NUMBER, 0 },
    { "seconds", "SECONDS", COLUMN_NUMBER, 0 },     COLUMN_END,
};

static void place_say(struct cli *cli, const struct copy_transfer *t, size_t unchanged,
                      size_t removed, size_t skipped, int64_t took_usec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    static const struct column bytes = { "bytes", "BYTES", COLUMN_BYTES, 0 };
    json_t *count = json_integer((json_int_t)t->bytes);

    strbuf_addf(&text, "copied %zu file%s, ", t->files, t->files == 1 ? "" : "s");
    cell_write(&cli->output, &bytes, count, &text);
    if (took_usec >= USEC_PER_SEC) {
        strbuf_adds(&text, " in ");
        cell_write_span(took_usec, &text);
    }
    if (unchanged)
        strbuf_addf(&text, "; %zu %s there already", unchanged, unchanged == 1 ? "was" : "were");
    if (removed)
        strbuf_addf(&text, "; removed %zu", removed);
    if (skipped)
        strbuf_addf(&text, "; %zu link%s or other special files left out", skipped,
                    skipped == 1 ? "" : "s");
    if (t->failed)
        strbuf_addf(&text, "; %zu failed", t->failed);
    json_decref(count);
    cli_note(cli, "%s", text.data);
}

int place_report(struct cli *cli, const struct copy_transfer *t, size_t unchanged, size_t removed,
                 size_t skipped, int64_t took_usec, struct aq_error *err)
{
    json_auto_t *row = NULL;
    int r = 0;

    if (output_is_human(&cli->output)) {
        place_say(cli, t, unchanged, removed, skipped, took_usec);
    } else {
        row = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "files", (json_int_t)t->files,
                        "bytes", (json_int_t)t->bytes, "unchanged", (json_int_t)unchanged,
                        "removed", (json_int_t)removed, "skipped", (json_int_t)skipped, "failed",
                        (json_int_t)t->failed, "seconds", (double)(took_usec / 1000) / 1000);
        r = record_print(cli, place_columns, row, err);
    }
    return r < 0 ? r : t->failed ? CLI_EXIT_FAILURE : 0;
}
