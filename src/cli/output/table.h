/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows as a table */
#ifndef AQ_CLI_OUTPUT_TABLE_H
#define AQ_CLI_OUTPUT_TABLE_H

#include "base/json_scan.h"
#include "cli/output/output.h"

/* A header line unless o->no_header, then a line for each row of the array.
 * Columns are as wide as their contents; if the terminal is too narrow, those that may shrink,
 * amounts and lists of names take several lines, broken at words, the widest first. Where the
 * words do not fit beside each other either, each row is written as a record, with a blank line
 * between. -o wide has no limit of width.
 */
void table_write(const struct output *o, const struct column *const *columns, size_t count,
                 const json_t *rows, struct strbuf *out);

/* The same of rows that come one after the other. 'o' is borrowed. */
struct table *table_new(const struct output *o, const struct column *const *columns, size_t count);
void table_free(struct table *t);
AQ_DEFINE_CLEANUP(struct table, table_free)

/* A row as the text of an object. False if it is none. */
bool table_add_text(struct table *t, struct json_span row);

/* Write them all. */
void table_end(struct table *t, struct strbuf *out);

/* One line "TITLE  value" for each column; empty members only where --columns names them. */
void table_write_record(const struct output *o, const struct column *const *columns, size_t count,
                        const json_t *row, struct strbuf *out);

/* The escape sequence that starts the colour of a status word, or NULL. */
const char *table_status_colour(const char *status);
#define TABLE_COLOUR_END "\033[0m"

#endif
