/* SPDX-License-Identifier: Apache-2.0 */
/* sql_statement.h - inside sql_dump.h: what one statement, or one line of COPY, says */
#ifndef AQ_CLI_BACKENDAI_SQL_STATEMENT_H
#define AQ_CLI_BACKENDAI_SQL_STATEMENT_H

#include "base/map.h"
#include "cli/backendai/sql_dump.h"

#define SQL_NAME_MAX 64
#define SQL_TABLES_MAX 2000 /* Backend.AI has fewer than 100; each takes some KiB */

/* Columns of tables, as CREATE TABLE said. Zeroed = none. */
struct sql_tables {
    struct map columns; /* name -> struct sql_columns */
};
void sql_tables_done(struct sql_tables *tables);

struct sql_statement {
    char *text; /* without the semicolon; is written into */
    size_t line;

    /* of COPY ... FROM stdin */
    bool is_copy, is_wanted;
    char table[SQL_NAME_MAX + 1];
    size_t column_count;
};

/* Gives the rows of an INSERT; remembers a CREATE TABLE; says of a COPY what follows. */
int sql_statement_run(struct sql_statement *statement, struct sql_tables *tables,
                      const struct sql_dump_ops *ops, void *data, struct aq_error *err);

/* By its beginning, of which 'text' need not be the whole nor end with a NUL: 1 if somebody might
 * want it, 0 (then a row of an INSERT counts as skipped) or -errno.
 */
int sql_statement_may_matter(const char *text, size_t len, size_t line,
                             const struct sql_dump_ops *ops, void *data, struct aq_error *err);

/* A row; 'text' is written into. */
int sql_copy_line(char *text, size_t len, size_t column_count, size_t line,
                  const struct sql_dump_ops *ops, void *data, struct aq_error *err);

#endif
