/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - create a session from a script; shared by "submit" and Slurm's sbatch
 *
 * The order is submit_prepare(), submit_write_command(), submit_create().
 */
#ifndef AQ_CLI_SUBMIT_SUBMIT_H
#define AQ_CLI_SUBMIT_SUBMIT_H

#include "cli/session/session_spec.h"
#include "cli/submit/batch_script.h"
#include "cli/submit/job_place.h"
#include "cli/submit/slurm_options.h"

#define SUBMIT_GPUS_MAX 64

struct submit_opts {
    struct spec_opts spec;
    struct cli_int count;
    bool wait, parsable;
    const char *output, *error; /* patterns of files */
};

extern const struct cli_opt submit_opts[];

/* A script that becomes a session. */
struct submit {
    struct cli *cli;
    const char *path;   /* as given by the user */
    const char *name;   /* file name of the script, also in the session */
    bool has_file;      /* false = read from standard input */
    struct strbuf text; /* the script */
    struct batch_script script;
    struct slurm_options slurm;
    char gpus[SUBMIT_GPUS_MAX];           /* "cuda.device=2" of the #SBATCH lines, or "" */
    struct submit_opts lines[2], *merged; /* of #SBATCH and #ALIQUOT; the command line's */
    struct strbuf command;
    char *project; /* of the session, if no option names one; NULL = unknown */

    /* only for sbatch, which sets slurm.is_sbatch */
    const char *wrap;              /* the command that is the script; NULL = none */
    struct batch_line words;       /* options of the command line */
    const struct job_place *place; /* set before submit_write_command() */
};

/* Read the script argv[0] (none, or "-": standard input) and put what its options and those of the
 * command line ask for into s->merged.
 */
int submit_prepare(struct submit *s, int argc, char **argv, struct aq_error *err);

/* Make the session's command; argv are the script and its arguments. */
int submit_write_command(struct submit *s, int argc, char **argv, struct aq_error *err);

/* Queue the session: *ret is the list of created sessions. Errors name the responsible option. */
int submit_create(struct submit *s, json_t **ret, struct aq_error *err);

/* Show the notes on options that have no meaning here. */
void submit_note(const struct submit *s);

/* Free the contents, not the struct. */
void submit_done(struct submit *s);

/* Write a request for whole GPUs, "cuda.device=2" or "cuda.shares=2", depending on the cluster. */
int submit_name_gpus(struct cli *cli, int64_t count, char ret[SUBMIT_GPUS_MAX],
                     struct aq_error *err);

/* ---- submit_merge.c ---- */

/* Copy options that only 'weak' sets to 'strong'. */
void submit_merge(struct submit *s, struct submit_opts *strong, const struct submit_opts *weak);

/* True if the amounts contain a slot of the kind kind[0 .. len), such as "cuda". */
bool submit_names_kind(const struct cli_list *list, const char *kind, size_t len);

/* "cuda" of "cuda.shares=0.5": the slots of one kind of device stand for each other. */
size_t submit_kind_len(const char *resource);

#endif
