/* SPDX-License-Identifier: Apache-2.0 */
/* folder_rule_gql.h - allowed_vfolder_hosts and limits of folders, as members of domains, projects and
 * keypair policies
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_RULE_GQL_H
#define AQ_MANAGER_FOLDER_FOLDER_RULE_GQL_H

#include "manager/call/graphql/mutation.h"
#include "manager/folder/folder_rules.h"

/* What 'props' of a mutation say of folders, for folder_rules_change(): the caller's, NULL =
 * nothing. -EINVAL names the member.
 */
int folder_rule_read(const struct gql_call *call, json_t **ret, struct aq_error *err);

/* The member 'allowedVfolderHosts' of the argument 'input', likewise; NULL = out of memory. */
json_t *folder_rule_read_entries(const struct gql_call *call);

/* As JSONString. */
struct gql_value folder_rule_get_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                       const char *name);
/* The same as a list of struct folder_rule_host. */
struct folder_rule_host {
    const char *name;
    struct gql_value permissions; /* list of texts */
};
struct gql_value folder_rule_list_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                        const char *name);
/* A limit, 0 = none. */
struct gql_value folder_rule_get_limit(struct gql_get *get, const char *policy, const char *member);

#endif
