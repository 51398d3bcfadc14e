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

#include "manager/call/api.h"
#include "model/folder.h"

enum folder_rules_kind { FOLDER_RULES_DOMAIN, FOLDER_RULES_PROJECT, FOLDER_RULES_POLICY };

int folder_rules_load(struct api *api, struct aq_error *err);

/* The rules {"allowed_vfolder_hosts": {HOST: [PERMISSION, ...]}, "max_vfolder_count": N,
 * "max_vfolder_size": N} of a domain or policy by name, a project by id; members that were not set
 * are not there. Borrowed, NULL = none.
 */
const json_t *folder_rules_get(const struct api *api, enum folder_rules_kind kind,
                               const char *name);

/* Set the members of 'rules', which is taken. 'done' once it is durable; -EINVAL names a member. */
int folder_rules_change(struct api *api, enum folder_rules_kind kind, const char *name,
                        json_t *rules, const struct audit_who *by, store_done_fn done, void *data,
                        struct aq_error *err);

/* The rules of a domain under another name. */
struct folder_rules_rename {
    const char *from, *to; /* borrowed */
    json_t *fresh;         /* all rules afterwards; NULL = nothing has changed */
};

/* event.rows_added.write of a struct folder_rules_rename. */
int folder_rules_rename(struct store_tx *tx, void *data, struct aq_error *err);
/* It is durable, or was not written (r < 0): 'fresh' is taken. Loop's thread. */
void folder_rules_renamed(struct api *api, struct folder_rules_rename *rename, int r);

/* Who asks, and whose folder it is, or will be: the project's (NULL = a user's). */
struct folder_place {
    const struct principal *who;
    const struct project *project;
    bool is_guest; /* the user is another one, whose keypairs are not known */
};

/* What may be done on a host: "create-vfolder", "upload-file", "download-file" and other words of
 * Backend.AI.
 */
bool folder_rules_allow(const struct api *api, const struct folder_place *place, const char *host,
                        const char *permission);

/* Whether none of the lists that count there says anything. */
bool folder_rules_are_open(const struct api *api, const struct folder_place *place);

struct folder_limits {
    int64_t folders, bytes; /* 0 = no limit */
};

struct folder_limits folder_rules_limits(const struct api *api, const struct folder_place *place);

/* False: no folder's name begins with a dot, so no session mounts one without being asked to. */
bool folder_mounts_automatic(const struct api *api);

#endif
