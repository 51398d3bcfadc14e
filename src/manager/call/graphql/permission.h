/* SPDX-License-Identifier: Apache-2.0 */
/* permission.h - what the caller may do with a node, in Backend.AI's words
 *
 * Each word stands for a route of the manager: who may send that may do it.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_PERMISSION_H
#define AQ_MANAGER_CALL_GRAPHQL_PERMISSION_H

#include "manager/call/graphql/resolve.h"

/* Of whom sees the node, whether it may do so with this one. 'groups' are the resource groups
 * that the caller may use.
 */
typedef bool permission_fn(const struct gql_context *context, const struct store_page *groups,
                           const void *row);

struct permission {
    const char *name;
    const char *path; /* of the route; NULL = seeing the node is enough, as for GET */
    enum method method;
    permission_fn *may; /* NULL = with all that it sees */
    bool is_never;      /* a word that clients know, for what is not served */
};

struct permission_list {
    const struct permission *items;
    size_t count;
    bool needs_groups; /* of 'may' */
};

extern const struct permission_list agent_permissions, domain_permissions, group_permissions,
    image_permissions, session_permissions, folder_permissions;

/* For a field 'permissions'. */
int permission_resolve(struct gql_call *call, const struct permission_list *list);

/* Whether there may be rows of which the caller may do 'name' (NULL = was not given). -EINVAL:
 * there is no such word.
 */
int permission_check(const struct gql_context *context, const struct permission_list *list,
                     const char *name, bool *ret_may, struct aq_error *err);

/* Whether this user may change the session's name and priority. */
bool gql_session_is_modified_by(const struct principal *who, const struct session *s);

#endif
