/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - callbacks of libuv for the turn of the loop and for each second; data: struct core */
#ifndef AQ_MANAGER_CORE_LOOP_TURN_H
#define AQ_MANAGER_CORE_LOOP_TURN_H

#include <uv.h>

/* A turn, as core_schedule_turn() asked for. */
void turn_on_idle(uv_idle_t *idle);

/* Each second. */
void turn_on_tick(uv_timer_t *timer);

#endif
