/* SPDX-License-Identifier: Apache-2.0 */
/* account_audit.h - entries of the audit log about users, keypairs, domains, projects, policies
 * and resource groups
 */
#ifndef AQ_MANAGER_CORE_ACCOUNTS_ACCOUNT_AUDIT_H
#define AQ_MANAGER_CORE_ACCOUNTS_ACCOUNT_AUDIT_H

#include "base/cleanup.h"
#include "model/audit.h"

struct core;

/* Add to the batch an entry for each of its events that changes something of what is in
 * memory.
 */
void account_audit_add(const struct core *core, struct event_batch *batch,
                       const struct audit_who *by);

#endif
