/* SPDX-License-Identifier: Apache-2.0 */
/* limit_violation.h - programs that use more of a GPU than their part */
#ifndef AQ_MANAGER_CORE_SESSION_LIMIT_VIOLATION_H
#define AQ_MANAGER_CORE_SESSION_LIMIT_VIOLATION_H

#include <stddef.h>

struct agent_entry;
struct core;
struct session_entry;

/* An agent says how programs of a kernel use GPUs past their slices; NULL = not at all. */
void limit_violation_take(struct core *core, struct agent_entry *a, struct session_entry *l,
                          size_t rank, const char *text);

/* All of that for status_data; NULL = there is none. */
char *limit_violation_json(const struct session_entry *l);

#endif
