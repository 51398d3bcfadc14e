/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.h - what the schema says about each part of a document
 *
 * Fills the members marked "validated" in ast.h, and notes where variables
 * are used. Nothing is refused here; what is unknown stays NULL.
 */
#ifndef AQ_GRAPHQL_ANNOTATE_H
#define AQ_GRAPHQL_ANNOTATE_H

#include "graphql/ast.h"

/* One use of a variable, in the order of the text. */
struct variable_usage {
    const struct ast_value *value;
    struct gql_ref type;           /* that is expected; type NULL = unknown */
    bool has_default;              /* the place has a default value */
    const struct gql_type *parent; /* the type of the value around it, NULL = none */
    struct variable_usage *next;
};

/* 'usages' gets one list for each definition of the document, by index, in
 * 'arena'.
 */
void document_annotate(struct gql_document *doc, const struct gql_schema *schema,
                       struct arena *arena, struct variable_usage **usages);

/* A field of a composite type, the meta fields included. NULL 'type' is fine. */
const struct gql_field_def *schema_field(const struct gql_schema *schema,
                                         const struct gql_type *type, const struct symbol *name);

static inline bool type_is_composite(const struct gql_type *type)
{
    return type->kind == GQL_TYPE_OBJECT || type->kind == GQL_TYPE_INTERFACE
           || type->kind == GQL_TYPE_UNION;
}

static inline bool type_is_leaf(const struct gql_type *type)
{
    return type->kind == GQL_TYPE_SCALAR || type->kind == GQL_TYPE_ENUM;
}

/* The type of a literal inside a list that stands where 'type' is expected. */
static inline struct gql_ref ref_item(struct gql_ref type)
{
    struct gql_ref list = gql_ref_nullable(type);

    return gql_ref_is_list(list) ? gql_ref_inner(list) : list;
}

#endif
