/* SPDX-License-Identifier: Apache-2.0 */
/* lease_keeper.h - renews the lease while the schema is migrated
 *
 * Inside the store. A migration of a large database takes longer than standbys
 * wait for a beat, and does not pass through the writer, which beats with each
 * commit. A thread with a connection of its own beats until the writer starts.
 */
#ifndef AQ_STORE_LEASE_KEEPER_H
#define AQ_STORE_LEASE_KEEPER_H

#include <stdint.h>

#include "store/sql.h"

struct lease_keeper;

/* Renew the lease of the database 'where', in the epoch that 'incarnation' has taken. */
int lease_keeper_start(const struct sql_ops *engine, const char *where, const char *incarnation,
                       int64_t epoch, struct lease_keeper **ret, struct aq_error *err);

/* Stop the thread and free the keeper. -EOWNERDEAD: another manager has taken the database over;
 * -EHOSTDOWN: the connection was lost. NULL is allowed.
 */
int lease_keeper_stop(struct lease_keeper *keeper, struct aq_error *err);

#endif
