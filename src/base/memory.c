/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - allocations that do not fail */
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static bool memory_recovers;

/* Neither stdio nor the log: both may allocate. */
static void __attribute__((noreturn)) memory_end_process(void)
{
    static char text[] = ": out of memory\n";
    const struct iovec parts[] = {
        { program_invocation_short_name, strlen(program_invocation_short_name) },
        { text, sizeof(text) - 1 },
    };
    ssize_t r = writev(STDERR_FILENO, parts, 2);

    (void)r;
    _exit(MEMORY_EXIT_STATUS);
}

void memory_recover(void)
{
    memory_recovers = true;
}

void memory_is_short(void)
{
    if (!memory_recovers)
        memory_end_process();
}

void *aq_alloc(size_t size)
{
    return aq_alloc_array(1, size);
}

void *aq_alloc_array(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);

    if (!p)
        memory_end_process();
    return p;
}

void *aq_realloc(void *p, size_t size)
{
    void *grown = realloc(p, size);

    if (!grown)
        memory_end_process();
    return grown;
}

char *aq_strdup(const char *text)
{
    return text ? aq_strndup(text, strlen(text)) : NULL;
}

char *aq_strndup(const char *text, size_t len)
{
    char *copy = text ? strndup(text, len) : NULL;

    if (text && !copy)
        memory_end_process();
    return copy;
}
