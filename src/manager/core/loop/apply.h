/* SPDX-License-Identifier: Apache-2.0 */
/* apply.h - durable events applied to memory */
#ifndef AQ_MANAGER_CORE_LOOP_APPLY_H
#define AQ_MANAGER_CORE_LOOP_APPLY_H

struct core;
struct event;

/* Apply one durable event to memory and announce it. In commit order, on the loop's thread.
 * Takes the contents of 'e'.
 */
void apply_event(struct core *core, struct event *e);

#endif
