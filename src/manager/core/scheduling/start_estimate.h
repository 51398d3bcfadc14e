/* SPDX-License-Identifier: Apache-2.0 */
/* start_estimate.h - when a waiting session will start */
#ifndef AQ_MANAGER_CORE_SCHEDULING_START_ESTIMATE_H
#define AQ_MANAGER_CORE_SCHEDULING_START_ESTIMATE_H

struct core;
struct core_start_estimate;
struct resource_group_entry;
struct session_entry;
struct strbuf;

/* The estimate for one that is not in the queue. */
int start_estimate_what_if(struct core *core, struct session_entry *l,
                           struct core_start_estimate *ret);

/* Sentences for a person. */
void start_estimate_write_text(const struct core *core, const struct resource_group_entry *g,
                               const struct core_start_estimate *o, struct strbuf *text);

/* Forget the group's last plan. */
void start_estimate_done(struct resource_group_entry *g);

#endif
