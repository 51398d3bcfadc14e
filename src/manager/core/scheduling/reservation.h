/* SPDX-License-Identifier: Apache-2.0 */
/* reservation.h - agents on which capacity is reserved for a session */
#ifndef AQ_MANAGER_CORE_SCHEDULING_RESERVATION_H
#define AQ_MANAGER_CORE_SCHEDULING_RESERVATION_H

#include <stdint.h>

struct core;
struct jsonw;
struct session_entry;

#define RESERVATION_MIGRATED "moved_to"

#define RESERVATION_PREEMPTING "places"

/* These are set aside for it, one per kernel (copied); NULL = none. */
void reservation_set(struct session_entry *l, const char *const *agents);

/* What its row says. */
void reservation_load(struct session_entry *l);

/* As a member of an object, if there are any. */
void reservation_write(const struct session_entry *l, const char *key, struct jsonw *w);

/* Monotonic: it waits so long for an agent of them, which is not there yet; 0 = it does not. */
int64_t reservation_due(const struct core *core, const struct session_entry *l);

#endif
