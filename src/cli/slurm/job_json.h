/* SPDX-License-Identifier: Apache-2.0 */
/* job_json.h - jobs in the form of "squeue --json" */
#ifndef AQ_CLI_SLURM_JOB_JSON_H
#define AQ_CLI_SLURM_JOB_JSON_H

#include "cli/cli.h"
#include "cli/slurm/job.h"

/* What job_json_print() shows. */
#define JOB_JSON_NEEDS \
    (JOB_NEEDS_LIMIT | JOB_NEEDS_OWNER | JOB_NEEDS_DEPENDENCY | JOB_NEEDS_RESERVATION)

/* Print {"jobs": [...], "last_update", "meta", "errors", "warnings"}. */
int job_json_print(const struct job *jobs, size_t count, struct aq_error *err);

#endif
