/* SPDX-License-Identifier: Apache-2.0 */
/* audit_trail.h - what goes into the audit log
 *
 * Entries are queued and written a few at a time. Loop's thread only.
 */
#ifndef AQ_MANAGER_CALL_AUDIT_TRAIL_H
#define AQ_MANAGER_CALL_AUDIT_TRAIL_H

#include <uv.h>

#include "store/audit_log.h"

struct audit_trail;

/* The store must outlive it, or its last callbacks be run before that. */
struct audit_trail *audit_trail_new(uv_loop_t *loop, struct store *store);

/* Have 'tick' called each second until audit_trail_stop(). */
void audit_trail_set_tick(struct audit_trail *trail, void (*tick)(void *data), void *data);

/* Add an entry; its texts are copied, and its time is that of the call. With too many
 * that wait for the store, it is dropped and the log says so.
 */
void audit_trail_add(struct audit_trail *trail, const struct audit_entry *entry);

/* Give what waits to the store. Nothing may be added after it. */
void audit_trail_stop(struct audit_trail *trail);

void audit_trail_free(struct audit_trail *trail);

#endif
