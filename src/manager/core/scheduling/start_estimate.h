/* SPDX-License-Identifier: Apache-2.0 */
/* start_estimate.h - when a waiting session will start */
#ifndef AQ_MANAGER_CORE_SCHEDULING_START_ESTIMATE_H
#define AQ_MANAGER_CORE_SCHEDULING_START_ESTIMATE_H

#include <stddef.h>

struct core;
struct core_start_estimate;
struct resource_group_entry;
struct session_entry;
struct strbuf;

/* How many of 'count' sessions like 'l', which is not in the queue, would start now, 'most' at
 * most, into *ret_started, and the estimate for the next of them, or for the last if all would.
 * Errors of sched_sync_push().
 */
int start_estimate_what_if(struct core *core, struct session_entry *l, size_t count, size_t most,
                           size_t *ret_started, struct core_start_estimate *ret);

/* Sentences for a person, behind an explanation whose verdict is o->verdict; none where that says
 * all.
 */
void start_estimate_write_text(const struct core *core, const struct resource_group_entry *g,
                               const struct core_start_estimate *o, struct strbuf *text);

/* Forget the group's last plan. */
void start_estimate_done(struct resource_group_entry *g);

#endif
