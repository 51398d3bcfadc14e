/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_failure.h - the kernel whose end ends its session, and the words for it
 *
 * A kernel fails when its program exits with another status than 0, is killed by a signal or for
 * want of memory, when its bootstrap script fails, or when its container disappears.
 */
#ifndef AQ_MANAGER_CORE_SESSION_KERNEL_FAILURE_H
#define AQ_MANAGER_CORE_SESSION_KERNEL_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/status.h"

struct core;
struct kernel_entry;
struct session_entry;

/* The kernel's program exited with 0. False also for one that was ended: it may answer the signal
 * with status 0.
 */
bool kernel_failure_has_succeeded(const struct kernel_entry *f);

/* The first kernel whose end ends the session: "main1", or with on_failure "end" any that failed.
 * kernel_count if there is none. 'now' is monotonic.
 */
size_t kernel_failure_find(const struct core *core, const struct session_entry *l, int64_t now);

/* The first kernel that fails the start: one whose bootstrap script failed, or, while others have
 * not begun and with on_failure "end", one of several that failed. kernel_count if there is none.
 */
size_t kernel_failure_find_at_start(const struct session_entry *l, bool all_begun);

/* The session's reason (static) and result when the end of this kernel ends it. */
const char *kernel_failure_reason(const struct session_entry *l, size_t rank,
                                  enum session_result *ret_result);

/* JSON for status_data about a kernel that ended; the caller frees it. If it is one of several:
 * {"kernel", "agent", "exit_code", and "text" or "error"}. NULL if its agent said nothing.
 */
char *kernel_failure_json(const struct session_entry *l, size_t rank);

/* Write 'data' into the manager's log if it names a kernel. */
void kernel_failure_log(const struct session_entry *l, const char *data);

/* True if the session's status_data names a kernel already: the first failure counts. */
bool kernel_failure_is_noted(const struct session_entry *l);

/* True if the agent of the kernel is lost and neither the session nor, if that does not say, its
 * resource group waits for it; also if its node ended it, as its lease was over. 'forced': nobody
 * waits.
 */
bool kernel_failure_is_given_up(const struct core *core, const struct session_entry *l, size_t rank,
                                bool forced);

/* Policies for a lost agent. Lost kernels alone restart if the session says so, or has a minimum and
 * says nothing. All kernels restart if the session says so, if its lost kernels cannot restart
 * alone, or if it says nothing and its resource group requeues.
 */
bool kernel_failure_restarts_lost(const struct session_entry *l);
bool kernel_failure_restarts_all(const struct session_entry *l);

/* JSON for status_data that names the kernels on the lost agent of this one; the caller frees it.
 * NULL if it is the only kernel of its session.
 */
char *kernel_failure_loss_json(const struct session_entry *l, size_t rank);

#endif
