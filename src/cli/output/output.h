/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - lists and records in the format that was asked for
 *
 * Rows are JSON objects; a table of columns says which members to show, under
 * which name and how. Machine formats (json, jsonl, yaml, csv) carry the
 * members unchanged under their keys, which stay the same forever; table and
 * wide are for users: relative times, sizes with units, colours.
 */
#ifndef AQ_CLI_OUTPUT_OUTPUT_H
#define AQ_CLI_OUTPUT_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strbuf.h"

enum output_format {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_CSV,
    OUTPUT_NAME,
    OUTPUT_JSONL,
};
#define OUTPUT_FORMATS "table|wide|json|yaml|csv|name|jsonl"

enum column_kind {
    COLUMN_TEXT,
    COLUMN_NUMBER, /* right-aligned */
    COLUMN_BYTES,  /* "2 GiB" */
    COLUMN_TIME,   /* ISO 8601 text -> "3 min" */
    COLUMN_SPAN,   /* seconds -> "1h30m" */
    COLUMN_CLOCK,  /* the same -> "2026-11-21 02:02:03", local time */
    COLUMN_SLOTS,  /* {"cpu":"1","mem":"1073741824"} -> "cpu=1 mem=1 GiB" */
    COLUMN_STATUS, /* coloured by its word */
    COLUMN_BOOL,   /* "yes", "no" */
    COLUMN_NAMES,  /* an array of objects with "name", of text or of integers -> "a, b" */
    COLUMN_REASON, /* why a session is in its state, in words */
    COLUMN_LOAD,   /* {"part":0.25,"text":"0.5/2"} -> "[##......] 0.5/2", coloured by the part */
};

enum {
    COLUMN_IS_NAME = 1u << 0,    /* what -o name prints */
    COLUMN_IS_WIDE = 1u << 1,    /* left out of the narrow table */
    COLUMN_MAY_SHRINK = 1u << 2, /* takes several lines when the terminal is too narrow */
    COLUMN_IS_EXTRA = 1u << 3,   /* only in records and where --columns names it */
    COLUMN_IS_NESTED = 1u << 4,  /* of the former, not in records for users */
    COLUMN_IS_LONG = 1u << 5,    /* of any length: makes the manager's pages short */
};

/* Fractions have the digits with which they came, of which there are 15 at most. */
#define OUTPUT_JSON_FLAGS (JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

#define OUTPUT_COLUMNS_MAX 64 /* of a table */

/* Separate from struct field (model/field.h), because most columns show answers that no struct of
 * ours describes. Columns of members of entities are made from their fields (account_tables.h).
 */
struct column {
    const char *key;   /* member of the row */
    const char *title; /* "STATUS"; ends a table of columns when NULL */
    enum column_kind kind;
    unsigned flags;
};
#define COLUMN_END    \
    {                 \
        .title = NULL \
    }

struct output {
    enum output_format format;
    const char *columns; /* "name,status" or NULL */
    const char *sort;    /* "status,-age" or NULL */
    bool no_header;
    bool colour;
    bool ascii;       /* no characters beyond ASCII */
    int width;        /* columns of the terminal; 0 = no limit */
    bool is_screen;   /* each row takes one line: what may shrink is cut */
    int64_t now_usec; /* what relative times are relative to */
};

/* Write a whole answer as indented JSON. */
void output_json(const json_t *value, struct strbuf *out);

/* The same as YAML where that is wanted. */
void output_document(const struct output *o, const json_t *value, struct strbuf *out);

/* Write rows (an array of objects) to 'out'. An unknown name in --columns or
 * --sort is an error of kind usage that lists the known ones.
 */
int output_list(const struct output *o, const struct column *columns, const json_t *rows,
                struct strbuf *out, struct aq_error *err);

/* For rows that are shown in the order in which they come, if they are for users: a
 * table (table.h) to add them to.
 */
static inline bool output_is_stream(const struct output *o)
{
    return (o->format == OUTPUT_TABLE || o->format == OUTPUT_WIDE) && !o->sort;
}
struct table;
int output_begin_table(const struct output *o, const struct column *columns, struct table **ret,
                       struct aq_error *err);

/* The columns that output_list() shows or sorts by, as bits of their places in
 * the table. The same errors.
 */
int output_list_needs(const struct output *o, const struct column *columns, uint64_t *ret,
                      struct aq_error *err);

/* One object: one line per member for users. */
int output_record(const struct output *o, const struct column *columns, const json_t *row,
                  struct strbuf *out, struct aq_error *err);

/* The column called name[0 .. len): its key or its title, e.g. "created_at" or
 * "age"; NULL if there is none.
 */
const struct column *output_find_column(const struct column *columns, const char *name, size_t len);

/* Is a time meant by its age, which grows as the time goes back? */
bool output_is_age(const struct column *column, const char *name, size_t len);

/* Fill 'err' (kind usage) for a name in 'option' that no column has. */
int output_fail_unknown_column(const struct column *columns, const char *option, const char *name,
                               size_t len, struct aq_error *err);

/* A member that is text; "" if it is none. */
static inline const char *output_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Is the format for users? */
static inline bool output_is_human(const struct output *o)
{
    return o->format == OUTPUT_TABLE || o->format == OUTPUT_WIDE;
}

/* ---- the single formats, one file each ---- */

/* Block style; strings that another type would be read from are quoted. */
void yaml_write(const json_t *value, struct strbuf *out);

/* The value of a column as users read it; "-" for null. No control characters. */
void cell_write(const struct output *o, const struct column *column, const json_t *value,
                struct strbuf *out);

/* "1d2h", "1h30m", "90" s as "1m30s": the whole of a span of time, as options take it. */
void cell_write_duration(int64_t sec, struct strbuf *out);

/* "8 s", "3 min", "5 h", "12 d" for a span of time. */
void cell_write_span(int64_t usec, struct strbuf *out);

#endif
