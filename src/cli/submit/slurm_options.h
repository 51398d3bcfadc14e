/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_options.h - options of sbatch(1) in ours
 *
 * One table has every option of sbatch: what it becomes, or why it does not matter here
 * (a note to the user), or why a session without it would not be what was meant (an error).
 */
#ifndef AQ_CLI_SUBMIT_SLURM_OPTIONS_H
#define AQ_CLI_SUBMIT_SLURM_OPTIONS_H

#include <stdint.h>

#include "cli/opt.h"
#include "cli/submit/batch_script.h"
#include "cli/submit/slurm_table.h"

#define SLURM_ORIGIN_GPUS "-r gpu" /* stands for whichever slot GPUs are */

/* Which option of sbatch a word came from. */
struct slurm_origin {
    const char *option; /* ours: "--group", "-r cpu" */
    const char *value;  /* as it went there; NULL = none */
    const char *name;   /* of sbatch's */
    unsigned line;
};

struct slurm_options {
    /* inputs, set by the caller */
    bool is_sbatch;           /* parse for sbatch: also directory, files, --wrap and environment */
    const char *default_name; /* name of a job without --job-name; NULL = none */

    struct arena arena;    /* has the words and notes */
    struct cli_list words; /* options and values of "submit" */
    struct cli_list notes; /* sentences for the user */
    struct slurm_origin *origins;
    size_t origin_count, origin_cap;
    struct slurm_amounts amounts; /* as they were given */
    int64_t gpus;                 /* of each kernel; which slot that is, the cluster says */
    int64_t cpus, mem;            /* the same, 0 = not asked for */
    const char *job_name;         /* as it was given, NULL = none */
    unsigned name_line;           /* where it was given */
    bool is_found;                /* there was a #SBATCH line */
    bool exports_some;            /* --export without ALL */
    struct slurm_place place;
};

/* What the #SBATCH lines of the script say. With 'is_several' a --count is given, which stands
 * for --array. Errors name the line, unless it is 0: the command line.
 * 'ret' must be zeroed except for the input members, and released in any case.
 */
int slurm_options_translate(const struct batch_script *script, bool is_several,
                            struct slurm_options *ret, struct aq_error *err) AQ_UNTRUSTED;
/* Parse the option at argv[0] with its value into 'ret'. *ret_count is the number of words. */
int slurm_option_words(int argc, char **argv, struct slurm_options *ret, int *ret_count,
                       struct aq_error *err);

/* Parse all options before the script. */
int slurm_options_count(int argc, char **argv, struct slurm_options *ret, int *ret_count,
                        struct aq_error *err);
/* The origin of what our 'option' is refused for with that text; NULL = no #SBATCH line. */
const struct slurm_origin *slurm_options_blame(const struct slurm_options *options,
                                               const char *option, const char *text);
void slurm_options_done(struct slurm_options *options);

#endif
