/* SPDX-License-Identifier: Apache-2.0 */
/* coerce.h - literals and JSON into values of a type
 *
 * By the rules of graphql-js: a single value is a list of one where a list is
 * due, defaults fill what is absent, and nothing is converted silently.
 */
#ifndef AQ_GRAPHQL_COERCE_H
#define AQ_GRAPHQL_COERCE_H

#include <jansson.h>

#include "graphql/errors.h"
#include "graphql/graphql.h"

struct coerce {
    struct arena *arena;
    const gql_scalar_fn *scalars;      /* by type id - 1 */
    const struct gql_value *variables; /* by symbol index; NULL = there are none */
};

/* The function that reads a scalar's input where the engine knows it by
 * name; NULL = every value as it is.
 */
gql_scalar_fn coerce_builtin(enum gql_scalar_kind kind);

/* A literal that validation has accepted.
 * False if it has no value of that type (a variable that was not given, or
 * anything that validation refuses).
 */
bool coerce_literal(struct coerce *c, const struct ast_value *value, struct gql_ref type,
                    struct gql_value *ret);

/* A literal as a scalar or enum. False if it is none: then 'message' (empty
 * at first) says why if there is more to say, and *ret_whole whether that is
 * the whole error or only its reason.
 */
bool coerce_leaf_literal(struct coerce *c, const struct ast_value *value,
                         const struct gql_type *type, struct gql_value *ret, struct strbuf *message,
                         bool *ret_whole);

/* Variables of an operation: values by symbol index ('count' of them, all
 * GQL_ABSENT at first). 'json' is an object or NULL. Errors are added. Ends early once
 * the arena is over its limit.
 */
void coerce_variables(struct coerce *c, const struct ast_variable *variables, const json_t *json,
                      struct gql_value *values, struct errors *errors);

/* The arguments of a field or directive in the order of 'defs'. False after
 * one error, whose message is in 'message' and whose place is *ret_at.
 */
bool coerce_arguments(struct coerce *c, const struct gql_input_def *defs, uint32_t count,
                      const struct ast_argument *args, uint32_t at, struct gql_value *ret,
                      struct strbuf *message, uint32_t *ret_at);

#endif
