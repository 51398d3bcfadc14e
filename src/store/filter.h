/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h - the filter and order mini language of list queries, as SQL and for rows in memory
 *
 *     expr  := !expr | field OP value | expr & expr | expr | expr | (expr)
 *     OP    := == != > >= < <= contains in is isnot like ilike
 *     value := "text" | number | null | true | false | [value, ...]
 *     order := [+|-]field, ...
 *
 * '&' and '|' bind equally and to the left, '!' to what follows it. Only listed fields are known;
 * values are always bound, never pasted. Source: Backend.AI client protocol.
 */
#ifndef AQ_STORE_FILTER_H
#define AQ_STORE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#define FILTER_TEXT_MAX 4096
#define FILTER_DEPTH_MAX 32
#define FILTER_VALUES_MAX 200
#define FILTER_WILDCARDS_MAX 16 /* '%' in one pattern */
#define FILTER_FIELDS_MAX 64    /* of a table */
#define ORDER_FIELDS_MAX 8

enum filter_type {
    FILTER_STRING,
    FILTER_UPPER, /* text stored in upper case: any case in values */
    FILTER_LOWER,
    FILTER_INT,
    FILTER_BOOL, /* 0 or 1 */
    FILTER_TIME, /* microseconds; values are dates */
    FILTER_UUID  /* text, dashed lower case; values may be undashed */
};

/* Unlike a struct field it has an SQL expression, perhaps of other rows. Filters by members of
 * entities are made from their fields (store/entity.h).
 */
struct filter_field {
    const char *name;   /* as clients write it */
    const char *column; /* SQL expression */
    enum filter_type type;
    const char *within; /* "FROM ... WHERE ...": rows that belong to the listed one, any of which
                           may match; NULL = itself. Not for orders and rows in memory. */
    bool is_joined;     /* of a table beside the one that is listed */
    bool is_never_null; /* so an order by it can be an index's on either engine */
    size_t offset;      /* of rows in memory, in place of the column: a const char *, never NULL, or
                           of numbers an int64_t */
};

struct filter_value {
    const char *text; /* NULL = the number */
    int64_t number;
};

struct filter_values {
    struct filter_value items[FILTER_VALUES_MAX];
    size_t count;
    uint64_t fields; /* that the condition asks for: bit i of fields[i] */
};

/* Append a condition in parentheses to 'sql', its values in order to 'values'
 * (texts from 'arena'). -EINVAL, field "filter", "Query filter parsing error: ...".
 */
int filter_compile(const char *text, const struct filter_field *fields, size_t field_count,
                   struct arena *arena, struct strbuf *sql, struct filter_values *values,
                   struct aq_error *err) AQ_UNTRUSTED;

struct order {
    struct {
        const struct filter_field *field;
        bool is_descending;
    } items[ORDER_FIELDS_MAX];
    size_t count;
};

/* -EINVAL, field "order". At least one field. */
int order_read(const char *text, const struct filter_field *fields, size_t field_count,
               struct order *ret, struct aq_error *err) AQ_UNTRUSTED;

/* Append "a DESC, b ASC" to 'sql'. */
void order_write(const struct order *order, struct strbuf *sql);

/* ---- rows in memory ---- */

struct filter_program;

/* As filter_compile(), to be asked of rows; in 'arena'. */
int filter_read(const char *text, const struct filter_field *fields, size_t field_count,
                struct arena *arena, const struct filter_program **ret,
                struct aq_error *err) AQ_UNTRUSTED;
bool filter_match(const struct filter_program *program, const void *row);

/* < 0: a comes before b; 0: it does not say. */
int order_compare(const struct order *order, const void *a, const void *b);

#endif
