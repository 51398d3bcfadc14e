/* SPDX-License-Identifier: Apache-2.0 */
/* setting.h - small durable facts about the cluster, by key */
#ifndef AQ_STORE_SETTING_H
#define AQ_STORE_SETTING_H

#include "store/config_entries.h"
#include "store/store.h"

/* Small durable facts about the cluster, e.g. "cluster.id". The value is
 * appended to 'out'; -ENOENT without an error text if there is none.
 */
int setting_get(struct store_tx *tx, const char *key, struct strbuf *out, struct aq_error *err);
int setting_set(struct store_tx *tx, const char *key, const char *value, struct aq_error *err);
int setting_remove(struct store_tx *tx, const char *key, struct aq_error *err);

/* Append all whose key begins with 'prefix', which ends with '/', sorted; the keys without it. */
int setting_list(struct store_tx *tx, const char *prefix, struct config_entries *ret,
                 struct aq_error *err);

/* Microseconds since 1970: when the backup was made from which the database was
 * restored; "0" once an administrator has finished that.
 */
#define SETTING_RESTORED "manager.restored"

/* The epochs of this database's own past, see store/lineage.h. */
#define SETTING_LINEAGE "manager.epochs"

#endif
