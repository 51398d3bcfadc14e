#include "manager/trim.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Text is mapped "r-xp" from a file and was never written to. */
static void drop_text(const char *line)
{
    uintptr_t from, to;
    char mode[5];

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) == 3 &&
        strcmp(mode, "r-xp") == 0 && strchr(line, '/'))
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void memory_trim(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");

    (void)malloc_trim(0);
    if (!maps)
        return;
    while (fgets(line, sizeof(line), maps))
        drop_text(line);
    (void)fclose(maps);
}
