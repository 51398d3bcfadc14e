/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - what Slurm's commands share */
#ifndef AQ_CLI_SLURM_SLURM_H
#define AQ_CLI_SLURM_SLURM_H

#include "cli/cli.h"

/* Who calls us as Slurm's program gets Slurm's grammar: none of our own options. */
#define SLURM_VERB_FLAGS (CLI_OWN_OPTIONS | CLI_HIDDEN)

/* How long jobs that ended are shown by squeue, Slurm's default of MinJobAge. */
#define SLURM_MIN_JOB_AGE_SEC 300

/* The version of Slurm whose commands these are like. */
#define SLURM_VERSION "24.05.0"

/* Print "slurm 24.05.0-aliquot". */
int slurm_print_version(struct aq_error *err);

/* The help of a command that reads its options by itself. */
int slurm_print_help(const struct cli_verb *verb, struct aq_error *err);

/* The next word of a list with commas; *at moves behind it. False at the end. */
bool slurm_list_take(const char **at, const char **ret, size_t *ret_len);

/* Is the text a word of the list? */
bool slurm_list_has(const char *list, const char *text);

/* The rows that every command has; 'type' has bool version and const char *clusters. */
/* clang-format off */
#define SLURM_OPT_ROWS(type)                                                                       \
    { 'V', "version", CLI_FLAG, offsetof(type, version), NULL, "print the version" },              \
    { 'M', "clusters", CLI_STR, offsetof(type, clusters), "NAME", "there is one; any name means it" }
/* clang-format on */

#endif
