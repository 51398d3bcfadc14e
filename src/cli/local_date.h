/* SPDX-License-Identifier: Apache-2.0 */
/* local_date.h - dates that users type, for the manager
 *
 * The manager takes a date without a zone for UTC, since it does not know the zone of the user.
 * The command line does: such a date is in the time zone of its machine.
 */
#ifndef AQ_CLI_LOCAL_DATE_H
#define AQ_CLI_LOCAL_DATE_H

#include "base/clock.h"
#include "base/error.h"

/* A date as the manager takes it, in 'buf'; any other text (a duration, Unix time, NULL) is
 * returned as it is, for the manager to read or to refuse.
 */
const char *local_date_resolve(const char *text, char buf[CLOCK_ISO_MAX]);

/* The same, where a day ("2026-11-24" or "20261124") means its end. */
const char *local_date_resolve_end(const char *text, char buf[CLOCK_ISO_MAX]);

/* -EINVAL, of kind usage, unless 'text', the value of 'option' ("--since"), is a date, Unix time or
 * how long ago. NULL is fine.
 */
int local_date_check(const char *option, const char *text, struct aq_error *err);

#endif
