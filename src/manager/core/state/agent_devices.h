/* SPDX-License-Identifier: Apache-2.0 */
/* agent_devices.h - an agent's accelerators, and what of each is free */
#ifndef AQ_MANAGER_CORE_STATE_AGENT_DEVICES_H
#define AQ_MANAGER_CORE_STATE_AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

struct agent_devices;
struct agent_entry;
struct arena;
struct core;
struct kernel_entry;
struct sched_choice;
struct sched_device;
struct sched_part;
struct slots;

int agent_devices_find(const struct core *core, struct agent_entry *a,
                       const struct sched_device **ret, size_t *ret_count);

/* What the agent gives when nothing runs on it and all of its devices are healthy; of the devices
 * slots, capacities and quanta. Good until it describes itself again.
 */
void agent_devices_find_capacity(const struct core *core, struct agent_entry *a,
                                 const struct slots **ret_capacity, const struct sched_device **ret,
                                 size_t *ret_count);

/* NULL is fine. */
void agent_devices_free(struct agent_devices *known);

/* As far as they have been looked at. */
bool agent_devices_are_known(const struct agent_entry *a);

/* May some be the same hardware under several slots' names? What it has given under one it has not
 * under the others. As far as they have been looked at.
 */
bool agent_devices_have_twins(const struct agent_entry *a);

/* The same as if nobody held any of them, except under another slot's name;
 * lives in 'arena'.
 */
int agent_devices_copy(const struct core *core, struct agent_entry *a, struct arena *arena,
                       struct sched_device **ret, size_t *ret_count);

/* The parts of the agent's devices, as agent_devices_find() lists them, that a kernel is known to
 * hold; none if that is not known. They live in 'arena'. 0 or -EINVAL.
 */
int agent_devices_find_parts(const struct core *core, struct agent_entry *a,
                             const struct kernel_entry *f, struct arena *arena,
                             const struct sched_part **ret, size_t *ret_count);

/* The same of a grant as JSON (alloc/grant.h), such as a booking has; devices that are not there
 * are left out.
 */
int agent_devices_read_parts(const struct core *core, struct agent_entry *a, const char *json,
                             struct arena *arena, const struct sched_part **ret, size_t *ret_count);

/* These parts as such a grant. NULL if there are none; the caller frees it. */
char *agent_devices_write_parts(const struct core *core, const struct agent_entry *a,
                                const struct sched_part *parts, size_t count);

/* For kernel.create: that all that a kernel requests of the slots of these parts of devices,
 * numbered as agent_devices_find() lists them, comes from them. One that is given whole is left
 * out unless the choice is binding: another is as good, and the agent knows which are near its
 * cores. A binding choice may be for several kernels of the agent: what this one gets is taken off
 * its parts. NULL if none is left; the caller frees it.
 */
char *agent_devices_write_chosen(const struct core *core, const struct agent_entry *a,
                                 struct sched_choice *chosen, const struct slots *requested);

#endif
