/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_gql.h - ComputeContainer: a kernel and the session it belongs to */
#ifndef AQ_MANAGER_SESSION_KERNEL_GQL_H
#define AQ_MANAGER_SESSION_KERNEL_GQL_H

#include "manager/call/graphql/resolve.h"
#include "manager/session/session.h"

/* The kernels of a session's row as a list. */
struct gql_value gql_containers(struct arena *arena, const struct session_row *session);

/* The same as the connection that the call asks for. */
struct gql_value gql_kernel_nodes(struct gql_call *call, const struct session_row *session);

#endif
