/* SPDX-License-Identifier: Apache-2.0 */
/* audit_log.h - who did or tried what
 *
 * Rows are only added, in order, and go when they are old or many (retention.h).
 * For functions given to store_write() and store_read().
 */
#ifndef AQ_STORE_AUDIT_LOG_H
#define AQ_STORE_AUDIT_LOG_H

#include "model/audit.h"
#include "store/query.h"

struct audit_row {
    int64_t seq;
    struct audit_entry entry;
};

int audit_log_add(struct store_tx *tx, const struct audit_entry *entry, struct aq_error *err);

/* The entry of a change, in its transaction. */
int audit_log_add_change(struct store_tx *tx, const struct audit_who *by,
                         const struct audit_change *change, struct aq_error *err);

/* The newest first. Narrowed by domain (of the object), name (of the user), action, object (its
 * kind, id or name), since_usec and until_usec.
 */
int store_list_audit_log(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                         struct aq_error *err);

#endif
