/* SPDX-License-Identifier: Apache-2.0 */
/* row_order.h - rows in the order of --sort */
#ifndef AQ_CLI_OUTPUT_ROW_ORDER_H
#define AQ_CLI_OUTPUT_ROW_ORDER_H

#include "cli/output/output.h"

/* A new array (the caller's) of the same rows, sorted by o->sort; equal rows
 * keep their order. Numbers and times sort as such, everything else as it is
 * shown, with numbers within text by their value. An unknown column is an error
 * of kind usage.
 */
int row_order_sort(const struct output *o, const struct column *columns, const json_t *rows,
                   json_t **ret, struct aq_error *err);

/* Add the columns of o->sort to *ret, as bits of their places in the table. The
 * same error.
 */
int row_order_needs(const struct output *o, const struct column *columns, uint64_t *ret,
                    struct aq_error *err);

#endif
