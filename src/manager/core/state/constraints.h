/* SPDX-License-Identifier: Apache-2.0 */
/* constraints.h - placement constraints and hints of a session, as its spec has them */
#ifndef AQ_MANAGER_CORE_STATE_CONSTRAINTS_H
#define AQ_MANAGER_CORE_STATE_CONSTRAINTS_H

struct aq_error;
struct core;
struct sched_session;
struct session;
struct session_spec;

/* Of a request; 'resource_group' NULL = that of the agents. -EINVAL names the member. */
int constraints_check(const struct core *core, const struct session_spec *spec,
                      const char *resource_group, int max_priority, struct aq_error *err);

/* The group of the requested agents; NULL = none is. */
const char *constraints_resource_group(const struct core *core, const struct session_spec *spec);

/* Into what the scheduler is told; texts live in core.scratch. */
void constraints_describe(struct core *core, const struct session *session,
                          struct sched_session *ret);

#endif
