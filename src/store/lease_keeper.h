/* SPDX-License-Identifier: Apache-2.0 */
/* lease_keeper.h - beats while the schema is changed
 *
 * Inside the store. A migration of a large database takes longer than standbys
 * wait for a beat, and none of its statements is a commit of the writer's. A
 * thread with a connection of its own beats instead, until the writer begins.
 */
#ifndef AQ_STORE_LEASE_KEEPER_H
#define AQ_STORE_LEASE_KEEPER_H

#include <stdint.h>

#include "store/sql.h"

struct lease_keeper;

/* Of the database 'where', in the epoch that was taken by 'incarnation'. */
int lease_keeper_start(const struct sql_ops *engine, const char *where, const char *incarnation,
                       int64_t epoch, struct lease_keeper **ret, struct aq_error *err);

/* Ends the thread, and frees it. -EOWNERDEAD: another manager took the database over; -EHOSTDOWN: a
 * beat was lost with its connection. NULL is fine.
 */
int lease_keeper_stop(struct lease_keeper *keeper, struct aq_error *err);

#endif
