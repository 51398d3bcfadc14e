/* SPDX-License-Identifier: Apache-2.0 */
/* "folder du": what takes the space. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/folder/folder.h"
#include "cli/folder/place.h"
#include "cli/list.h"
#include "cli/verbs.h"
#include "transfer/name.h"

static const struct column du_columns[] = {
    { "bytes", "SIZE", COLUMN_BYTES, 0 },
    { "files", "FILES", COLUMN_NUMBER, 0 },
    { "share", "SHARE", COLUMN_LOAD, 0 },
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "type", "TYPE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static int64_t du_bytes(const json_t *row)
{
    return json_integer_value(json_object_get(row, "bytes"));
}

static int du_compare(const void *a, const void *b)
{
    int64_t one = du_bytes(*(json_t *const *)a), other = du_bytes(*(json_t *const *)b);

    return one < other ? 1 : one > other ? -1 : 0;
}

/* The largest first, each with its part of the whole. */
static int du_print(struct cli *cli, json_t *rows, struct aq_error *err)
{
    size_t count = json_array_size(rows), i;
    AQ_CLEANUP(aq_freep) json_t **sorted = aq_alloc_array(count + 1, sizeof(json_t *));
    json_auto_t *list = json_array();
    int64_t whole = 0;
    json_t *row;

    json_array_foreach(rows, i, row) {
        sorted[i] = row;
        whole += du_bytes(row);
    }
    if (count)
        qsort(sorted, count, sizeof(*sorted), du_compare);
    for (i = 0; i < count; i++) {
        double part = whole ? (double)du_bytes(sorted[i]) / (double)whole : 0;
        char text[16];

        (void)snprintf(text, sizeof(text), "%.0f%%", 100 * part);
        (void)json_object_set_new(sorted[i], "share",
                                  json_pack("{s:f, s:s}", "part", part, "text", text));
        (void)json_array_append(list, sorted[i]);
    }
    return list_print(cli, du_columns, list, err);
}

/* ---- all folders ---- */

static json_t *du_row_of_folder(const json_t *folder)
{
    return json_pack("{s:O, s:O, s:O, s:s}", "name", json_object_get(folder, "name"), "bytes",
                     json_object_get(folder, "used_bytes"), "files",
                     json_object_get(folder, "num_files"), "type", "FOLDER");
}

static int du_folders(struct cli *cli, struct aq_error *err)
{
    json_auto_t *folders = NULL, *rows = json_array();
    const json_t *folder;
    size_t i, total;
    int r = cli_call_list(cli, "/aliquot/v1/folders", CLI_PAGE, 0, &folders, &total, err);

    if (r < 0)
        return r;
    json_array_foreach(folders, i, folder) {
        const char *id = json_string_value(json_object_get(folder, "id"));
        json_auto_t *counted = NULL;

        /* of one that cannot be counted now, what it had last */
        if (id)
            (void)folder_call(cli, METHOD_GET, id, "", NULL, &counted, NULL);
        if (json_array_append_new(rows, du_row_of_folder(counted ? counted : folder)) < 0)
            return cli_fail_answer(cli, "a folder", err);
    }
    return du_print(cli, rows, err);
}

/* ---- what is in one ---- */

/* The row that an item counts for: that of the first part of its path, made if there is none. */
static json_t *du_row_of(json_t *rows, json_t *by_name, const struct copy_item *item)
{
    size_t len = strcspn(item->to, "/");
    AQ_CLEANUP(aq_freep) char *name = aq_strndup(item->to, len);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *row;

    name_write(name, &text);
    if ((row = json_object_get(by_name, text.data)))
        return row;
    row = json_pack("{s:s, s:I, s:I, s:s}", "name", text.data, "bytes", (json_int_t)0, "files",
                    (json_int_t)0, "type",
                    item->type == COPY_FOLDER || item->to[len] ? "DIRECTORY" : "FILE");
    (void)json_object_set(by_name, text.data, row);
    (void)json_array_append_new(rows, row);
    return row;
}

static void du_count(json_t *rows, const struct copy_list *list)
{
    json_auto_t *by_name = json_object();

    for (size_t i = 0; i < list->count; i++) {
        const struct copy_item *item = &list->items[i];
        json_t *row = du_row_of(rows, by_name, item);

        (void)json_object_set_new(row, "bytes",
                                  json_integer(du_bytes(row) + (json_int_t)item->size));
        (void)json_object_set_new(row, "files",
                                  json_integer(json_integer_value(json_object_get(row, "files"))
                                               + (item->type == COPY_FILE)));
    }
}

static int du_folder(struct cli *cli, const char *word, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *whole = aq_format("%s%s", word, strchr(word, ':') ? "" : ":");
    json_auto_t *rows = json_array();
    struct copy_list list = { 0 };
    struct place place;
    int r = place_read(whole, &place, err);

    if (r == 0)
        r = copy_list_add_remote(cli, &list, place.folder, place.path, "", err);
    if (r == 0)
        du_count(rows, &list);
    if (r == 0)
        r = du_print(cli, rows, err);
    copy_list_done(&list);
    return r;
}

static int folder_du(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return argc ? du_folder(cli, argv[0], err) : du_folders(cli, err);
}

const struct cli_verb verb_folder_du = {
    .name = "folder du",
    .args = "[FOLDER[:PATH]]",
    .summary = "Show what takes the space in folders, or in one",
    .details =
        "The largest first, with its share of the whole. Of a single folder, what is in each of\n"
        "its directories is added up.",
    .examples = "aliquot folder du\naliquot folder du data\naliquot folder du data:runs",
    .if_empty = "there are no files",
    .max_args = 1,
    .run = folder_du,
};
