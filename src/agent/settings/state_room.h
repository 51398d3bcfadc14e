/* SPDX-License-Identifier: Apache-2.0 */
/* state_room.h - whether the file system of the state folder takes anything new */
#ifndef AQ_AGENT_SETTINGS_STATE_ROOM_H
#define AQ_AGENT_SETTINGS_STATE_ROOM_H

#include <stdbool.h>

#include "base/error.h"

/* True, and in 'why' (may be NULL) the folder and the remedy, if less than 1 MiB or 16 inodes are
 * free there, or if it is read-only, also after an I/O error. A quota is not seen:
 * disk_worker_lacks_room(). Any thread.
 */
bool state_room_is_short(const char *state, struct aq_error *why);

/* The same words for a write that failed there. */
void state_room_explain(const char *state, bool is_read_only, struct aq_error *why);

#endif
