/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.h - kernels of a running session that come and go while it runs
 *
 * A kernel that is PENDING in a RUNNING session waits for a place (scheduling/kernel_queue.h). When
 * it has one its agent is ordered to create it, and it is released as soon as it is ready. Kernels
 * go back to PENDING when they give way to another session, when their agent is lost, and in a
 * session with a minimum that does not say otherwise (on_failure) when their program fails.
 */
#ifndef AQ_MANAGER_CORE_SESSION_ELASTIC_H
#define AQ_MANAGER_CORE_SESSION_ELASTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct session_entry;

/* The step of the kernels of a RUNNING session that wait, start or give way. True if one of them
 * cannot be started and stays ended.
 */
bool elastic_step(struct core *core, struct session_entry *l, int64_t now);

/* A RUNNING kernel of a running session, not the first, has ended. True if it goes back to the
 * queue; that is proposed.
 */
bool elastic_take_end(struct core *core, struct session_entry *l, size_t rank, int64_t now);

/* True if a kernel of a session with a minimum has ended because its program exited with 0, which
 * does not degrade the session.
 */
bool elastic_has_finished(const struct session_entry *l, size_t rank);

#endif
