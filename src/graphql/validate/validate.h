/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h - a document against a schema: every rule of the specification
 * for executable documents, with the messages, places and order of graphql-js
 */
#ifndef AQ_GRAPHQL_VALIDATE_VALIDATE_H
#define AQ_GRAPHQL_VALIDATE_VALIDATE_H

#include "graphql/annotate.h"
#include "graphql/coerce.h"
#include "graphql/errors.h"

/* Annotate and check. True if there is nothing to complain about; then the
 * document can be executed, and is never changed again. 'scalars' by type id
 * - 1. 'errors->arena' is also for what is needed on the way.
 */
bool document_validate(struct gql_document *doc, const struct gql_conf *conf,
                       const gql_scalar_fn *scalars, struct errors *errors) AQ_UNTRUSTED;

#endif
