/* SPDX-License-Identifier: Apache-2.0 */
/* job_place.h - where a job of sbatch runs and which files have its output, as lines for a shell
 *
 * Only where the session has the directory: one that runs as a process of the node has those of
 * the node, a container has what is mounted into it.
 */
#ifndef AQ_CLI_SUBMIT_JOB_PLACE_H
#define AQ_CLI_SUBMIT_JOB_PLACE_H

#include "base/strbuf.h"
#include "cli/submit/slurm_table.h"

struct job_place {
    const char *directory;              /* absolute; NULL = the session's own */
    bool must_have;                     /* --chdir names it, and the job fails without */
    const char *output, *error, *input; /* patterns, relative to the directory; NULL = the log */
    bool is_appended;
    const char *user; /* %u */
};

/* The lines expand %A, %a, %j, %J, %N, %n, %s, %t, %u, %x and %% as sbatch(1) has them. */
void job_place_write(const struct job_place *place, struct strbuf *out);

#endif
