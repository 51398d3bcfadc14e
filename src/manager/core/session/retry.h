/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h - starts that failed or take too long: once more, or the end */
#ifndef AQ_MANAGER_CORE_SESSION_RETRY_H
#define AQ_MANAGER_CORE_SESSION_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct session_entry;
struct uuid;

/* An agent could not start a kernel: again, elsewhere if possible, or the end. */
void retry_failed(struct core *core, struct session_entry *l, size_t rank);

/* The same of a start that takes longer than its group allows: true if that was proposed. */
bool retry_expired(struct core *core, struct session_entry *l, int64_t now);

/* How long its state may last, if 'deadline_usec' is what it may in general (0 = forever): a start
 * at least as long as its group lets one take.
 */
int64_t retry_deadline(const struct session_entry *l, int64_t deadline_usec);

/* An agent fetches an image for a kernel, or does so no longer. */
void retry_take_pull(struct core *core, struct session_entry *l, const struct uuid *kernel_id,
                     bool is_over);

/* It waits in vain for too long and holds up others: true if it was proposed to lower it. */
bool retry_deprioritize(struct core *core, struct session_entry *l);

/* It has waited for as long as it may. */
void retry_note_timeout(struct core *core, struct session_entry *l);

/* DEPRIORITIZING: lower it, back to the queue. */
void retry_lower(struct core *core, struct session_entry *l);

#endif
