#include "agent/runtime/exit_file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/strbuf.h"

int exit_file_read(const char *folder, struct exit_file *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/exit.json", folder);
    struct exit_file file = { .exit = { .text = "" } };
    json_t *code;
    json_int_t ended = 0;
    int r;

    if (!path)
        return aq_fail(err, ENOMEM, "exit record");
    r = fs_read(AT_FDCWD, path, 1 << 16, &text, err);
    if (r < 0)
        return r;
    file.json = json_loadb(text.data, text.len, 0, NULL);
    if (json_unpack(file.json, "{s:s, s:s, s:o, s:I}", "reason", &file.exit.reason, "text",
                    &file.exit.text, "exit_code", &code, "ended_at", &ended) < 0) {
        json_decref(file.json);
        return aq_fail(err, EINVAL, "'%s' is damaged", path);
    }
    file.exit.has_code = json_is_integer(code);
    file.exit.code = (int)json_integer_value(code);
    file.exit.ended_usec = ended;
    *ret = file;
    return 0;
}

void exit_file_done(struct exit_file *file)
{
    json_decref(file->json);
    file->json = NULL;
}
