/* SPDX-License-Identifier: Apache-2.0 */
/* key_use.h - when each keypair was used last */
#ifndef AQ_MANAGER_CORE_LOOP_KEY_USE_H
#define AQ_MANAGER_CORE_LOOP_KEY_USE_H

#include <stdint.h>

struct core;

/* Write what has changed, at most once a minute. 'now' is monotonic. */
void key_use_tick(struct core *core, int64_t now);

/* The same at once. */
void key_use_save(struct core *core);

/* All memory of it. */
void key_use_free(struct core *core);

#endif
