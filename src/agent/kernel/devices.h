/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - devices of one kernel: allocated, attached, released
 *
 * A kernel holds its devices from the command to its end (k->grant). Before each
 * start the plugins of its accelerators say what its container needs
 * (k->attachment); that goes into config/resource.txt and environ.txt, too.
 */
#ifndef AQ_AGENT_KERNEL_DEVICES_H
#define AQ_AGENT_KERNEL_DEVICES_H

#include "agent/kernel/kernel.h"

/* Unknown slots that are zero are no request; all others must be ours. Where the scheduler chose a
 * device it is that one, or none.
 */
int devices_allocate(struct local_kernel *k, struct aq_error *err);

/* Keep the devices if they are what the command wants, else ask for others. */
int devices_ensure(struct local_kernel *k, struct aq_error *err);

/* Say in reports what k->grant has. */
void devices_describe(struct local_kernel *k);

/* Give them back; forgets what they need, too. */
void devices_release(struct local_kernel *k);

/* Have the attachment of k->grant ready: 0 if it is. -EINPROGRESS: the plugins are being
 * asked; kernel_step() is called when they have answered, or kernel_fail().
 */
int devices_prepare(struct local_kernel *k, struct aq_error *err);

/* Ask again before the next start. */
void devices_detach(struct local_kernel *k);

/* Parts of devices may be worth something else now: ask the plugins, and change the
 * slices of running kernels by what they say. Less than what is in use takes nothing away.
 */
void devices_resize(struct local_kernel *k);
void devices_resize_all(struct agent_daemon *agent);

/* The map is a new one: note in it what every kernel holds. */
int devices_apply_all(struct agent_daemon *agent, struct alloc_map *map, struct aq_error *err);

#endif
