/* SPDX-License-Identifier: Apache-2.0 */
/* exit_file.c - reads a monitor's exit record, or writes one in its place */
#include "agent/runtime/exit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/name_values.h"

#define EXIT_FILE_MAX (NAME_VALUES_JSON_MAX + (1 << 16))

int exit_file_read(const char *directory, struct exit_file *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/exit.json", directory);
    struct exit_file file = { .exit = { .text = "" } };
    json_t *code, *outputs;
    json_int_t ended = 0;
    int r = fs_read(AT_FDCWD, path, EXIT_FILE_MAX, &text, err);

    if (r < 0)
        return r;
    file.json = json_loadb(text.data, text.len, 0, NULL);
    if (json_unpack(file.json, "{s:s, s:s, s:o, s:I}", "reason", &file.exit.reason, "text",
                    &file.exit.text, "exit_code", &code, "ended_at", &ended)
        < 0) {
        json_decref(file.json);
        return aq_fail(err, EINVAL, "'%s' is damaged", path);
    }
    outputs = json_object_get(file.json, "outputs");
    file.outputs = outputs ? json_dumps(outputs, JSON_COMPACT) : NULL;
    file.exit.outputs = file.outputs;
    file.exit.was_short_of_memory = json_is_true(json_object_get(file.json, "was_short_of_memory"));
    file.exit.has_code = json_is_integer(code);
    file.exit.code = (int)json_integer_value(code);
    file.exit.ended_usec = ended;
    *ret = file;
    return 0;
}

bool exit_file_is_of(const char *directory, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];
    struct exit_file file;
    const char *owner;
    bool is_same;

    if (exit_file_read(directory, &file, NULL) < 0)
        return false;
    owner = json_string_value(json_object_get(file.json, "kernel_id"));
    is_same = owner && strcmp(owner, uuid_format(id, text)) == 0;
    exit_file_done(&file);
    return is_same;
}

void exit_file_write(const struct uuid *id, const char *reason, const char *text,
                     struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char kernel[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "version", 1);
    jsonw_member_str(&w, "kernel_id", uuid_format(id, kernel));
    jsonw_member_str(&w, "reason", reason);
    jsonw_member_str(&w, "text", text);
    jsonw_member_null(&w, "exit_code");
    jsonw_member_null(&w, "signal");
    jsonw_member_int(&w, "started_at", 0);
    jsonw_member_int(&w, "ended_at", clock_realtime_usec());
    jsonw_object_end(&w);
}

void exit_file_done(struct exit_file *file)
{
    json_decref(file->json);
    file->json = NULL;
    free(AQ_TAKE(file->outputs));
}
