/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - how much work a document asks for, fragments spread */
#ifndef AQ_GRAPHQL_LIMITS_H
#define AQ_GRAPHQL_LIMITS_H

#include "graphql/request.h"

/* Depth, fields, aliases and directives of each operation. The document is
 * annotated and without circles. False with an error.
 */
bool limits_check_size(const struct gql_document *doc, const struct gql_limits *limits,
                       struct errors *errors);

/* The cost of the request's operation, now that its variables are known. */
bool limits_check_cost(struct gql_request *r);

#endif
