/* SPDX-License-Identifier: Apache-2.0 */
/* installed.c - where the other files of this installation are */
#include "base/installed.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"

/* The path if it can be read; else it is freed, and NULL. */
static char *installed_check(char *path)
{
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* A directory that was configured as an absolute one is not below 'root'. */
static char *installed_look(const char *root, const char *folder, const char *name)
{
    return installed_check(folder[0] == '/' ? aq_format("%s/%s", folder, name)
                                            : aq_format("%s/%s/%s", root, folder, name));
}

char *installed_find(const char *name)
{
    static const char *const folders[] = { INSTALLED_BIN, INSTALLED_LIBEXEC "/aliquot",
                                           INSTALLED_LIB "/aliquot" };
    AQ_CLEANUP(aq_freep) char *own = fs_program_dir();
    AQ_CLEANUP(aq_freep) char *above = own ? aq_format("%s/..", own) : NULL;
    AQ_CLEANUP(aq_freep) char *above_twice = own ? aq_format("%s/../..", own) : NULL;
    const char *const roots[] = { above, above_twice, INSTALLED_PREFIX };
    char *path = own ? installed_check(aq_format("%s/%s", own, name)) : NULL;

    for (size_t i = 0; !path && i < AQ_COUNT(roots); i++)
        for (size_t n = 0; !path && roots[i] && n < AQ_COUNT(folders); n++)
            path = installed_look(roots[i], folders[n], name);
    return path;
}
