/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_command.c - a kernel.create message, checked, and kept as it came: in spec.json */
#include "agent/kernel/kernel_command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/kernel/readiness.h"
#include "base/fs.h"

#define SPEC_MAX (4u << 20)

/* Below the work directory: relative, and never upwards. */
static bool kernel_command_is_inner_path(const char *path)
{
    if (path[0] == '/')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

int kernel_command_check(const struct kernel_spec *spec, struct aq_error *err)
{
    if (spec->cwd && !kernel_command_is_inner_path(spec->cwd))
        return aq_fail_field(err, EINVAL, "cwd", "'%s' is not below the work folder", spec->cwd);
    return readiness_check(spec, err);
}

int kernel_command_copy(const struct msg_kernel_create *create, const struct msg_stamp *stamp,
                        struct message *ret, struct aq_error *err)
{
    const struct message msg = { .type = MSG_KERNEL_CREATE,
                                 .kernel_create = *create,
                                 .stamp = *stamp };

    return message_copy(&msg, ret, err);
}

int kernel_command_write(const struct message *command, int64_t attempt, char **ret,
                         struct aq_error *err)
{
    struct message msg = { .type = MSG_KERNEL_CREATE,
                           .kernel_create = command->kernel_create,
                           .stamp = command->stamp };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    msg.kernel_create.attempt = attempt;
    r = message_encode(&msg, &text, err);
    if (r < 0)
        return r;
    *ret = strbuf_steal(&text);
    return 0;
}

int kernel_command_read(const char *path, struct message *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message msg;
    int r = fs_read(AT_FDCWD, path, SPEC_MAX, &text, err);

    if (r == 0)
        r = message_decode(text.data, text.len, &msg, err);
    if (r < 0)
        return r;
    if (msg.type != MSG_KERNEL_CREATE) {
        message_done(&msg);
        return aq_fail(err, EINVAL, "'%s' does not hold an order", path);
    }
    *ret = msg;
    return 0;
}
