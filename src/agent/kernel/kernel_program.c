/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_program.c - a kernel's program: where it runs, what it holds, its command line */
#include "agent/kernel/kernel_program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/bootstrap.h"
#include "alloc/resource_txt.h"
#include "base/shell_word.h"

static void kernel_program_tell_mounts(const struct kernel_program_resources *held,
                                       struct arena *arena, struct resource_txt *file)
{
    struct resource_mount *told = arena_array(arena, held->mount_count + 1, sizeof(*told));

    for (size_t i = 0; i < held->mount_count; i++) {
        const struct container_mount *m = &held->mounts[i];

        if (!strpbrk(m->source, ",:") && !strpbrk(m->target, ",:"))
            told[file->mount_count++] = (struct resource_mount){
                .source = m->source, .target = m->target, .perm = m->may_write ? "rw" : "ro"
            };
    }
    file->mounts = told;
}

int kernel_program_write_resource(const struct kernel_program_resources *held,
                                  const struct slot_types *types, char **ret, struct aq_error *err)
{
    struct resource_txt file = { .scratch_bytes = held->scratch_bytes,
                                 .slots = *held->slots,
                                 .grant = *held->grant,
                                 .pairs = held->attachment->pairs,
                                 .pair_count = held->attachment->pair_count,
                                 .container_id = held->container_id };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int r;

    kernel_program_tell_mounts(held, &arena, &file);
    r = resource_txt_write(&file, types, &text, err);
    if (r < 0)
        return r;
    *ret = strbuf_steal(&text);
    return 0;
}

struct kernel_program_context kernel_program_host_context(const struct settings *settings,
                                                          const char *work,
                                                          const struct accel_attachment *attachment)
{
    const char *shell = settings->shell                  ? settings->shell
                        : access("/bin/bash", X_OK) == 0 ? "/bin/bash"
                                                         : "/bin/sh";

    return (struct kernel_program_context){
        .settings = settings, .work = work, .shell = shell, .attachment = attachment
    };
}

/* ---- arguments ---- */

static int kernel_program_split_command(const char *command, struct arena *arena,
                                        const char *const **ret, struct aq_error *err)
{
    const char **argv = arena_array(arena, strlen(command) / 2 + 2, sizeof(*argv));
    const char *at = command + strspn(command, " \t\n");
    size_t count = 0;

    while (*at) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;

        at = shell_word_take(at, &word);
        if (!at)
            return aq_fail_kind(err, ENOTSUP, "no-shell",
                                "the image has no shell, which '%.100s' needs", command);
        argv[count++] = arena_strdup(arena, word.data);
    }
    *ret = argv;
    return 0;
}

bool kernel_program_has_terminal(const struct session_spec *spec)
{
    return !spec->command || (spec->input && strcmp(spec->input, KERNEL_INPUT_TERMINAL) == 0);
}

bool kernel_program_has_input(const struct session_spec *spec)
{
    return spec->command && spec->input && strcmp(spec->input, KERNEL_INPUT_STREAM) == 0;
}

int kernel_program_argv(const struct session_spec *spec, const struct kernel_program_context *place,
                        struct arena *arena, const char *const **ret, struct aq_error *err)
{
    const char **argv = arena_array(arena, 7, sizeof(*argv));
    size_t n = 0;

    *ret = argv;
    if (!place->shell && spec->bootstrap)
        return aq_fail_as(err, ENOTSUP, "no-shell", "bootstrap",
                          "the image has no shell, which a bootstrap script needs");
    if (!place->shell)
        return spec->command ? kernel_program_split_command(spec->command, arena, ret, err) : 0;
    if (!spec->command && !spec->bootstrap) {
        argv[0] = place->shell;
        argv[1] = "-l";
        return 0;
    }
    argv[n++] = "/bin/sh";
    argv[n++] = "-c";
    if (!spec->bootstrap) {
        argv[n++] = spec->command;
        return 0;
    }
    argv[n++] = spec->command ? BOOTSTRAP_COMMAND "exec /bin/sh -c \"$2\""
                              : BOOTSTRAP_COMMAND "exec \"$2\" -l";
    argv[n++] = "sh";
    argv[n++] = spec->bootstrap;
    argv[n++] = spec->command ? spec->command : place->shell;
    return 0;
}
