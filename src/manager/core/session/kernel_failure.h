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
 * kernel_count = none.
 */
size_t kernel_failure_find(const struct core *core, const struct session_entry *l, int64_t now);

/* The first kernel that makes a start vain: one whose bootstrap script failed, or, while others have
 * not begun and with on_failure "end", one of several that failed. kernel_count = none.
 */
size_t kernel_failure_find_at_start(const struct session_entry *l, bool all_begun);

/* The session's reason and result when the end of this kernel ends it; static. */
const char *kernel_failure_reason(const struct session_entry *l, size_t rank,
                                  enum session_result *ret_result);

/* The kernel's end for status_data, of one of several with its name and agent:
 * {"kernel", "agent", "exit_code", and "text" or "error"}; the caller frees it. NULL: nothing to say.
 */
char *kernel_failure_json(const struct session_entry *l, size_t rank);

/* Log it, where 'data' is of one of several kernels. */
void kernel_failure_log(const struct session_entry *l, const char *data);

/* True if status_data holds the above already: the first failure counts. */
bool kernel_failure_is_noted(const struct session_entry *l);

/* True if the agent of the kernel is lost and the session, or else its resource group, does not
 * wait for it. 'forced': nobody waits.
 */
bool kernel_failure_is_given_up(const struct core *core, const struct session_entry *l, size_t rank,
                                bool forced);

/* What the session says of on_node_loss: restart the lost kernels alone, which those with a minimum
 * of kernels do unless they say otherwise, or all kernels, which counts too where the former is not
 * possible; or else what its resource group says.
 */
bool kernel_failure_restarts_lost(const struct session_entry *l);
bool kernel_failure_restarts_all(const struct session_entry *l);

/* The kernels on the lost agent of this one, for status_data; the caller frees it. NULL: it is the
 * only kernel of its session.
 */
char *kernel_failure_loss_json(const struct session_entry *l, size_t rank);

#endif
