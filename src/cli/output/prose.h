/* SPDX-License-Identifier: Apache-2.0 */
/* prose.h - sentences for users, in lines of the terminal's width */
#ifndef AQ_CLI_OUTPUT_PROSE_H
#define AQ_CLI_OUTPUT_PROSE_H

#include <stdint.h>

#include "base/strbuf.h"

/* Append 'text' in lines of at most 'width' columns (0 = no limit), broken at blanks only: a
 * longer word is left whole. What continues a line stands below its first word, behind the "- "
 * of a list. Without a newline at the end.
 */
void prose_wrap(const char *text, int width, struct strbuf *out);

/* The same behind 'margin' columns that are already written: what continues a line stands below
 * the first word of 'text', which has no newlines.
 */
void prose_wrap_behind(const char *text, size_t margin, int width, struct strbuf *out);

/* Bytes of 'text', len > 0, for a line of 'width' columns: up to a blank or the end, at least one
 * word. *ret_next gets where the next line begins, len = nowhere.
 */
size_t prose_fit(const char *text, size_t len, size_t width, size_t *ret_next);

/* Columns of the longest word. */
size_t prose_longest_word(const char *text, size_t len);

/* Append 'text', its dates in UTC ("2026-11-29T03:51:00Z") as local time and how far off they
 * are: "2026-11-29 04:51:00 (in 9 min)".
 */
void prose_localize(const char *text, int64_t now_usec, struct strbuf *out);

/* Columns of the terminal 'fd'; 0 = it is no terminal. */
int prose_terminal_width(int fd);

#endif
