/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - a request for a session, checked, becomes a session */
#ifndef AQ_MANAGER_CORE_SESSION_REQUEST_H
#define AQ_MANAGER_CORE_SESSION_REQUEST_H

#include <stdbool.h>

struct aq_error;
struct core;
struct session;
struct session_request;
struct user;
struct uuid;

/* Check 'req' against memory and build what it asks for: everything but the
 * resource group and dependencies. *ret is zeroed by the caller and done with
 * session_done() in any case.
 */
int request_build(const struct core *core, const struct session_request *req, struct session *ret,
                  struct aq_error *err);

/* May the user make sessions of the project? Administrators may of all in their domain. */
bool request_is_member(const struct user *u, const struct uuid *group);

/* The group that it names, else that of the agents that it names; NULL = any. */
const char *request_resource_group(const struct core *core, const struct session_request *req);

#endif
