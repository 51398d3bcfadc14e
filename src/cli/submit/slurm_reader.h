/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_reader.h - single options of sbatch(1), as words of "submit" or as amounts */
#ifndef AQ_CLI_SUBMIT_SLURM_READER_H
#define AQ_CLI_SUBMIT_SLURM_READER_H

#include "cli/submit/slurm_options.h"
#include "cli/submit/slurm_table.h"

/* What has been read so far. */
struct slurm_reader {
    struct slurm_options *out;
    struct slurm_amounts amounts;
    const struct slurm_option *option; /* that is being read */
    unsigned line;
    char where[24]; /* "line 12: ", or "" of the command line */
    bool is_several;
};

void slurm_set_line(struct slurm_reader *rd, unsigned line);

/* One option with its value (NULL = none). Errors name the line. */
int slurm_read_option(struct slurm_reader *rd, const struct slurm_option *option, const char *value,
                      struct aq_error *err);

/* "line N: ..." for the user. */
void slurm_note(struct slurm_reader *rd, const char *fmt, ...) AQ_PRINTF(2, 3);

/* Our option with a value. */
int slurm_add_pair(struct slurm_reader *rd, const char *option, struct aq_error *err,
                   const char *fmt, ...) AQ_PRINTF(4, 5);

#endif
