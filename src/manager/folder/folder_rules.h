/* SPDX-License-Identifier: Apache-2.0 */
/* folder_rules.h - which hosts may have whose folders, and how many and how large they are
 *
 * Domains, projects and keypair policies each may have a list of hosts with what may be done there;
 * a user has what any of the own gives. While none of these has a list, all hosts are allowed for
 * everything. Counts and sizes are limited by keypair policies and by the policies of users and
 * projects (owner_policies.h). One setting of the store, read at the start; loop's thread.
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_RULES_H
#define AQ_MANAGER_FOLDER_FOLDER_RULES_H

#include "manager/folder/folder.h"

int folder_rules_load(struct api *api, struct aq_error *err);

/* The rules {"allowed_vfolder_hosts": {HOST: [PERMISSION, ...]}, "max_vfolder_count": N,
 * "max_vfolder_size": N} of a domain or policy by name, a project by id; members that were not set
 * are not there. Borrowed, NULL = none.
 */
const json_t *folder_rules_get(const struct api *api, enum folder_rules_kind kind,
                               const char *name);

/* Whether none of the lists that count there says anything. */
bool folder_rules_are_open(const struct api *api, const struct folder_place *place);

struct folder_limits {
    int64_t folders, bytes; /* 0 = no limit */
};

struct folder_limits folder_rules_limits(const struct api *api, const struct folder_place *place);

#endif
