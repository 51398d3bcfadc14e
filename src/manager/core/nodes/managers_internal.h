/* SPDX-License-Identifier: Apache-2.0 */
/* managers_internal.h - the managers of the cluster in memory */
#ifndef AQ_MANAGER_CORE_NODES_MANAGERS_INTERNAL_H
#define AQ_MANAGER_CORE_NODES_MANAGERS_INTERNAL_H

#include "manager/core/managers.h"
#include "store/manager_row.h"

/* Read all rows and save our own, before anything is queued in the store. -EACCES: this manager
 * was removed from the cluster.
 */
int managers_load(struct core *core, struct aq_error *err);
void managers_free(struct core *core);

/* The link tells all that connect which managers there are. Of a manager that has always been alone
 * it tells nothing: they reach it by the address that they joined, and may not by another one.
 */
void managers_publish(struct core *core);

/* May a manager of this name connect? -EACCES. */
int managers_check(const struct core *core, const char *name, struct aq_error *err);
/* It has connected: keep its addresses and version. */
void managers_note_hello(struct core *core, const char *name, const struct msg_hello *hello);

/* May a token for a manager be made, that lives so long? -EINVAL; -ENOTSUP as below. */
int managers_check_token(const struct core *core, int64_t ttl_usec, struct aq_error *err);

/* The row of a manager that asks to join. -EINVAL; -EEXIST for the leader's own name;
 * -ENOTSUP where this cluster can have one manager only.
 */
int managers_read_join(const struct core *core, const struct msg_join *msg, bool is_local,
                       struct manager_row *ret, struct aq_error *err);
/* Its row is durable. */
void managers_take(struct core *core, const struct manager_row *row);

/* Do all other managers stand by at this one? Then none of them leads: it parts before it takes the
 * lead.
 */
bool managers_stand_by(const struct core *core);

/* What the new manager gets besides; of any thread. link_join_keys_done(). */
int managers_export_keys(const struct core *core, bool has_database, struct link_join_keys *ret,
                         struct aq_error *err);

#endif
