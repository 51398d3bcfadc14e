/* SPDX-License-Identifier: Apache-2.0 */
/* job_place.h - shell lines that set the working directory and output files of an sbatch job
 *
 * They are used only if the session has the directory: a process of the node sees the node's
 * directories, a container only those that are mounted into it.
 */
#ifndef AQ_CLI_SUBMIT_JOB_PLACE_H
#define AQ_CLI_SUBMIT_JOB_PLACE_H

#include "base/strbuf.h"
#include "cli/submit/slurm_table.h"

struct job_place {
    const char *directory;              /* absolute; NULL = the session's own */
    bool must_have;                     /* set by --chdir: the job fails without it */
    const char *output, *error, *input; /* patterns, relative to the directory; NULL = the log */
    bool is_appended;
    const char *user; /* %u */
};

/* The lines expand %A, %a, %j, %J, %N, %n, %s, %t, %u, %x and %% as sbatch(1) has them. */
void job_place_write(const struct job_place *place, struct strbuf *out);

#endif
