/* SPDX-License-Identifier: Apache-2.0 */
/* session_bytes.h - what sessions take of the manager's memory, and how much they may
 *
 * An estimate of what a session takes from its creation to its end: itself, its
 * kernels and its texts. Counted by user and together, when it is created and
 * when a manager loads it. Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_SESSION_BYTES_H
#define AQ_MANAGER_CORE_STATE_SESSION_BYTES_H

#include <stdint.h>

struct account;
struct aq_error;
struct core;
struct session;

/* What it takes. */
int64_t session_bytes_of(const struct session *s);

/* May a session of this user (a SCHED_USER) take as much more? -EDQUOT says which limit is
 * reached, and what to do.
 */
int session_bytes_check(const struct core *core, const struct account *user, int64_t bytes,
                        struct aq_error *err);

/* It takes as much from now on, or gives it back if 'bytes' is negative. */
void session_bytes_add(struct core *core, struct account *user, int64_t bytes);

#endif
