/* SPDX-License-Identifier: Apache-2.0 */
/* job_ids.h - numbers of jobs, arrays and their elements, as users of Slurm write them
 *
 * "12", "12_3", "12_[1-3,7]", with commas between. What is behind a dot, as in "12.batch", is a
 * step, of which there are none.
 */
#ifndef AQ_CLI_SLURM_JOB_IDS_H
#define AQ_CLI_SLURM_JOB_IDS_H

#include "base/error.h"
#include "model/array_range.h"

struct job_id {
    int64_t number;
    struct array_set elements; /* empty = the job or all of the array */
};

struct job_ids {
    struct job_id *items;
    size_t count, cap;
};

/* Read a list; NULL is an empty one. -EINVAL of kind usage. *ret is released in any case. */
int job_ids_read(const char *text, struct job_ids *ret, struct aq_error *err);
void job_ids_done(struct job_ids *ids);

#endif
