/* SPDX-License-Identifier: Apache-2.0 */
/* session_use_save.h - writing when people worked in sessions last */
#ifndef AQ_MANAGER_CORE_LOOP_SESSION_USE_SAVE_H
#define AQ_MANAGER_CORE_LOOP_SESSION_USE_SAVE_H

#include <stdint.h>

struct core;

/* Write what has changed, at most every ten seconds. 'now' is monotonic. */
void session_use_tick(struct core *core, int64_t now);

/* The same at once, of 500 sessions at most. */
void session_use_save(struct core *core);

#endif
