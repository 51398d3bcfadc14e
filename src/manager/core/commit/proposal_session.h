/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_session.h - proposals of a session's status and its kernels' */
#ifndef AQ_MANAGER_CORE_COMMIT_PROPOSAL_SESSION_H
#define AQ_MANAGER_CORE_COMMIT_PROPOSAL_SESSION_H

#include <stddef.h>

#include "manager/core/commit/proposal.h"
#include "model/session.h"

struct session_entry;

/* As proposal_add(), of its status. */
struct event *proposal_add_session_status(struct core *core, struct session_entry *l,
                                          enum session_status to, const char *reason);

/* The same of a kernel's. */
struct event *proposal_add_kernel_status(struct core *core, struct session_entry *l, size_t rank,
                                         enum kernel_status to, const char *reason);

#endif
