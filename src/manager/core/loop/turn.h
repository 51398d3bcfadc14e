/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - the turn of the loop: what libuv and proposals call */
#ifndef AQ_MANAGER_CORE_LOOP_TURN_H
#define AQ_MANAGER_CORE_LOOP_TURN_H

#include <uv.h>

#include "manager/core/commit/proposal.h"

/* A turn, as core_schedule_turn() asked for; data: struct core. */
void turn_on_idle(uv_idle_t *idle);

/* Each second; data: struct core. */
void turn_on_tick(uv_timer_t *timer);

/* For core.proposal_hooks. */
extern const struct proposal_hooks turn_proposal_hooks;

#endif
