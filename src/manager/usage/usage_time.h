/* SPDX-License-Identifier: Apache-2.0 */
/* usage_time.h - days and months of UTC, for which usage is reported
 *
 * Any thread.
 */
#ifndef AQ_MANAGER_USAGE_USAGE_TIME_H
#define AQ_MANAGER_USAGE_USAGE_TIME_H

#include <stdint.h>

#include "base/error.h"

/* "20261124" or "2026-11-24": when that day begins and ends. -EINVAL with the parameter. */
int usage_time_parse_day(const char *text, const char *field, int64_t *ret_usec,
                         int64_t *ret_next_usec, struct aq_error *err) AQ_UNTRUSTED;
/* The same of a month, "202611" or "2026-11". */
int usage_time_parse_month(const char *text, const char *field, int64_t *ret_usec,
                           int64_t *ret_next_usec, struct aq_error *err) AQ_UNTRUSTED;

#endif
