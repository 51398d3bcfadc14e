/* SPDX-License-Identifier: Apache-2.0 */
/* constraints.h - placement constraints and hints of a session, kept in its spec */
#ifndef AQ_MANAGER_CORE_STATE_CONSTRAINTS_H
#define AQ_MANAGER_CORE_STATE_CONSTRAINTS_H

#include <stdbool.h>

struct aq_error;
struct core;
struct json_t;
struct jsonw;
struct sched_session;
struct session_constraints;
struct session_entry;

/* Of a request; 'resource_group' NULL = that of the agents. -EINVAL names the member. */
int constraints_check(const struct core *core, const struct session_constraints *constraints,
                      const char *resource_group, int max_priority, struct aq_error *err);

/* The group of the requested agents; NULL = none is. */
const char *constraints_resource_group(const struct core *core,
                                       const struct session_constraints *constraints);

/* The member of a spec that keeps them, if there are any. */
void constraints_write(const struct session_constraints *constraints, struct jsonw *w);

/* Does the text of a spec hold any? NULL is not allowed. */
bool constraints_are_in(const char *spec);

/* Out of the spec into 'l'. 0 or -ENOMEM. */
int constraints_read(const struct json_t *spec, struct session_entry *l);

/* What constraints_read() put into 'l'. */
void constraints_free(struct session_entry *l);

/* Into what the scheduler is told; texts live in core.scratch. 0 or -ENOMEM. */
int constraints_describe(struct core *core, const struct session_entry *l,
                         struct sched_session *ret);

#endif
