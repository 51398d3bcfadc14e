/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - usage and help, made from the table of commands */
#ifndef AQ_CLI_HELP_H
#define AQ_CLI_HELP_H

#include "base/strbuf.h"
#include "cli/cli.h"

/* How many words of 'name' stand at the front of argv; *ret_all says whether
 * these are all that it has.
 */
int verb_match_words(const char *name, int argc, char *const argv[], bool *ret_all);

/* The command whose words are the first of argv, in our spelling or in another
 * that works; *ret_words says how many they are. NULL if there is none.
 */
const struct cli_verb *verb_find(int argc, char *const argv[], int *ret_words);

/* How many words at the front of argv begin a longer command: 2 for
 * "admin user", 0 for an unknown one.
 */
int verb_noun_words(int argc, char *const argv[]);

/* What follows argv[0 .. words) in the words of the command, if these begin
 * it; else NULL.
 */
const char *verb_next_word(const struct cli_verb *verb, int words, char *const argv[],
                           size_t *ret_len);

/* Fill 'err' for words that name no command: with ours, if they are another
 * program's, or with the nearest.
 */
int verb_fail_unknown(int argc, char *const argv[], struct aq_error *err);

/* The groups of commands, in about twenty lines; all commands. */
void help_groups(struct strbuf *out);
void help_overview(struct strbuf *out);
void help_noun(int words, char *const argv[], struct strbuf *out);
void help_verb(const struct cli_verb *verb, struct strbuf *out);

extern const char *const help_topics[]; /* "exit-codes", "environment"...; ends with NULL */

#endif
