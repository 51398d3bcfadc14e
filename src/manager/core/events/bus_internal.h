/* SPDX-License-Identifier: Apache-2.0 */
/* bus_internal.h - publishing events to subscribers; see bus.h */
#ifndef AQ_MANAGER_CORE_EVENTS_BUS_INTERNAL_H
#define AQ_MANAGER_CORE_EVENTS_BUS_INTERNAL_H

#include "manager/core/state/session_entry.h"
#include "store/session_event.h"

struct core;
struct core_event;

/* Call the subscribers of all sessions, then those of the event's; cannot fail. See core_event_fn.
 */
void bus_publish(struct core *core, const struct core_event *event);

/* Publish what an applied event has changed, in commit order, after memory has changed; nothing
 * while the manager loads what the store has. 'name' is one of those in bus.h; NULL announces
 * nothing. 'k' NULL: of the session. 'reason' may be NULL. 'place' is the event's in the store.
 * Nothing is kept.
 */
void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, struct session_event_place place);

/* All subscriptions, at the end. */
void bus_free(struct core *core);

#endif
