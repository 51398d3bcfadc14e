/* SPDX-License-Identifier: Apache-2.0 */
/* session_use.h - when people worked in a session last, and what went through its apps: in memory
 */
#ifndef AQ_MANAGER_CORE_STATE_SESSION_USE_H
#define AQ_MANAGER_CORE_STATE_SESSION_USE_H

#include "base/list.h"
#include "manager/core/session_use.h"

struct session_use_entry {
    struct uuid session;
    struct list unsaved_link; /* in core.session_uses.unsaved: its row does not say the time yet */
    struct session_use shown;
    bool is_ended; /* nobody has it but that list */
};

void session_use_free(struct session_use_entry *use);

/* The session has ended: it is freed, now or when its row says the time. NULL is fine. */
void session_use_release(struct session_use_entry *use);

#endif
