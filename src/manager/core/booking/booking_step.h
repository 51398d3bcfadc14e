/* SPDX-License-Identifier: Apache-2.0 */
/* booking_step.h - what follows for a booking from its time, its sessions and its agents
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_BOOKING_BOOKING_STEP_H
#define AQ_MANAGER_CORE_BOOKING_BOOKING_STEP_H

struct core;
struct durable_ops;
struct event;
struct session_entry;

extern const struct durable_ops booking_durable_ops;

/* Change memory by EVENT_BOOKING_CREATED or _CHANGED. */
void booking_apply(struct core *core, struct event *e);

/* The session, which may have a booking, has another status. */
void booking_note_status(struct core *core, const struct session_entry *l);

/* An agent was lost, came back, is drained or removed: look at bookings with places there. */
void booking_note_agents(struct core *core);

#endif
