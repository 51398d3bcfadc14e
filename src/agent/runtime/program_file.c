#include "agent/runtime/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/fault.h"
#include "base/fs.h"

static void put(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "%s=%s", key, value);
    strbuf_add(out, "", 1);
}

static void put_number(struct strbuf *out, const char *key, uint64_t value)
{
    strbuf_addf(out, "%s=%" PRIu64, key, value);
    strbuf_add(out, "", 1);
}

static void put_limits(struct strbuf *out, const struct runtime_spec *spec)
{
    put_number(out, "rlimit_core", 0);
    /* Not the address space: runtimes with big reservations would not start. */
    if (spec->memory_bytes)
        put_number(out, "rlimit_data", spec->memory_bytes);
    if (spec->processes_max)
        put_number(out, "rlimit_nproc", spec->processes_max);
    if (spec->files_max)
        put_number(out, "rlimit_nofile", spec->files_max);
}

int program_file_text(const struct runtime_spec *spec, struct strbuf *out, struct aq_error *err)
{
    for (size_t i = 0; spec->argv[i]; i++)
        put(out, "arg", spec->argv[i]);
    for (size_t i = 0; spec->envp[i]; i++)
        put(out, "env", spec->envp[i]);
    put(out, "cwd", spec->cwd);
    put_number(out, "tty", spec->tty);
    if (spec->rows && spec->cols) {
        put_number(out, "rows", spec->rows);
        put_number(out, "cols", spec->cols);
    }
    if (spec->has_ids) {
        put_number(out, "uid", spec->uid);
        put_number(out, "gid", spec->gid);
    }
    put_number(out, "timeout_usec", (uint64_t)spec->timeout_usec);
    put_number(out, "grace_usec", (uint64_t)spec->grace_usec);
    put_number(out, "log_max", spec->log_max);
    put_limits(out, spec);
    return strbuf_ok(out) ? 0 : aq_fail(err, ENOMEM, "program of '%s'", spec->folder);
}

int program_file_put(const char *path, const struct strbuf *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return aq_fail_errno(err, "open '%s'", path);
    AQ_FAULT("agent.program.before");
    return fs_overwrite(folder, "program", text->data, text->len, 0600, err);
}

int program_file_write(const struct runtime_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = program_file_text(spec, &text, err);

    return r < 0 ? r : program_file_put(spec->folder, &text, err);
}
