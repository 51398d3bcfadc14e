/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - commands of replicas: words that a shell cannot misread, and variables in texts */
#ifndef AQ_SERVING_COMMAND_H
#define AQ_SERVING_COMMAND_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/lists.h"
#include "base/strbuf.h"

/* Append 'word' so that a POSIX shell reads it as one word with no other meaning. */
void command_quote(const char *word, struct strbuf *out);

/* A shell reads the word as itself, within quotes and without. */
bool command_is_plain(const char *word);

/* Append 'text' with the values of "{name}". Python's str.format() expands these texts in
 * Backend.AI, where "{{" is a brace. So is it here if each brace of the text is either doubled or
 * part of a known variable; else, as in JSON or "${HOME}", only known variables are replaced.
 */
void command_expand(const char *text, const struct pair_list *variables,
                    struct strbuf *out) AQ_UNTRUSTED;

/* Append what /bin/sh -c runs to start 'command' by 'shell' ("" = bash or, without it, sh; NULL =
 * without a shell: quoted words) in 'folder' (NULL = where the container starts).
 */
void command_start(const char *command, const char *shell, const char *folder, struct strbuf *out);

/* Set a variable unless the list has it. The list and texts are of 'arena'. */
void command_set_variable(struct pair_list *list, struct arena *arena, const char *name,
                          const char *value);

#endif
