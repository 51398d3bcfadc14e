/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_endpoint_list.h - which model services a GraphQL request sees, as endpoints
 *
 * Those that live are in memory, those that have ended in the store. Rows are in the request's arena.
 */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_LIST_H
#define AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_LIST_H

#include "manager/call/graphql/resolve.h"
#include "manager/serving/backendai_endpoint.h"
#include "store/model_service.h"

struct endpoint_rows {
    struct endpoint_row *items;
    uint32_t count;
};

/* A list, or the one of 'id'. Members that are NULL do not narrow it. */
struct endpoint_query {
    struct gql_call *call;
    const struct uuid *id, *project_id, *user_id;
    const char *domain;
    struct model_service_rows ended;
    void (*answer)(struct gql_call *call, const struct endpoint_rows *rows);
};

/* In the request's arena. */
struct endpoint_query *endpoint_query_new(struct gql_call *call);

/* Those that live: the newest first. */
struct endpoint_rows endpoint_collect(const struct endpoint_query *q);

/* Collect, after them those that have ended if asked to, and give them to 'answer', which fills the
 * results. Returns what the resolver returns.
 */
int endpoint_query_start(struct endpoint_query *q, bool with_ended);

/* The argument of this name as a UUID; NULL if it was not given. Global ids are fine. -EINVAL. */
int endpoint_arg_uuid(const struct gql_call *call, const char *name, const struct uuid **ret,
                      struct aq_error *err);

#endif
