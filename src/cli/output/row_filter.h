/* SPDX-License-Identifier: Apache-2.0 */
/* row_filter.h - rows that match "status=running", by any column that is shown
 *
 *     COLUMN OP VALUE without blanks; COLUMN is a key or title, or one of its
 *     slots: "resources.cpu"
 *     OP      =   equal, upper or lower case; '*' for any text, ',' for "or"
 *             !=  not equal
 *             ~   contains
 *             > >= < <=   numbers, sizes ("1g"), times: a date, or the age ("2h")
 *
 * Several conditions must all hold; those with "=" on one column, one of them.
 */
#ifndef AQ_CLI_OUTPUT_ROW_FILTER_H
#define AQ_CLI_OUTPUT_ROW_FILTER_H

#include "cli/output/output.h"

/* Has the text this form? Else it is for the manager. */
bool row_filter_is_ours(const char *text);

/* If it says "'key' = VALUE": VALUE, else NULL. */
const char *row_filter_wanted(const struct column *columns, const char *text, const char *key);

/* The column of which it says something; NULL if it is not ours or is wrong. */
const struct column *row_filter_column(const struct column *columns, const char *text);

/* Remove the rows that do not match. What is not ours among 'texts' is passed
 * over. An unknown column or a bad value is an error of kind usage.
 */
int row_filter_apply(const struct output *o, const struct column *columns, const char *const *texts,
                     size_t count, json_t *rows, struct aq_error *err);

#endif
