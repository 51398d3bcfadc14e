/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - the rules of validation, and what they share
 *
 * validate.c walks over a document once and calls the rules at each part, in
 * the order of graphql-js, so that errors come in its order. After v->stop
 * nothing more is reported.
 */
#ifndef AQ_GRAPHQL_VALIDATE_RULES_H
#define AQ_GRAPHQL_VALIDATE_RULES_H

#include "graphql/annotate.h"
#include "graphql/coerce.h"
#include "graphql/errors.h"

#define VALIDATION_ERRORS_MAX 100

/* Fragments that spread each other, and fields in each other, are followed
 * by recursion: no deeper than this.
 */
#define RULE_DEPTH_MAX 2000

struct spreads {
    const struct ast_selection **items;
    uint32_t count;
    bool known;
};

struct validator {
    const struct gql_document *doc;
    const struct gql_schema *schema;
    const gql_scalar_fn *scalars;
    struct errors *errors;
    struct arena *arena;
    uint64_t work_left;
    bool stop;
    struct variable_usage **usages;          /* by definition */
    struct spreads *spreads;                 /* by definition */
    const struct ast_definition *definition; /* being walked over */
    const struct ast_definition *operation;  /* the last one walked over */

    /* scratch, by symbol */
    const struct ast_name **named_operations, **named_fragments;
    const struct ast_variable **variables; /* of the operation at hand */
    uint32_t *marks, mark;

    struct cycles *cycles;
    struct overlap *overlap;
    struct introspection_depth *introspection;
};

/* Scratch memory. The last one of a validation that is over its limit sets v->stop. */
void *rule_alloc(struct validator *v, size_t count, size_t size);

/* Report at a place. The error, for further places, or NULL after v->stop. */
struct error *rule_error(struct validator *v, uint32_t at, const char *fmt, ...) AQ_PRINTF(3, 4);
struct error *rule_error_text(struct validator *v, uint32_t at, const struct strbuf *text);
void rule_error_at(struct validator *v, struct error *error, uint32_t at);

/* Count steps. False, with an error at that place, when there were too many. */
bool rule_spend(struct validator *v, uint64_t steps, uint32_t at);

/* A fresh value for v->marks. */
uint32_t rule_mark(struct validator *v);

/* operations.c */
void rule_unique_operation_name(struct validator *v, const struct ast_definition *def);
void rule_lone_anonymous_operation(struct validator *v, const struct ast_definition *def);
void rule_single_field_subscription(struct validator *v, const struct ast_definition *def);
void rule_introspection_depth(struct validator *v, const struct ast_selection *field);

/* fields.c */
void rule_known_type(struct validator *v, const struct ast_name *name);
void rule_scalar_leaf(struct validator *v, const struct ast_selection *field);
void rule_known_field(struct validator *v, const struct ast_selection *field);
void rule_known_argument(struct validator *v, const struct ast_selection *field,
                         const struct ast_argument *arg);
void rule_unique_arguments(struct validator *v, const struct ast_argument *args);
void rule_required_arguments(struct validator *v, const struct ast_selection *field);

/* values.c: a value and all in it; 'check' false leaves types alone. */
void rule_value(struct validator *v, const struct ast_value *value, struct gql_ref type,
                bool check);

/* fragments.c */
void rule_inline_on_composite(struct validator *v, const struct ast_selection *s);
void rule_fragment_on_composite(struct validator *v, const struct ast_definition *def);
void rule_unique_fragment_name(struct validator *v, const struct ast_definition *def);
void rule_known_fragment(struct validator *v, const struct ast_selection *spread);
void rule_possible_spread(struct validator *v, const struct ast_selection *s,
                          const struct gql_type *parent);
void rule_no_cycles(struct validator *v, const struct ast_definition *def);
void rule_no_unused_fragments(struct validator *v);

/* All spreads in a definition, at any depth, in graphql-js's order. */
const struct spreads *definition_spreads(struct validator *v, const struct ast_definition *def);

/* The fragments that operations reach: marks their names with v->mark. With
 * 'only' that operation's, else all's. Gives them in order; NULL after v->stop.
 */
const struct ast_fragment **reached_fragments(struct validator *v,
                                              const struct ast_definition *only,
                                              uint32_t *ret_count);

/* variables.c */
void rule_variable_is_input(struct validator *v, const struct ast_variable *variable);
void rule_unique_variables(struct validator *v, const struct ast_definition *def);
void rule_variable_usages(struct validator *v, const struct ast_definition *def);

/* directives.c */
void rule_unique_directives(struct validator *v, const struct ast_directive *directives);
void rule_known_directive(struct validator *v, const struct ast_directive *directive,
                          enum gql_location location);
void rule_directive_arguments(struct validator *v, const struct ast_directive *directive);
void rule_directive_required(struct validator *v, const struct ast_directive *directive);

/* overlap.c */
void rule_overlapping_fields(struct validator *v, const struct ast_set *set,
                             const struct gql_type *parent);
void overlap_done(struct validator *v);

static inline bool ref_is_input(struct gql_ref ref)
{
    return ref.type
           && (ref.type->kind == GQL_TYPE_INPUT || ref.type->kind == GQL_TYPE_SCALAR
               || ref.type->kind == GQL_TYPE_ENUM);
}

static inline bool input_is_required(const struct gql_input_def *def)
{
    return gql_ref_is_non_null(def->type) && def->default_value.kind == GQL_ABSENT;
}

#endif
