/* SPDX-License-Identifier: Apache-2.0 */
/* sql_dump.h - the rows of a plain SQL dump of PostgreSQL, as they come
 *
 * Of what pg_dump writes these are understood: CREATE TABLE (the order of columns), COPY ...
 * FROM stdin and INSERT INTO ... VALUES with any number of rows; all else is passed over. Of
 * tables that nobody wants nothing is kept. Bytes may be given in pieces of any size. Every
 * error says the line.
 */
#ifndef AQ_CLI_BACKENDAI_SQL_DUMP_H
#define AQ_CLI_BACKENDAI_SQL_DUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SQL_DUMP_ROW_MAX (4u << 20) /* bytes of a row or statement that is wanted */
#define SQL_DUMP_COLUMNS_MAX 200

struct sql_dump;

struct sql_dump_ops {
    /* Rows of a table follow: are they wanted? 1, 0 or -errno. Schema "public" is left out of
     * its name. 'count' is 0 if its columns are not known; 'columns' is NULL while it is only
     * asked what to keep.
     */
    int (*begin)(void *data, const char *table, const char *const *columns, size_t count,
                 size_t line, struct aq_error *err);
    /* A row of a table that is wanted; NULL = null. Texts as PostgreSQL writes them. */
    int (*row)(void *data, const char *const *values, size_t count, size_t line,
               struct aq_error *err);
    /* A row of one that is not, or a long INSERT of such rows. */
    void (*skipped)(void *data);
};

struct sql_dump *sql_dump_new(const struct sql_dump_ops *ops, void *data);
void sql_dump_free(struct sql_dump *dump);
AQ_DEFINE_CLEANUP(struct sql_dump, sql_dump_free)

/* -EINVAL if the input is not such a dump, or the error of an operation of 'ops'. */
int sql_dump_feed(struct sql_dump *dump, const char *bytes, size_t len,
                  struct aq_error *err) AQ_UNTRUSTED;
/* All was fed: -EINVAL if it was cut short. */
int sql_dump_end(struct sql_dump *dump, struct aq_error *err);

#endif
