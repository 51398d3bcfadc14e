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
#include "store/session_event.h"

/* By name, one of those in bus.h; NULL announces nothing. 'k' NULL: of the session. 'place' is the
 * event's in the store.
 */
void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, struct session_event_place place);

#endif
