/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - hosts and limits of folders: of domains, projects and keypair policies */
#ifndef AQ_MANAGER_FOLDER_FOLDER_H
#define AQ_MANAGER_FOLDER_FOLDER_H

#include "manager/call/api.h"
#include "model/folder.h"

struct gql_call;
struct gql_get;
struct gql_value;

enum folder_rules_kind { FOLDER_RULES_DOMAIN, FOLDER_RULES_PROJECT, FOLDER_RULES_POLICY };

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

/* ---- what somebody may do ---- */

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

/* ---- files ---- */

/* 'text' is borrowed for the call; NULL: 'err' says why, with the kinds of requests on folders. */
typedef void folder_text_fn(void *data, const char *text, size_t len, const struct aq_error *err);

/* Read a small file of a folder on this host (storage/folder.h: folder_read()) for the user 'who',
 * whose right to the folder was checked. 'done' is called once and later, unless the manager ends
 * before; the arena lives as long. -EHOSTUNREACH, -EAGAIN as of storage_ask().
 */
int folder_read_text(const struct api *api, const char *host, const struct uuid *folder,
                     const struct uuid *who, const char *path, struct arena *arena,
                     folder_text_fn *done, void *data, struct aq_error *err);

/* False: no folder's name begins with a dot, so no session mounts one without being asked to. */
bool folder_mounts_automatic(const struct api *api);

/* ---- in GraphQL ---- */

/* What 'props' of a mutation say of folders, for folder_rules_change(): the caller's, NULL =
 * nothing. -EINVAL names the member.
 */
int folder_rule_read(const struct gql_call *call, json_t **ret, struct aq_error *err);

/* The member 'allowedVfolderHosts' of the argument 'input', likewise. */
json_t *folder_rule_read_entries(const struct gql_call *call);

/* As JSONString. */
struct gql_value folder_rule_get_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                       const char *name);
/* The same as a list of VFolderHostPermissionEntry. */
struct gql_value folder_rule_list_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                        const char *name);
/* A limit, 0 = none. */
struct gql_value folder_rule_get_limit(struct gql_get *get, const char *policy, const char *member);

#endif
