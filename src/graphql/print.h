/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - values as GraphQL text, in the form of graphql-js */
#ifndef AQ_GRAPHQL_PRINT_H
#define AQ_GRAPHQL_PRINT_H

#include "base/strbuf.h"
#include "graphql/ast.h"

/* A literal. */
void print_value(const struct ast_value *value, struct strbuf *out);

#endif
