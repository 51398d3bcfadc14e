/* SPDX-License-Identifier: Apache-2.0 */
/* create.h - making elements of arrays the way that sessions are made */
#ifndef AQ_MANAGER_CORE_SESSION_CREATE_H
#define AQ_MANAGER_CORE_SESSION_CREATE_H

#include "manager/core/core.h"

struct array_entry;

/* The next 'count' elements of the array that were not cancelled, or as many of these as limits
 * allow if that is any; the array's row says so in the same transaction. -EINVAL with the field
 * "dependencies": what they depend on has failed. 'entry' stays until 'done' is called.
 */
void create_elements(struct core *core, struct array_entry *entry, int64_t count,
                     core_create_fn done, void *data);

#endif
