/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_endpoint_text.h - what the types of model services share in GraphQL */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_TEXT_H
#define AQ_MANAGER_SERVING_BACKENDAI_ENDPOINT_TEXT_H

#include "manager/call/graphql/resolve.h"

/* A member that is a text, and "" if it is not known. */
struct gql_value endpoint_get_text(struct gql_get *get, const void *parent);
/* clang-format off */
#define ENDPOINT_TEXT_AT(type, member)                                                             \
    { .how = GQL_HOW_GET, .offset = (uint32_t)offsetof(type, member), .get = endpoint_get_text }
/* clang-format on */

/* An InferenceSessionError with one reason; 'session_id' NULL = of no single session. */
struct gql_value endpoint_make_error(struct arena *arena, const struct uuid *session_id,
                                     const char *name, const char *text);

#endif
