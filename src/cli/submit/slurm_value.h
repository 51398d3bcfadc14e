/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_value.h - values of sbatch(1)'s options: times, sizes, numbers of GPUs
 *
 * All give 0 or -EINVAL; the caller knows the option and says so.
 */
#ifndef AQ_CLI_SUBMIT_SLURM_VALUE_H
#define AQ_CLI_SUBMIT_SLURM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define SLURM_COUNT_MAX 1000000 /* of cores, tasks, nodes, GPUs */
#define SLURM_BEGIN_MAX 48

/* A whole number from 1 to SLURM_COUNT_MAX. */
int slurm_count_parse(const char *text, int64_t *ret) AQ_UNTRUSTED;

/* A time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
 * days-hours:minutes, days-hours:minutes:seconds; 0 = none ("0", "UNLIMITED").
 */
int slurm_time_parse(const char *text, int64_t *ret_sec) AQ_UNTRUSTED;

/* Memory: a number of MiB, or with K, M, G or T of those; below 2^50 bytes. */
int slurm_size_parse(const char *text, int64_t *ret_bytes) AQ_UNTRUSTED;

/* "2", "a100:2" or "a100:2,v100:1": how many, and whether types are named. With 'is_gres'
 * each is "gpu[:TYPE][:N]", perhaps with "(S:0-1)" behind it.
 */
int slurm_gpus_parse(const char *text, bool is_gres, int64_t *ret, bool *ret_typed) AQ_UNTRUSTED;

/* A start: "now+2hours" as a duration, a date or an hour of today or tomorrow (both in the local
 * time zone) as a date, in the words of --starts-at; "" = at once.
 */
int slurm_begin_parse(const char *text, int64_t now_usec, char ret[SLURM_BEGIN_MAX]) AQ_UNTRUSTED;

#endif
