/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.h - which devices kernels hold, as their agents reported */
#ifndef AQ_MANAGER_CORE_STATE_ALLOCATIONS_H
#define AQ_MANAGER_CORE_STATE_ALLOCATIONS_H

struct core;
struct core_held;
struct kernel_entry;

/* JSON of the devices that the kernel holds, NULL = it has not said. */
const char *allocations_json(const struct kernel_entry *f);

/* The same, added to 'ret'. */
void allocations_add_held(const struct core *core, const struct kernel_entry *f,
                          struct core_held *ret);

#endif
