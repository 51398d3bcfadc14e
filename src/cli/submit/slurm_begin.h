/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_begin.h - starts as sbatch(1)'s --begin has them */
#ifndef AQ_CLI_SUBMIT_SLURM_BEGIN_H
#define AQ_CLI_SUBMIT_SLURM_BEGIN_H

#include <stdint.h>

#include "base/cleanup.h"

#define SLURM_BEGIN_MAX 48

/* A start, in the words of --starts-at: "now+2hours" as a duration; a day (2026-12-24, 12/24,
 * 12/24/26, 122426, today, tomorrow), an hour (16:00, "4:00 PM", noon, teatime) or both as a date,
 * which are in the local time zone. "" = at once. 0 or -EINVAL.
 */
int slurm_begin_parse(const char *text, int64_t now_usec, char ret[SLURM_BEGIN_MAX]) AQ_UNTRUSTED;

/* Parse such a text as an absolute time, which may be in the past, as sacct(1) does: also
 * "now-2days". A time without a date is today, a date without a year is this year. 0 or -EINVAL.
 */
int slurm_moment_parse(const char *text, int64_t now_usec, int64_t *ret_usec);

#endif
