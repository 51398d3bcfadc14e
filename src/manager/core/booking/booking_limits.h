/* SPDX-License-Identifier: Apache-2.0 */
/* booking_limits.h - how much administrators of a domain may keep */
#ifndef AQ_MANAGER_CORE_BOOKING_BOOKING_LIMITS_H
#define AQ_MANAGER_CORE_BOOKING_BOOKING_LIMITS_H

#include "base/error.h"

struct audit_who;
struct booking;
struct core;

/* May 'by' make 'b', or change the booking of its id to 'b'? Bookings of one domain that have not
 * finished are at most BOOKING_DOMAIN_MAX, and together keep at no time more than the domain may
 * use; superadmins go beyond both. Bookings on their way to the store do not count. -EDQUOT, kind
 * "quota-exceeded"; field "resources" for amounts.
 */
int booking_check_limits(const struct core *core, const struct booking *b,
                         const struct audit_who *by, struct aq_error *err);

#endif
