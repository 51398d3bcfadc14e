/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.h - tells a session's callback_url what happens to it
 *
 * POST of {"type", "event", "session_id", "when"}, as Backend.AI's managers send it, delivered as
 * deliveries.h says, where a session's user is the owner.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_NOTIFICATION_CALLBACKS_H
#define AQ_MANAGER_NOTIFICATION_CALLBACKS_H

#include "manager/core/core.h"
#include "manager/notification/deliveries.h"

struct callbacks;

/* Begins at once. */
struct callbacks *callbacks_new(struct core *core, struct deliveries *deliveries);
/* Before the core's end, and that of the deliveries. */
void callbacks_free(struct callbacks *callbacks);

#endif
