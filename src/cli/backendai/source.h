/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - what a fixture or a database of Backend.AI has for us
 *
 * Rows come with the columns that Backend.AI gave them, as PostgreSQL's texts or as JSON. Those
 * that the manager can take are kept as it wants them; of others is said that they are left.
 */
#ifndef AQ_CLI_BACKENDAI_SOURCE_H
#define AQ_CLI_BACKENDAI_SOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/backendai/source_tables.h"

#define SOURCE_BYTES_MAX (15u << 20) /* of what is kept; the manager takes a little more */

struct source {
    json_t *tables; /* {"users": [{"line": N, ...}]}: for the manager */
    json_t *left;   /* {"kernels": {"rows": N, "why": "..."}} */
    json_t *kept;   /* {"images": [...], "vfolders": [...]}: what only we look at */
    bool is_rows;   /* count rows of a table, as nobody sees lines of a file */
    size_t bytes;   /* kept so far */

    /* of the rows that come */
    char table_name[65];
    const struct source_table *table; /* NULL = not known */
    json_t *rows;                     /* of it; borrowed; NULL = nobody wants them */
    struct source_column wanted[SOURCE_COLUMNS_MAX];
    const struct source_column *columns[SOURCE_COLUMNS_MAX]; /* of these; NULL = not wanted */
    size_t column_count, row_count;
};

void source_init(struct source *source);
void source_done(struct source *source);

/* A plain SQL dump; "-" is standard input. -EINVAL, with the line in the text. */
int source_read_dump(struct source *source, const char *path, struct aq_error *err);

/* A database on a server: starts aliquot-manager, which reads it. */
int source_read_server(struct source *source, const char *uri, struct aq_error *err);

/* A fixture: {"TABLE": [ROW, ...]}. */
int source_read_fixture(struct source *source, const char *path, struct aq_error *err);

/* ---- rows ---- */

/* Rows of this table follow: 1 if they are wanted, 0 or -EINVAL. */
int source_begin_table(struct source *source, const char *table, struct aq_error *err);
/* Its columns: -EINVAL if one is missing that must be there. */
int source_set_columns(struct source *source, const char *const *columns, size_t count, size_t line,
                       struct aq_error *err);
/* A value for each column that was set; not taken. */
int source_add_row(struct source *source, const json_t *const *values, size_t count, size_t line,
                   struct aq_error *err);
/* A row that nobody wants. */
int source_skip_row(struct source *source);

/* All rows have come. With 'is_database' all tables must have been there that a database of
 * Backend.AI has. Aliases of images get the names of these.
 */
int source_finish(struct source *source, bool is_database, struct aq_error *err);

/* The dump's bytes as they come, for tests. */
struct sql_dump_ops;
extern const struct sql_dump_ops source_dump_ops; /* data: struct source */

#endif
