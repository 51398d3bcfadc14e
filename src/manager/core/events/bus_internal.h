/* SPDX-License-Identifier: Apache-2.0 */
/* bus_internal.h - publishing events to subscribers; see bus.h */
#ifndef AQ_MANAGER_CORE_EVENTS_BUS_INTERNAL_H
#define AQ_MANAGER_CORE_EVENTS_BUS_INTERNAL_H

struct core;
struct core_event;

/* Call the subscribers of all sessions, then those of the event's; cannot fail. See core_event_fn. */
void bus_publish(struct core *core, const struct core_event *event);

/* All subscriptions, at the end. */
void bus_free(struct core *core);

#endif
