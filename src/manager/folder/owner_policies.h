/* SPDX-License-Identifier: Apache-2.0 */
/* owner_policies.h - Backend.AI's policies of users and of projects
 *
 * They limit folders (folder_rules.h) and replicas of model services; what else they have (images
 * made from sessions, networks of users) does not exist here, so it is kept and nothing looks at it. All
 * users and projects have 'default'. One setting in the store for each kind, read at the start.
 */
#ifndef AQ_MANAGER_FOLDER_OWNER_POLICIES_H
#define AQ_MANAGER_FOLDER_OWNER_POLICIES_H

#include "manager/call/api.h"

/* Whose policies, where they are not those of keypairs. */
enum owner_policy_kind { OWNER_POLICY_USER, OWNER_POLICY_PROJECT, OWNER_POLICY_KINDS };

#define OWNER_POLICIES_MAX 100
#define OWNER_POLICY_NAME_MAX 64
#define OWNER_POLICY_DEFAULT "default"

int owner_policies_load(struct api *api, struct aq_error *err);

/* When the first domain was made, and 'default' with it; wall clock. */
int64_t owner_policies_since(const struct api *api);

/* {"NAME": {"created_usec": N, MEMBER: N, ...}} of all that were made or changed; borrowed until
 * the loop runs again.
 */
const json_t *owner_policies_all(const struct api *api, enum owner_policy_kind kind);

/* Make ('is_new') or change the policy: 'members' are integers, those that are not given stay;
 * NULL removes it. 'done' as object_setting_change() has it. Refused at once: -EINVAL with "name"
 * or a member as field, -ENOENT.
 */
int owner_policies_change(struct api *api, enum owner_policy_kind kind, const char *name,
                          bool is_new, const json_t *members, const struct audit_who *by,
                          store_done_fn done, void *data, struct aq_error *err);

#endif
