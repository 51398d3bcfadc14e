/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h - inside the store: all rows of one database into another one
 *
 * Whatever the engines: tables in the order of their references, each in the
 * order of its key, by transactions of some thousand rows. What broke off goes
 * on after the last row that arrived. Both have the same schema.
 */
#ifndef AQ_STORE_TRANSFER_H
#define AQ_STORE_TRANSFER_H

#include "base/pace.h"
#include "store/move.h"
#include "store/sql.h"

/* The tables in order; NULL after the last one. */
const char *transfer_table_name(size_t i);

/* Rows of one of them. */
int transfer_count_table(struct sql *db, const char *name, int64_t *ret, struct aq_error *err);

/* Rows of all tables. */
int transfer_count(struct sql *db, int64_t *ret, struct aq_error *err);

/* Copy what 'to' does not have yet. 'from' is in a transaction that reads, 'to'
 * in none. 'report' and 'pace' may be NULL.
 */
int transfer_copy(struct sql *from, struct sql *to, store_move_report_fn report, void *data,
                  struct pace *pace, struct aq_error *err);

/* A line for each table whose number of rows differs; returns how many, or -errno. */
int transfer_compare(struct sql *from, struct sql *to, struct pace *pace, struct strbuf *out,
                     struct aq_error *err);

#endif
