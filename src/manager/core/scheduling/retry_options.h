/* SPDX-License-Identifier: Apache-2.0 */
/* retry_options.h - how often and for how long a resource group lets a start be tried */
#ifndef AQ_MANAGER_CORE_SCHEDULING_RETRY_OPTIONS_H
#define AQ_MANAGER_CORE_SCHEDULING_RETRY_OPTIONS_H

#include <stdbool.h>

struct aq_error;
struct core_scheduling;
struct json_t;
struct session_entry;

/* The limits of a group that says nothing. */
void retry_options_defaults(struct core_scheduling *ret);

/* Of the member "handler_options" of scheduler_opts; NULL = none. -EINVAL names the key. */
int retry_options_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err);

/* Something follows from how often it does not fit. */
bool retry_options_count_waits(const struct session_entry *l);

#endif
