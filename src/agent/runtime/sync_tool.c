/* SPDX-License-Identifier: Apache-2.0 */
/* sync_tool.c - runs a program to its end, before the loop runs */
#include "agent/runtime/sync_tool.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/program.h"

#define TOOL_ARGS_MAX 24
#define TOOL_MSEC 60000

char *tool_find(const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                                                getenv("PATH") ? getenv("PATH") : "");
    char *at = path, *directory;

    if (name[0] == '/')
        return access(name, X_OK) == 0 ? aq_strdup(name) : NULL;
    while (at && (directory = strsep(&at, ":"))) {
        AQ_CLEANUP(aq_freep) char *file = directory[0] == '/' ? aq_format("%s/%s", directory, name)
                                                              : NULL;

        if (file && access(file, X_OK) == 0)
            return AQ_TAKE(file);
    }
    return NULL;
}

int tool_run(const char *const *argv, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *file = tool_find(argv[0]);
    const char *full[TOOL_ARGS_MAX] = { file };

    if (!file)
        return aq_fail(err, ENOENT, "there is no program '%s'", argv[0]);
    for (size_t i = 1; argv[i] && i < AQ_COUNT(full) - 1; i++)
        full[i] = argv[i];
    return program_run((char *const *)(uintptr_t)full, NULL, TOOL_MSEC, out, err);
}
