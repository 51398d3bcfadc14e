/* SPDX-License-Identifier: Apache-2.0 */
/* platform.c - which platforms of an index this machine runs, and how well */
#include "agent/image/platform.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* What each level from the second on adds, as /proc/cpuinfo calls it. */
static const char *const platform_features[] = {
    "cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2",
    "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "avx512f avx512bw avx512cd avx512dq avx512vl",
};

static bool platform_has(const char *flags, const char *name, size_t len)
{
    for (const char *at = flags; *at;) {
        size_t word = strcspn(at, " \t\n");

        if (word == len && strncmp(at, name, len) == 0)
            return true;
        at += word + strspn(at + word, " \t\n");
    }
    return false;
}

int platform_amd64_level(const char *flags)
{
    for (size_t i = 0; i < AQ_COUNT(platform_features); i++)
        for (const char *at = platform_features[i]; *at;) {
            size_t len = strcspn(at, " ");

            if (!platform_has(flags, at, len))
                return (int)i + 1;
            at += len + (at[len] == ' ');
        }
    return PLATFORM_LEVEL_MAX;
}

int platform_level(void)
{
    int level = PLATFORM_LEVEL_MAX;
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");

    while (file && getline(&line, &size, file) > 0)
        if (strncmp(line, "flags", 5) == 0) {
            level = platform_amd64_level(line);
            break;
        }
    free(line);
    if (file)
        (void)fclose(file);
    return level;
}

int platform_score(const char *architecture, const char *variant, int level)
{
    bool is_level = variant[0] == 'v' && variant[1] >= '1' && variant[1] <= '9' && !variant[2];
    int wanted = is_level ? variant[1] - '0' : 1;

    if (strcmp(architecture, "amd64") != 0)
        return 1;
    return wanted <= level ? wanted : -1;
}
