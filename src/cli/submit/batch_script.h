/* SPDX-License-Identifier: Apache-2.0 */
/* batch_script.h - a script for "submit": its interpreter and the options in its first comments
 *
 * As sbatch(1) reads them: lines that begin with "#SBATCH" or "#ALIQUOT" (a blank need not be
 * before an option), up to the first line that is neither empty nor a comment. Words are
 * separated by blanks and may be quoted with ' and "; a backslash takes the next character as it
 * is; a word that begins with # begins a comment.
 */
#ifndef AQ_CLI_SUBMIT_BATCH_SCRIPT_H
#define AQ_CLI_SUBMIT_BATCH_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define BATCH_SCRIPT_MAX (64u << 10) /* bytes of a script */
#define BATCH_WORDS_MAX 64           /* of one line */

/* One line of options. */
struct batch_line {
    unsigned number; /* from 1 */
    bool is_slurm;   /* #SBATCH, not #ALIQUOT */
    int argc;
    char **argv; /* cli_opts_parse() may sort them */
};

struct batch_script {
    struct arena arena;      /* has all that follows */
    const char *interpreter; /* of the line "#!" */
    const char *argument;    /* its only one, as Linux has it; NULL = none */
    struct batch_line *lines;
    size_t count;
    unsigned late_line; /* a line of options after the first command, which is not read; 0 = none */
    unsigned other_line; /* a line of options for another system; 0 = none */
    const char *command; /* the first of Slurm's that is no program of a session; NULL = none */
    unsigned command_line;
};

/* Errors name the line. 'ret' is to be released in any case, and zeroed before. */
int batch_script_parse(const char *text, size_t len, struct batch_script *ret,
                       struct aq_error *err) AQ_UNTRUSTED;
void batch_script_done(struct batch_script *script);

#endif
