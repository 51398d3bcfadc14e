/* SPDX-License-Identifier: Apache-2.0 */
/* shell_word.h - the words of a command, as a shell would part them
 *
 * For where there is no shell: quotes and backslashes count, and whatever else a shell would do
 * something about is refused rather than taken literally.
 */
#ifndef AQ_BASE_SHELL_WORD_H
#define AQ_BASE_SHELL_WORD_H

#include "base/strbuf.h"

/* Append the word at 'at' to 'out'. Where the next one begins ("" = it was the last); NULL = it
 * takes a shell.
 */
const char *shell_word_take(const char *at, struct strbuf *out) AQ_UNTRUSTED;

#endif
