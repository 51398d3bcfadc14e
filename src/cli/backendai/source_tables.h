/* SPDX-License-Identifier: Apache-2.0 */
/* source_tables.h - the tables of Backend.AI 22.03, and which of their columns we look at */
#ifndef AQ_CLI_BACKENDAI_SOURCE_TABLES_H
#define AQ_CLI_BACKENDAI_SOURCE_TABLES_H

#include <stddef.h>

#include "model/entity.h"

#define SOURCE_COLUMNS_MAX 200 /* of a table */

enum source_kind {
    SOURCE_TEXT,
    SOURCE_BOOL,
    SOURCE_NUMBER,
    SOURCE_WORD, /* "BEFORE_VERIFICATION" or "before-verification" */
    SOURCE_JSON, /* an object */
    SOURCE_DOTFILES,
};

enum { SOURCE_MUST = 1u << 0 /* every version has it */ };

/* What it has that a struct field (model/field.h) has not: a form in a dump, and whether every
 * version has it. Those of entities' members are made from their rows.
 */
struct source_column {
    char name[FIELD_NAME_MAX]; /* ends with "" */
    enum source_kind kind;
    unsigned flags;
};

enum source_use {
    SOURCE_TAKEN,  /* the manager gets its rows */
    SOURCE_KEPT,   /* we look at them */
    SOURCE_COUNTED /* only how many */
};

struct source_table {
    const char *name;
    enum source_use use;
    const struct source_column *columns; /* NULL of those that are counted */
    const char *why;                     /* it is left; NULL = it is taken */
    unsigned flags;
    const struct entity *entity; /* its other members are columns, too; NULL = none */
};

extern const struct source_table source_tables[]; /* ends with name NULL */

/* The columns that we look at, and an end. */
void source_table_columns(const struct source_table *table,
                          struct source_column ret[SOURCE_COLUMNS_MAX]);

/* NULL if it is not known. */
const struct source_table *source_table_find(const char *name);

#endif
