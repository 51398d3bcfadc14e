/* SPDX-License-Identifier: Apache-2.0 */
/* config_audit.h - changes of the configuration tree in the audit log
 *
 * A change is one entry, written in its transaction: either both are kept or none. For a
 * function given to store_write().
 */
#ifndef AQ_MANAGER_CLUSTER_CONFIG_AUDIT_H
#define AQ_MANAGER_CLUSTER_CONFIG_AUDIT_H

#include "base/strbuf.h"
#include "manager/call/api.h"
#include "store/store.h"

/* Zeroed = none. */
struct config_audit {
    struct audit_who by;
    struct strbuf keys; /* JSON, with commas between */
    size_t named, more;
};

void config_audit_done(struct config_audit *audit);

/* A key that changes; NULL = it had no value, or has none now. 'with_values' false, or a key
 * that may have a secret, leaves the values out.
 */
void config_audit_add(struct config_audit *audit, const char *key, const char *before,
                      const char *after, bool with_values);

/* Write the entry, if a key was added. 'key' is the one that was asked for; NULL = several. */
int config_audit_write(struct store_tx *tx, const struct config_audit *audit, const char *action,
                       const char *key, struct aq_error *err);

#endif
