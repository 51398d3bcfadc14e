/* SPDX-License-Identifier: Apache-2.0 */
/* session_live.h - lists of sessions that live, found in memory: newest change first
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_SESSION_SESSION_LIVE_H
#define AQ_MANAGER_SESSION_SESSION_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

struct arena;
struct core;
struct store_query;

struct session_live {
    int64_t changed_usec, row;
    struct uuid id; /* the session may be gone when it is looked at later */
};

/* Does memory know which sessions the query means, and are they few enough for one turn? Not
 * of ended sessions, filters and other orders.
 */
bool session_live_is_known(const struct core *core, const struct store_query *q);

/* The items of the query's page, limit 0 = all, as store_list_sessions() has them; 'ret_total':
 * without limit and offset. 'ret' is the arena's.
 */
void session_live_list(const struct core *core, const struct store_query *q, struct arena *arena,
                       struct session_live **ret, size_t *ret_count, int64_t *ret_total);

#endif
