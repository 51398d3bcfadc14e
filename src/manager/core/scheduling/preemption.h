/* SPDX-License-Identifier: Apache-2.0 */
/* preemption.h - preemption: a group's settings, and what follows from a pass */
#ifndef AQ_MANAGER_CORE_SCHEDULING_PREEMPTION_H
#define AQ_MANAGER_CORE_SCHEDULING_PREEMPTION_H

#include <stdbool.h>

#include "manager/core/lookup.h"

struct aq_error;
struct core;
struct core_scheduling;
struct json_t;
struct resource_group_entry;
struct sched_outcome;
struct sched_preemption;
struct sched_session;
struct session;
struct session_entry;
struct uuid;

/* Of the member "preemption" of scheduler_opts; NULL = none. -EINVAL names the key. */
int preemption_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err);

/* What becomes of 'l' if it is preempted. */
enum core_fate preemption_fate(const struct session_entry *l);

/* Into what the scheduler is told, after session_entry_describe(). */
void preemption_describe(struct core *core, const struct session_entry *l,
                         struct sched_session *ret);

/* Preemptible sessions may have to give way to it: its job priority is above that of some. */
bool preemption_may_preempt(const struct session_entry *l);

/* Some sessions may have to be preempted. */
bool preemption_is_on(const struct sched_preemption *p);

/* For status_data of a preempted session. */
char *preemption_data(const struct session_entry *l);

/* It is about to give back what it holds. */
bool preemption_is_leaving(const struct session *s);

/* The victims of 'out' are to make room for the session 'by'. */
void preemption_call_victims(const struct resource_group_entry *g, struct core *core,
                             const struct uuid *by, const struct sched_outcome *out);

/* A pass of 'g' found 'l' a place that others have to leave. */
void preemption_begin(struct resource_group_entry *g, struct core *core, struct session_entry *l,
                      const struct sched_outcome *out);

#endif
