/* SPDX-License-Identifier: Apache-2.0 */
/* job_environ.h - the variables that Slurm gives a job, as far as their values are known
 *
 * Some are known here, others are taken in the session from what it has (BACKENDAI_...,
 * ALIQUOT_...). A variable whose value is not known is not set, and none that the user sets.
 */
#ifndef AQ_CLI_SUBMIT_JOB_ENVIRON_H
#define AQ_CLI_SUBMIT_JOB_ENVIRON_H

#include "cli/session/session_spec.h"
#include "cli/submit/slurm_options.h"

struct job_facts {
    const char *name;                /* of the job, UTF-8; NULL = as the session is called */
    const char *account, *partition; /* NULL = not known */
    const struct spec_opts *spec;    /* what is asked for in the end */
    const struct slurm_options *slurm;
    bool has_slurm_gpus; /* it is asked for the GPUs of 'slurm' */
};

/* Append lines for a shell that export them. */
void job_environ_write(const struct job_facts *facts, struct strbuf *out);

#endif
