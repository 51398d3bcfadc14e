/* SPDX-License-Identifier: Apache-2.0 */
/* bookings.h - bookings that have not finished; the rules of core.h hold here */
#ifndef AQ_MANAGER_CORE_BOOKINGS_H
#define AQ_MANAGER_CORE_BOOKINGS_H

#include "manager/core/core.h"
#include "model/booking.h"

/* That of this id or name; NULL = there is none, or it has finished. */
const struct booking *core_find_booking(const struct core *core, const char *text);

/* All by creation: pass NULL to begin, NULL is the end. */
const struct booking *core_next_booking(const struct core *core, const struct booking *after);

/* Its sessions that live, by when they joined; likewise. */
const struct session *core_next_booking_session(const struct core *core, const struct booking *b,
                                                const struct session *after);

/* Why a place of it cannot be used now: "lost", "drained", "removed", "moved" (to another resource
 * group); NULL = it can be used. Static.
 */
const char *core_booking_place_lack(const struct core *core, const struct booking *b, size_t i);

/* The domain of all its projects and users, whose administrators may change it; NULL = they are of
 * several domains, or gone.
 */
const char *core_booking_domain(const struct core *core, const struct booking *b);

/* Append what the request for 'b' is answered, which is not in memory yet; 'data' is that of
 * core_done_fn. Returns the HTTP status.
 */
typedef int (*core_booking_write_fn)(void *data, const struct booking *b, struct strbuf *out);

/* Keep amounts from now on. The contents of 'b' are taken: id, version, creation time and places are
 * set here. With 'answered' (else NULL), of which 'write' does not count, the answer that 'write'
 * gives is kept with the booking. Errors: -EINVAL with the field as the API calls it; -EEXIST
 * "name"; -EBUSY, kind "reservation-does-not-fit"; -EDQUOT: there are BOOKING_LIVE_MAX already, or
 * booking_check_limits(); -EALREADY: the keypair made a request under this key before; the store's.
 */
void core_create_booking(struct core *core, struct booking *b, const struct core_answered *answered,
                         core_booking_write_fn write, const struct audit_who *by, core_done_fn done,
                         void *data);

/* The booking of b->id becomes 'b', whose contents are taken; it was copied from the present one
 * and changed. Other times, amounts, nodes or agents need other places: once it has begun, it may
 * only end at another time, on the places that it has. Errors as above; -ENOENT; -ESTALE, kind
 * "conflict": it was changed meanwhile.
 */
void core_change_booking(struct core *core, struct booking *b, const struct audit_who *by,
                         core_done_fn done, void *data);

/* Its amounts are free for all; sessions of it that wait are cancelled, others run on. 'reason' is
 * for people, or NULL. -ENOENT, -ESTALE as above.
 */
void core_cancel_booking(struct core *core, const struct uuid *id, const char *reason,
                         const struct audit_who *by, core_done_fn done, void *data);

#endif
