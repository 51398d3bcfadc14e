/* SPDX-License-Identifier: Apache-2.0 */
/* booking_member.h - sessions that are to run in a booking */
#ifndef AQ_MANAGER_CORE_BOOKING_BOOKING_MEMBER_H
#define AQ_MANAGER_CORE_BOOKING_BOOKING_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct core;
struct session;
struct session_entry;

/* Set s->booking_id if its spec names a booking, or check that the one which it has lives, may be
 * used by its owner and project, and can hold it. -EINVAL, -EACCES, -ENOENT, field "reservation".
 */
int booking_admit(const struct core *core, struct session *s, struct aq_error *err);

/* The resource group of the booking that the session names; NULL = it names none that lives and is
 * for its owner. */
const char *booking_resource_group(const struct core *core, const struct session *s);

/* How long before the end of its booking the session gets its 'signal'; 0 = it has none. */
int64_t booking_notice_usec(const struct session_entry *l);

/* The session, which waits, has a booking that was canceled: it is to be cancelled, too. */
bool booking_is_orphan(const struct session_entry *l);

#endif
