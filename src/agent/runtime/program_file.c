/* SPDX-License-Identifier: Apache-2.0 */
/* program_file.c - writes what a monitor is to run (monitor/protocol.h) */
#include "agent/runtime/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/fault.h"
#include "base/fs.h"

#define INPUT_SEC 60 /* for a client that was told of the start to give input */

static void runtime_program_file_put(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "%s=%s", key, value);
    strbuf_add(out, "", 1);
}

static void program_file_put_number(struct strbuf *out, const char *key, uint64_t value)
{
    strbuf_addf(out, "%s=%" PRIu64, key, value);
    strbuf_add(out, "", 1);
}

static void program_file_put_limits(struct strbuf *out, const struct runtime_spec *spec)
{
    program_file_put_number(out, "rlimit_core", 0);
    /* Not the address space: runtimes with big reservations would not start. */
    if (spec->memory_bytes)
        program_file_put_number(out, "rlimit_data", spec->memory_bytes);
    if (spec->processes_max)
        program_file_put_number(out, "rlimit_nproc", spec->processes_max);
    if (spec->files_max)
        program_file_put_number(out, "rlimit_nofile", spec->files_max);
}

void program_file_text(const struct runtime_spec *spec, struct strbuf *out)
{
    for (size_t i = 0; spec->argv[i]; i++)
        runtime_program_file_put(out, "arg", spec->argv[i]);
    for (size_t i = 0; spec->envp[i]; i++)
        runtime_program_file_put(out, "env", spec->envp[i]);
    runtime_program_file_put(out, "cwd", spec->cwd);
    program_file_put_number(out, "tty", spec->tty);
    if (spec->output)
        runtime_program_file_put(out, "output", spec->output);
    if (spec->input)
        program_file_put_number(out, "input", INPUT_SEC);
    if (spec->rows && spec->cols) {
        program_file_put_number(out, "rows", spec->rows);
        program_file_put_number(out, "cols", spec->cols);
    }
    if (spec->has_ids) {
        program_file_put_number(out, "uid", spec->uid);
        program_file_put_number(out, "gid", spec->gid);
    }
    program_file_put_number(out, "timeout_usec", (uint64_t)spec->timeout_usec);
    program_file_put_number(out, "grace_usec", (uint64_t)spec->grace_usec);
    if (spec->warn_signal) {
        program_file_put_number(out, "warn_signal", (uint64_t)spec->warn_signal);
        program_file_put_number(out, "warn_usec", (uint64_t)spec->warn_usec);
    }
    if (spec->notice_signal) {
        program_file_put_number(out, "notice_signal", (uint64_t)spec->notice_signal);
        program_file_put_number(out, "notice_usec", (uint64_t)spec->notice_usec);
    }
    if (spec->has_bootstrap)
        program_file_put_number(out, "bootstrap_usec", (uint64_t)spec->bootstrap_usec);
    program_file_put_number(out, "log_max", spec->log_max);
    program_file_put_limits(out, spec);
}

int program_file_put(const char *path, const struct strbuf *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0)
        return aq_fail_errno(err, "open '%s'", path);
    AQ_FAULT("agent.program.before");
    return fs_overwrite(directory, "program", text->data, text->len, 0600, err);
}

int program_file_write(const struct runtime_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    program_file_text(spec, &text);
    return program_file_put(spec->directory, &text, err);
}
