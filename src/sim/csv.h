/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - lines of plain comma-separated values with a line of names before them */
#ifndef AQ_SIM_CSV_H
#define AQ_SIM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define CSV_COLUMNS_MAX 64

struct csv_value {
    const char *text; /* not terminated */
    size_t len;
};

struct csv {
    const char *at, *end;
    size_t line;    /* of the values, from 1 */
    size_t columns; /* in the line of names */
    struct csv_value names[CSV_COLUMNS_MAX], values[CSV_COLUMNS_MAX];
};

/* Reads the line of names. 'text' must outlive the reader. */
int csv_begin(struct csv *csv, const char *text, size_t len, struct aq_error *err) AQ_UNTRUSTED;
/* 1 = a line is there, 0 = the end, -EINVAL. Empty lines are passed over. */
int csv_next(struct csv *csv, struct aq_error *err) AQ_UNTRUSTED;
/* The place of a column; -1 if it is not there. */
int csv_find(const struct csv *csv, const char *name);

/* The value of a column as a whole number in [min, max]; an empty one is
 * 'missing' unless that is INT64_MIN. A fraction is cut off. -EINVAL.
 */
int csv_number(const struct csv *csv, int column, int64_t min, int64_t max, int64_t missing,
               int64_t *ret, struct aq_error *err);
/* -EINVAL with the line and the column before the text. */
int csv_fail(const struct csv *csv, int column, struct aq_error *err, const char *text);

/* How many lines there are at most. */
size_t csv_count_lines(const char *text, size_t len);

#endif
