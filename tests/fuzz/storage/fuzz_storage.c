/* SPDX-License-Identifier: Apache-2.0 */
/* What clients and managers send a storage host: a token, a path, a range, a header of tus, and an
 * operation's arguments, by lines.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json_load.h"
#include "http/range.h"
#include "http/url.h"
#include "storage/folder.h"
#include "storage/ops.h"
#include "storage/token.h"
#include "storage/tus_head.h"
#include "transfer/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[TOKEN_KEY_SIZE] = "a key that everybody may know";

/* What was not signed is never read; what was, is as it was. */
static void fuzz_token(const char *text, const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct token token = { .volume = "volume1", .upload_id = { { 1 } } }, got;

    if (token_read(key, text, true, &got, NULL) == 0)
        abort();
    if (strlen(path) >= sizeof(token.path))
        return;
    memcpy(token.path, path, strlen(path) + 1);
    token_write(key, &token, &out);
    if (token_read(key, out.data, true, &got, NULL) < 0 || strcmp(got.path, path) != 0)
        abort();
}

/* A clean path has no way up, and is its own. */
static void fuzz_path(const char *raw)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[PATH_MAX], again[PATH_MAX], name[PATH_MAX];

    name_write(raw, &text);
    if (strlen(raw) < sizeof(name)
        && (!name_read(text.data, name, sizeof(name)) || strcmp(name, raw) != 0))
        abort();
    if (folder_clean("path", raw, true, path, NULL) < 0)
        return;
    if (path[0] == '/' || strstr(path, "//") || strncmp(path, "../", 3) == 0 || strstr(path, "/../")
        || strcmp(path, "..") == 0)
        abort();
    strbuf_clear(&text);
    name_write(path, &text);
    if (folder_clean("path", text.data, true, again, NULL) < 0 || strcmp(path, again) != 0)
        abort();
}

/* What is beneath a tree stays there, of either direction. */
static void fuzz_tree(const char *text)
{
    struct token token = { .is_tree = true, .path = "in" };
    struct arena arena = ARENA_INIT;
    struct url_query query;

    for (size_t i = 0; i < 2; i++) {
        token.direction = i ? TOKEN_DOWNLOAD : TOKEN_UPLOAD;
        memcpy(token.path, "in", 3);
        if (url_query_parse(&arena, text, strlen(text), &query, NULL) == 0
            && storage_enter_tree(&query, &token, NULL) == 0
            && (strncmp(token.path, "in/", 3) != 0 || strstr(token.path, "/../")))
            abort();
    }
    arena_done(&arena);
}

static void fuzz_head(const char *value)
{
    static const char *const names[] = { "Upload-Offset", "Upload-Length", "Upload-Concat",
                                         "Tus-Resumable", "Content-Type" };
    struct message_header header = { .value = value };
    const struct message_head head = { .headers = &header, .header_count = 1 };
    struct tus_head got;
    struct range range;
    uint64_t length;
    int part;

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        header.name = names[i];
        (void)tus_read_head(&head, &got, NULL);
    }
    if (tus_read_part(value, value, 1000, &part, &length, NULL) == 0
        && (part < 0 || part >= UPLOAD_PARTS_MAX || length > 1000))
        abort();
    if (range_parse(value, 1000, &range) == 1
        && (range.length == 0 || range.from + range.length > 1000))
        abort();
}

/* On a volume that is not there: nothing but what is said is looked at. */
static void fuzz_op(const char *op, const char *args)
{
    static struct settings settings;
    static struct storage storage = { .settings = &settings };
    static struct volume volume = {
        .storage = &storage, .dir = { .name = "v", .path = "/nonexistent", .seen = "/nonexistent" }
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *tree = json_load_string(args, 0);

    if (tree)
        (void)op_run(&volume, op, tree, &(struct op_progress){ 0 }, &out, NULL);
    json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    char *lines[5] = { text };

    for (size_t i = 1; i < AQ_COUNT(lines); i++) {
        char *end = lines[i - 1] ? strchr(lines[i - 1], '\n') : NULL;

        if (!end)
            return 0;
        *end = '\0';
        lines[i] = end + 1;
    }
    fuzz_token(lines[0], lines[1]);
    fuzz_path(lines[1]);
    fuzz_head(lines[2]);
    fuzz_tree(lines[2]);
    fuzz_op(lines[3], lines[4]);
    return 0;
}
