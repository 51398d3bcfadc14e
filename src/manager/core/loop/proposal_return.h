/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_return.h - what follows when a proposal comes back from the store */
#ifndef AQ_MANAGER_CORE_LOOP_PROPOSAL_RETURN_H
#define AQ_MANAGER_CORE_LOOP_PROPOSAL_RETURN_H

#include "manager/core/commit/proposal.h"

/* For core.proposal_hooks. */
extern const struct proposal_hooks proposal_return_hooks;

#endif
