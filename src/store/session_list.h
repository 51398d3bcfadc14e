/* SPDX-License-Identifier: Apache-2.0 */
/* session_list.h - inside the store: what lists of sessions share */
#ifndef AQ_STORE_SESSION_LIST_H
#define AQ_STORE_SESSION_LIST_H

#include "store/list_query.h"

/* Sessions, whose user is compared by an expression: the index by user is not taken. */
extern const struct list_table session_list_by_other;

/* list_run() with the columns of q->detail, and what is attached to the rows. */
int session_list_run(struct store_tx *tx, const struct list_table *table,
                     const struct store_query *q, const struct list_extra *extra,
                     struct store_page **ret, struct aq_error *err);

/* Fill what 'q' wants beside the sessions' own rows: kernels, the time of the last placement. */
int session_attach(struct store_tx *tx, const struct store_query *q, struct store_page *page,
                   struct aq_error *err);

#endif
