/* SPDX-License-Identifier: Apache-2.0 */
/* lead_beat.h - a leader shows that it is alive, and keeps back what it may not say if it does not
 * lead any more
 *
 * Where other managers may take the lead (store/leadership.h), the loop asks for a commit each
 * LEAD_BEAT_USEC, so that a loop that hangs loses the lead. A standby takes it 5 s after the last
 * one; before that, LEAD_DOUBT_USEC after the last one was begun, orders to agents wait. Heartbeats
 * are answered for LEAD_SILENT_USEC: what the answers renew, a next leader waits for
 * (nodes/liveness.c). They are answered for longer while all other managers stand by here, as none
 * of them can lead then: so a database that is away for all ends no kernel. With the database in a file nothing of this happens.
 */
#ifndef AQ_MANAGER_CORE_STATE_LEAD_BEAT_H
#define AQ_MANAGER_CORE_STATE_LEAD_BEAT_H

#include <stdbool.h>

#include "base/clock.h"

struct core;

#define LEAD_BEAT_USEC (250 * USEC_PER_MSEC)
#define LEAD_DOUBT_USEC (3 * USEC_PER_SEC)
#define LEAD_SILENT_USEC (15 * USEC_PER_SEC)

/* Begin to ask; after the link was opened. */
void lead_beat_start(struct core *core);

/* Before an order is sent: hold the link's orders back or let them go, as the last commit says. */
void lead_beat_check(struct core *core);

/* The database is lost for good: no order goes out and no heartbeat is answered any more. */
void lead_beat_lose(struct core *core);

/* May a heartbeat be answered now? */
bool lead_beat_may_renew(const struct core *core);

#endif
