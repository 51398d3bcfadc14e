/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - values and strings as GraphQL text, in the form of graphql-js */
#ifndef AQ_GRAPHQL_PRINT_H
#define AQ_GRAPHQL_PRINT_H

#include "base/strbuf.h"
#include "graphql/ast.h"

/* "..." with escapes */
void print_string(const char *text, size_t len, struct strbuf *out);

/* A literal. */
void print_value(const struct ast_value *value, struct strbuf *out);

/* A coerced value of a type, as introspection shows default values. */
void print_default(struct gql_value value, struct gql_ref type, struct strbuf *out);

/* """...""" */
void print_block_string(const char *text, size_t len, struct strbuf *out);
bool print_fits_block_string(const char *text, size_t len);

#endif
