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

/* Digits at *at, which moves behind them; -1 = none, or too many. */
int64_t slurm_take_number(const char **at);

/* Numbers separated by colons; how many there are. */
int slurm_take_colons(const char *text, int64_t parts[3]);

/* A whole number from 1 to SLURM_COUNT_MAX. */
int slurm_count_parse(const char *text, int64_t *ret) AQ_UNTRUSTED;

/* A time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
 * days-hours:minutes, days-hours:minutes:seconds; 0 = none ("0", "-1", "UNLIMITED").
 */
int slurm_time_parse(const char *text, int64_t *ret_sec) AQ_UNTRUSTED;

/* Memory: a number of MiB, or with K, M, G or T (KB, KiB) of those; below 2^50 bytes. */
int slurm_size_parse(const char *text, int64_t *ret_bytes) AQ_UNTRUSTED;

/* The least of "4", "2-4", "1k", "1,4,16"; whether it is one of several. */
int slurm_nodes_parse(const char *text, int64_t *ret, bool *ret_range) AQ_UNTRUSTED;

/* "2", "a100", "a100:2" or "a100:2,v100:1": how many, perhaps none, and whether types are named.
 * With 'is_gres' each is "gpu[:TYPE][:N]", perhaps with "gres/" before and "(S:0-1)" behind it,
 * or "none", or none of something else.
 */
int slurm_gpus_parse(const char *text, bool is_gres, int64_t *ret, bool *ret_typed) AQ_UNTRUSTED;

#endif
