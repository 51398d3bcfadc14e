/* The other programs of this installation. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/cli.h"

char *cli_find_program(const char *name, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_program_dir();
    char *const candidates[] = {
        aq_format("%s/%s", folder ? folder : ".", name),
        aq_format("%s/../libexec/aliquot/%s", folder ? folder : ".", name),
        aq_format("/usr/libexec/aliquot/%s", name),
    };
    char *found = NULL;

    for (size_t i = 0; i < AQ_COUNT(candidates); i++) {
        if (!found && candidates[i] && access(candidates[i], X_OK) == 0)
            found = candidates[i];
        else
            free(candidates[i]);
    }
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
    return aq_fail_errno(err, "start '%s'", path);
}
