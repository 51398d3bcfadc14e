/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - what squeue and sacct can show of a job */
#ifndef AQ_CLI_SLURM_FIELD_H
#define AQ_CLI_SLURM_FIELD_H

#include "cli/slurm/job.h"
#include "cli/slurm/line.h"

extern const struct slurm_field job_fields[]; /* of struct job */

#endif
