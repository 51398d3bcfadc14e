/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_access.h - which domains, projects and keypairs may use a resource group */
#ifndef AQ_STORE_RESOURCE_GROUP_ACCESS_H
#define AQ_STORE_RESOURCE_GROUP_ACCESS_H

#include "store/store.h"

/* Let a domain (name), project (id) or keypair (access key) use a resource
 * group. Saying it twice is fine. -EBUSY: store_check_domain().
 */
enum allow_kind { ALLOW_DOMAIN, ALLOW_PROJECT, ALLOW_KEYPAIR };
int resource_group_allow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                         const char *whom, struct aq_error *err);
/* May it, by what was said of itself? 1 or 0. */
int resource_group_is_allowed(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                              const char *whom, struct aq_error *err);
/* Take that back; with NULL for all resource groups. Also fine if it was not so. */
int resource_group_disallow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                            const char *whom, struct aq_error *err);

#endif
