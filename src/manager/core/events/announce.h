/* SPDX-License-Identifier: Apache-2.0 */
/* announce.h - what an applied event has changed becomes an event of bus.h
 *
 * Called on the loop's thread, after memory has changed, in commit order.
 * Nothing is announced while the manager loads what the store has. Nothing is
 * kept of the arguments; 'reason' may be NULL.
 */
#ifndef AQ_MANAGER_CORE_EVENTS_ANNOUNCE_H
#define AQ_MANAGER_CORE_EVENTS_ANNOUNCE_H

#include "manager/core/state/session_entry.h"

/* By name, one of those in bus.h, a static string; NULL announces nothing. 'k' NULL: of the session. */
void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, int64_t at_usec);

/* That the session, or one of its kernels, has a new status. */
void announce_session_status(struct core *core, const struct session_entry *l,
                             enum session_status status, const char *reason, int64_t at_usec);
void announce_kernel_status(struct core *core, const struct session_entry *l,
                            const struct kernel *k, enum kernel_status status, const char *reason,
                            int64_t at_usec);

#endif
