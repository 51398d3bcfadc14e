/* SPDX-License-Identifier: Apache-2.0 */
/* Give memory back that only the start needed. */
#include "base/trim.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct trim_mapping {
    uintptr_t from, to;
    bool is_file; /* a file's, and not writable */
};

/* The first line of a mapping in smaps: "from-to mode offset device inode path". */
static bool trim_read_mapping(const char *line, struct trim_mapping *ret)
{
    uintptr_t from, to;
    char mode[5];

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) != 3)
        return false;
    ret->from = from;
    ret->to = to;
    ret->is_file = mode[0] == 'r' && mode[1] == '-' && mode[3] == 'p' && strchr(line, '/');
    return true;
}

/* Pages of a file that nobody wrote to (relocations would count as anonymous)
 * come back from the page cache when they are touched.
 */
static void trim_drop(const struct trim_mapping *m, const char *anonymous)
{
    unsigned long kb;

    if (m->is_file && sscanf(anonymous, " %lu", &kb) == 1 && kb == 0)
        (void)madvise((void *)m->from, m->to - m->from, MADV_DONTNEED);
}

void memory_trim(void)
{
    static const char anonymous[] = "Anonymous:";
    struct trim_mapping m = { 0 };
    char line[512];
    FILE *smaps;

    (void)malloc_trim(0);
    smaps = fopen("/proc/self/smaps", "re");
    if (!smaps)
        return;
    while (fgets(line, sizeof(line), smaps))
        if (!trim_read_mapping(line, &m) && strncmp(line, anonymous, sizeof(anonymous) - 1) == 0)
            trim_drop(&m, line + sizeof(anonymous) - 1);
    (void)fclose(smaps);
}
