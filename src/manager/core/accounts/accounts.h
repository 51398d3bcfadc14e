/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - domains, projects, users, keypairs, policies and resource groups in memory */
#ifndef AQ_MANAGER_CORE_ACCOUNTS_ACCOUNTS_H
#define AQ_MANAGER_CORE_ACCOUNTS_ACCOUNTS_H

#include <stdbool.h>

struct core;
struct event;

/* A saved, renamed, removed or purged domain, project, user, keypair, policy or resource group. Takes its contents. */
void accounts_apply(struct core *core, struct event *e);

/* Does a user or keypair that is to be saved lose its logins by browsers: blocked, or with another
 * password or secret? Asked before the row is taken into memory.
 */
bool accounts_ends_logins(const struct core *core, const struct event *e);

#endif
