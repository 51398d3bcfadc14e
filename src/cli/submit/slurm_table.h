/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_table.h - every option of sbatch(1), and what becomes of it */
#ifndef AQ_CLI_SUBMIT_SLURM_TABLE_H
#define AQ_CLI_SUBMIT_SLURM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Amounts, from which the resources of one kernel are computed; 0 = not given. */
struct slurm_amounts {
    int64_t nodes, tasks, tasks_per_node, cpus_per_task, cpus_per_gpu, min_cpus;
    int64_t mem_bytes, mem_per_cpu_bytes, mem_per_gpu_bytes;
    int64_t gpus, gpus_per_node, gpus_per_task, gres_gpus;
};

/* sbatch's options for working directory and files; NULL = not given. */
struct slurm_place {
    const char *output, *error, *input, *open_mode, *directory, *wrap;
};

enum slurm_meaning {
    SLURM_SAME,       /* our option 'text' takes the value as it is */
    SLURM_FLAG,       /* our option 'text' */
    SLURM_NAME,       /* --name, as a session can have it */
    SLURM_COMMENT,    /* --tag, the same */
    SLURM_COUNT,      /* a number, to 'offset' of struct slurm_amounts */
    SLURM_NODES,      /* the least of a range, there */
    SLURM_SIZE,       /* memory, there */
    SLURM_GPUS,       /* GPUs, there */
    SLURM_GRES,       /* the same as gpu[:TYPE][:N] */
    SLURM_TRES,       /* cores and GPUs of a task */
    SLURM_TIME,       /* --timeout */
    SLURM_BEGIN,      /* --starts-at */
    SLURM_PARTITION,  /* --resource-group */
    SLURM_AFTER,      /* --after */
    SLURM_EXPORT,     /* --env */
    SLURM_ARRAY,      /* --count has to be given */
    SLURM_REQUEUE,    /* --retry, with --retry-on 'text' */
    SLURM_NO_REQUEUE, /* --on-node-loss 'text' */
    SLURM_PLACE,      /* a text of struct slurm_place for sbatch, else as SLURM_NOTE */
    SLURM_WRAP,       /* the same, else as SLURM_REFUSE */
    SLURM_NOTHING,    /* so it is in any case */
    SLURM_NOTE,       /* not here; 'text' says what instead */
    SLURM_REFUSE,     /* the same, and without it the session would not be what was meant */
};

enum slurm_value {
    SLURM_NONE,  /* takes no value */
    SLURM_ONE,   /* takes one */
    SLURM_MAYBE, /* takes one behind "=" */
};

struct slurm_option {
    const char *name;
    char letter; /* 0 = none */
    enum slurm_value value;
    enum slurm_meaning meaning;
    const char *text;
    size_t offset;
};

extern const struct slurm_option slurm_table[]; /* ends with .name = NULL */

/* The option name[0 .. len), which may be cut as getopt_long(3) has it. NULL = none or several,
 * whose names are added to 'several'.
 */
const struct slurm_option *slurm_find(const char *name, size_t len, struct strbuf *several);

/* NULL = none. */
const struct slurm_option *slurm_find_letter(char letter);

#endif
