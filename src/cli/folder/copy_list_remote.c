/* SPDX-License-Identifier: Apache-2.0 */
/* copy_list_remote.c - what is in a folder, see copy_list.h
 *
 * The list is its own queue, as that of this machine. Several directories are asked for at a time:
 * most have little in them, and an answer takes as long as the line to the manager.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/folder/copy_list.h"
#include "cli/folder/folder.h"
#include "transfer/beneath.h"
#include "transfer/name.h"

#define PAGE 10000 /* each page of a directory reads all of it */
#define PAGE_BYTES (UINT64_C(64) << 20)
#define AT_ONCE 8

struct copy_walk;

/* A directory whose pages are asked for. */
struct copy_look {
    struct copy_walk *walk;
    struct exchange *exchange; /* NULL = none is */
    char *path, *to, *after;
};

struct copy_walk {
    struct cli *cli;
    struct copy_list *list;
    const char *folder;
    size_t next; /* of the list */
    struct copy_look looks[AT_ONCE];
    struct aq_error *err;
    int r;
};

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

static void copy_write_query(struct strbuf *out, const char *path, const char *after, int limit)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

    name_write(*path ? path : ".", &name);
    strbuf_addf(out, "/files?missing_ok=true&limit=%d", limit);
    cli_path_query(out, "path", name.data);
    cli_path_query(out, "after", after);
}

int copy_look_remote(struct cli *cli, const char *folder, const char *path, bool *ret_is_there,
                     struct copy_item *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;
    json_auto_t *answer = NULL;
    char name[NAME_MAX + 1];
    int r;

    copy_write_query(&query, path, NULL, 1);
    r = folder_call(cli, METHOD_GET, folder, query.data, NULL, &answer, err);
    *ret = (struct copy_item){ .type = COPY_FOLDER, .mode = 0755, .root = -1 };
    if (r < 0)
        return r;
    *ret_is_there = !json_is_true(json_object_get(answer, "is_missing"));
    if (json_is_true(json_object_get(answer, "is_file"))
        && !copy_parse_item(json_array_get(json_object_get(answer, "items"), 0), ret, name))
        return copy_fail_answer(cli, err);
    return 0;
}

/* ---- all that is in a directory ---- */

static void copy_look_done(struct copy_look *look)
{
    exchange_cancel(AQ_TAKE(look->exchange));
    free(AQ_TAKE(look->path));
    free(AQ_TAKE(look->to));
    free(AQ_TAKE(look->after));
}

/* Rows of a page; *ret_more whether others follow, after look->after. */
static int copy_look_take(struct copy_look *look, const json_t *answer, bool *ret_more,
                          struct aq_error *err)
{
    struct copy_walk *walk = look->walk;
    const json_t *items = json_object_get(answer, "items"), *row;
    const char *last = NULL;
    size_t i;

    json_array_foreach(items, i, row) {
        const char *type = json_string_value(json_object_get(row, "type"));
        bool is_link = type && strcmp(type, "SYMLINK") == 0;
        char name[NAME_MAX + 1];
        struct copy_item item;

        if (!copy_parse_item(row, &item, name))
            return copy_fail_answer(walk->cli, err);
        copy_list_take(walk->cli, walk->list, &item, copy_join(look->path, name),
                       copy_join(look->to, name), is_link ? "it is a symbolic link" : NULL);
        last = json_string_value(json_object_get(row, "name"));
    }
    *ret_more = last && json_is_true(json_object_get(answer, "more"));
    free(look->after);
    look->after = last ? aq_strdup(last) : NULL;
    return 0;
}

static void copy_walk_go_on(struct copy_walk *walk);
static int copy_look_ask(struct copy_look *look, struct aq_error *err);

/* client_done_fn */
static void copy_look_on_answer(void *data, const struct client_response *response,
                                const struct aq_error *why)
{
    struct copy_look *look = data;
    struct copy_walk *walk = look->walk;
    json_auto_t *answer = NULL;
    bool more = false;

    look->exchange = NULL;
    if (!response) {
        *walk->err = *why;
        walk->r = cli_fail_connection(walk->cli, walk->err);
    } else if (response->head->status != 200) {
        walk->r = cli_fail_status(walk->cli, response->head->status, response->body,
                                  response->body_len, walk->err);
    } else {
        answer = json_loadb(response->body, response->body_len, 0, NULL);
        walk->r = answer ? copy_look_take(look, answer, &more, walk->err)
                         : copy_fail_answer(walk->cli, walk->err);
    }
    if (walk->r == 0 && more)
        walk->r = copy_look_ask(look, walk->err);
    else
        copy_look_done(look);
    copy_walk_go_on(walk);
}

static int copy_look_ask(struct copy_look *look, struct aq_error *err)
{
    struct copy_walk *walk = look->walk;
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET, .body_max = PAGE_BYTES };

    folder_path(&path, walk->folder, "");
    copy_write_query(&path, look->path, look->after, PAGE);
    return cli_begin_fetch(walk->cli, path.data, request, copy_look_on_answer, look,
                           &look->exchange, err);
}

static int copy_look_begin(struct copy_walk *walk, const char *path, const char *to,
                           struct aq_error *err)
{
    struct copy_look *look = walk->looks;

    while (look->path)
        look++;
    look->walk = walk;
    look->path = aq_strdup(path);
    look->to = aq_strdup(to);
    return copy_look_ask(look, err);
}

static size_t copy_walk_count(const struct copy_walk *walk)
{
    size_t n = 0;

    for (size_t i = 0; i < AT_ONCE; i++)
        n += walk->looks[i].path != NULL;
    return n;
}

/* Ask for as many directories of the list as may be at a time. */
static void copy_walk_go_on(struct copy_walk *walk)
{
    while (walk->r == 0 && walk->next < walk->list->count && copy_walk_count(walk) < AT_ONCE) {
        const struct copy_item *item = &walk->list->items[walk->next++];

        if (item->type == COPY_FOLDER)
            walk->r = copy_look_begin(walk, item->path, item->to, walk->err);
    }
}

int copy_list_add_remote(struct cli *cli, struct copy_list *list, const char *folder,
                         const char *path, const char *to, struct aq_error *err)
{
    struct aq_error own = { 0 };
    struct copy_walk walk = {
        .cli = cli, .list = list, .folder = folder, .next = list->count, .err = &own
    };
    struct copy_item item;
    uv_loop_t *loop;
    bool is_there;
    int r = copy_look_remote(cli, folder, path, &is_there, &item, err);

    if (r < 0 || !is_there)
        return r < 0 ? r : beneath_fail(err, ENOENT, path);
    if ((r = cli_client_open(cli, &loop, NULL, err)) < 0)
        return r;
    if (*to || item.type != COPY_FOLDER)
        copy_list_take(cli, list, &item, aq_strdup(path), aq_strdup(to), "it is a symbolic link");
    else
        walk.r = copy_look_begin(&walk, path, to, &own);
    copy_walk_go_on(&walk);
    while (walk.r == 0 && copy_walk_count(&walk))
        (void)uv_run(loop, UV_RUN_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++)
        copy_look_done(&walk.looks[i]);
    if (walk.r < 0 && err)
        *err = own;
    return walk.r;
}
