/* SPDX-License-Identifier: Apache-2.0 */
/* resize_check.h - may a running session have other parts of devices? */
#ifndef AQ_MANAGER_CORE_SESSION_RESIZE_CHECK_H
#define AQ_MANAGER_CORE_SESSION_RESIZE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "manager/core/state/session_entry.h"

struct aq_error;
struct core;
struct slots;

/* Kernels that have ended keep nothing, and are not resized. */
static inline bool resize_takes_part(const struct session_entry *l, size_t rank)
{
    return kernel_is_holding(l->s.kernels[rank].status);
}

/* By its state, its agents, what they have free and the limits of its accounts. 0, or an error as
 * of core_resize_session().
 */
int resize_check(struct core *core, struct session_entry *l, const struct slots *changes,
                 struct aq_error *err) AQ_MUST_CHECK;

#endif
