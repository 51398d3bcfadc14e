/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of this installation. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/installed.h"
#include "cli/cli.h"

char *cli_find_program(const char *name, struct aq_error *err)
{
    char *found = installed_find(name);

    if (!found)
        aq_fail(err, ENOENT, "the program %s is neither beside this one nor in libexec/aliquot",
                name);
    return found;
}

int cli_exec_program(const char *name, char *const argv[], struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = cli_find_program(name, err);

    if (!path)
        return -ENOENT;
    (void)execv(path, argv);
    if (errno == ENOENT) /* of the loader that the program names */
        return aq_fail(err, ENOEXEC,
                       "'%s' needs the GNU C library (glibc), which this machine "
                       "does not have",
                       path);
    return aq_fail_errno(err, "start '%s'", path);
}
