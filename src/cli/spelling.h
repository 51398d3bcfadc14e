/* SPDX-License-Identifier: Apache-2.0 */
/* spelling.h - commands and options by the names that docker, Slurm and kubectl have for them
 *
 * Some commands work as they are typed ("stop", "inspect"); of the others
 * ("squeue", "get pods") and of options ("--gpus") the error says what to
 * type. Help and completion show ours.
 */
#ifndef AQ_CLI_SPELLING_H
#define AQ_CLI_SPELLING_H

#include "base/strbuf.h"
#include "cli/cli.h"

/* The command for another spelling at the front of argv; *ret_words says how
 * many words that is. NULL if there is none.
 */
const struct cli_verb *spelling_find(int argc, char *const argv[], int *ret_words);

/* What to type after "aliquot" instead of the words at the front of argv, the
 * longest that is known; *ret_words as above. NULL if they are unknown.
 */
const char *spelling_suggest(int argc, char *const argv[], int *ret_words);

/* What to do instead of a command that we do not have yet, such as "cp"; NULL if it is unknown. */
const char *spelling_find_missing(const char *word);

/* What to type instead of an option ("--gpus", "-c") of a command that makes sessions; NULL if it
 * is unknown.
 */
const char *spelling_find_option(const char *option);

/* All of them, for help. */
void spelling_write_all(struct strbuf *out);

#endif
