/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - domains, projects, users, keypairs, policies and resource groups in memory */
#ifndef AQ_MANAGER_CORE_ACCOUNTS_ACCOUNTS_H
#define AQ_MANAGER_CORE_ACCOUNTS_ACCOUNTS_H

struct core;
struct event;

/* A saved, renamed, removed or purged domain, project, user, keypair, policy or resource group.
 * Takes its contents.
 */
void accounts_apply(struct core *core, struct event *e);

#endif
