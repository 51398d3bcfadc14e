/* SPDX-License-Identifier: Apache-2.0 */
/* loop_internal.h - the turn of the loop, from the inside: what the files of this directory call */
#ifndef AQ_MANAGER_CORE_LOOP_LOOP_INTERNAL_H
#define AQ_MANAGER_CORE_LOOP_LOOP_INTERNAL_H

#include <stdint.h>
#include <uv.h>

#include "manager/core/commit/proposal.h"

/* ---- turn.c ---- */

/* A turn, as core_schedule_turn() asked for; data: struct core. */
void turn_on_idle(uv_idle_t *idle);

/* Each second; data: struct core. */
void turn_on_tick(uv_timer_t *timer);

/* For core.proposal_hooks. */
extern const struct proposal_hooks turn_proposal_hooks;

/* ---- apply.c ---- */

/* Apply one durable event to memory and announce it. In commit order, on the loop's thread.
 * Takes the contents of 'e'.
 */
void apply_event(struct core *core, struct event *e);

/* ---- key_use.c: when each keypair was used last ---- */

/* Write what has changed, at most once a minute. 'now' is monotonic. */
void key_use_tick(struct core *core, int64_t now);

/* The same at once. */
void key_use_save(struct core *core);

/* All memory of it. */
void key_use_free(struct core *core);

/* ---- session_use_save.c: when people worked in sessions last ---- */

/* Write what has changed, at most every ten seconds. 'now' is monotonic. */
void session_use_tick(struct core *core, int64_t now);

/* The same at once, of 500 sessions at most. */
void session_use_save(struct core *core);

#endif
