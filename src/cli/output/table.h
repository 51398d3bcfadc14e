/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows as a table */
#ifndef AQ_CLI_OUTPUT_TABLE_H
#define AQ_CLI_OUTPUT_TABLE_H

#include "cli/output/output.h"

/* A header line unless o->no_header, then a line for each row of the array.
 * Columns are as wide as their contents; if the terminal is too narrow, those
 * that may shrink are cut, widest first.
 */
void table_write(const struct output *o, const struct column *const *columns, size_t count,
                 const json_t *rows, struct strbuf *out);

/* One line "TITLE  value" for each column. */
void table_write_record(const struct output *o, const struct column *const *columns, size_t count,
                        const json_t *row, struct strbuf *out);

/* The escape sequence that starts the colour of a status word, or NULL. */
const char *table_status_colour(const char *status);
#define TABLE_COLOUR_END "\033[0m"

#endif
