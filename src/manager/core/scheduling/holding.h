/* SPDX-License-Identifier: Apache-2.0 */
/* holding.h - what follows for scheduling when a session takes or gives back resources */
#ifndef AQ_MANAGER_CORE_SCHEDULING_HOLDING_H
#define AQ_MANAGER_CORE_SCHEDULING_HOLDING_H

struct state_hooks;

/* For core.hooks. */
extern const struct state_hooks holding_hooks;

#endif
