/* SPDX-License-Identifier: Apache-2.0 */
/* "slurm links": Slurm's commands as links to this program, in a directory for PATH. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

static const char *const names[] = { "sacct", "sbatch", "scancel", "scontrol",
                                     "sinfo", "squeue", "srun" };

/* A link of ours that is there is made again; anything else stays. */
static int links_make(const char *directory, const char *name, const char *program,
                      struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    char old[PATH_MAX];
    ssize_t len = readlink(path, old, sizeof(old) - 1);

    if (len > 0) {
        const char *slash;

        old[len] = '\0';
        slash = strrchr(old, '/');
        if (strcmp(slash ? slash + 1 : old, "aliquot") == 0)
            (void)unlink(path);
    }
    return symlink(program, path) < 0
               ? aq_fail(err, errno, "cannot create the link %s: %s", path, strerror(errno))
               : 0;
}

static int links_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char program[PATH_MAX], directory[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    int r = 0;

    (void)cli;
    (void)data;
    (void)argc;
    if (len < 0)
        return aq_fail_errno(err, "read /proc/self/exe");
    if (!realpath(argv[0], directory))
        return aq_fail(err, errno, "cannot use the directory %s: %s; mkdir makes it", argv[0],
                       strerror(errno));
    program[len] = '\0';
    for (size_t i = 0; r == 0 && i < AQ_COUNT(names); i++)
        r = links_make(directory, names[i], program, err);
    if (r == 0)
        cli_note(cli, "put it before the others in PATH: export PATH=%s:$PATH", directory);
    return r;
}

const struct cli_verb verb_slurm_links = {
    .name = "slurm links",
    .args = "DIRECTORY",
    .summary = "Make links for Slurm's commands (sbatch, squeue, srun, ...) in a directory",
    .details = "Programs that are written for Slurm run with this directory first in PATH.\n"
               "docs/coming-from.md says which commands and options there are.",
    .examples = "aliquot slurm links ~/slurm-bin && export PATH=~/slurm-bin:$PATH",
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_NO_CONFIG,
    .run = links_run,
};
