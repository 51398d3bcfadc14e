/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - type tables
 *
 * One .graphql file is the schema. tools/graphql-compile turns it into static
 * tables at build time (graphql_compile in meson.build, see graphql.h).
 * Executor and introspection read nothing else. Everything here is constant
 * and may be shared by threads.
 */
#ifndef AQ_GRAPHQL_SCHEMA_H
#define AQ_GRAPHQL_SCHEMA_H

#include "base/error.h"
#include "base/strbuf.h"
#include "graphql/value.h"

enum gql_type_kind {
    GQL_TYPE_SCALAR,
    GQL_TYPE_OBJECT,
    GQL_TYPE_INTERFACE,
    GQL_TYPE_UNION,
    GQL_TYPE_ENUM,
    GQL_TYPE_INPUT,
};

/* Scalars whose input the engine reads itself. */
enum gql_scalar_kind {
    GQL_SCALAR_OTHER,
    GQL_SCALAR_INT,
    GQL_SCALAR_FLOAT,
    GQL_SCALAR_STRING,
    GQL_SCALAR_BOOLEAN,
    GQL_SCALAR_ID,
    GQL_SCALAR_BIGINT,
    GQL_SCALAR_DATETIME,
    GQL_SCALAR_JSONSTRING,
    GQL_SCALAR_UUID,
};

/* A type with its list and non-null wrappers: two bits each, the outermost
 * lowest; 0 ends. [Int!] is {Int, LIST | NON_NULL << 2}.
 */
#define GQL_WRAP_NON_NULL 1u
#define GQL_WRAP_LIST 2u
#define GQL_WRAPS_MAX 16

struct gql_ref {
    const struct gql_type *type;
    uint32_t wraps;
};

/* An argument or an input object's field. */
struct gql_input_def {
    const char *name, *description, *deprecated; /* NULL = none */
    struct gql_ref type;
    struct gql_value default_value; /* coerced; GQL_ABSENT = none */
    const char *default_text;       /* as introspection shows it */
};

struct gql_field_def {
    const char *name, *description, *deprecated;
    const struct gql_type *parent;
    struct gql_ref type;
    const struct gql_input_def *args;
    uint32_t arg_count;
    uint32_t id; /* index into the resolver table; object types only */
};

struct gql_enum_def {
    const char *name, *description, *deprecated;
};

/* What an array 'by_name' is for: positions in the order of their names. */
struct gql_type {
    uint8_t kind;   /* enum gql_type_kind */
    uint8_t scalar; /* enum gql_scalar_kind */
    bool one_of;
    uint32_t id; /* 1.. in the order of the schema */
    const char *name, *description, *specified_by;
    const struct gql_field_def *fields; /* object, interface */
    const uint16_t *fields_by_name;
    uint32_t field_count;
    const struct gql_input_def *inputs; /* input object */
    uint32_t input_count;
    const struct gql_enum_def *values; /* enum */
    uint32_t value_count;
    const struct gql_type *const *interfaces; /* object, interface */
    uint32_t interface_count;
    const struct gql_type *const *possible; /* interface, union: object types */
    uint32_t possible_count;
};

struct gql_directive_def {
    const char *name, *description;
    const struct gql_input_def *args;
    uint32_t arg_count;
    uint32_t locations;            /* bit = enum gql_location of ast.h */
    const uint8_t *location_order; /* as declared */
    uint32_t location_count;
    bool repeatable;
};

/* Fields that every query has, outside any type's list. */
enum gql_meta { GQL_META_TYPENAME, GQL_META_SCHEMA, GQL_META_TYPE, GQL_META_COUNT };

struct gql_schema {
    const char *description;
    const struct gql_type *const *types; /* id - 1 -> type, introspection's included */
    const uint16_t *types_by_name;
    uint32_t type_count;
    const struct gql_directive_def *directives;
    uint32_t directive_count;
    const struct gql_type *query, *mutation, *subscription; /* the latter two may be NULL */
    const struct gql_field_def *meta;                       /* enum gql_meta */
    uint32_t field_count;     /* fields of object types: the length of the resolver table */
    uint32_t all_field_count; /* with those of introspection, whose ids come after */
};

/* NULL if there is none. Fields by "name", never "Type.name". */
const struct gql_type *gql_type_find(const struct gql_schema *schema, const char *name, size_t len);
const struct gql_field_def *gql_field_find(const struct gql_type *type, const char *name,
                                           size_t len);
const struct gql_input_def *gql_input_find(const struct gql_input_def *defs, uint32_t count,
                                           const char *name, size_t len);
const struct gql_directive_def *gql_directive_find(const struct gql_schema *schema,
                                                   const char *name, size_t len);

/* Whether values of 'type' may be of the object (or interface) type 'other'. */
bool gql_type_is_subtype(const struct gql_type *other, const struct gql_type *type);

/* "[Int!]!" into 'out'. */
void gql_ref_print(struct gql_ref ref, struct strbuf *out);

static inline bool gql_ref_is_non_null(struct gql_ref ref)
{
    return (ref.wraps & 3) == GQL_WRAP_NON_NULL;
}

static inline bool gql_ref_is_list(struct gql_ref ref)
{
    return (ref.wraps & 3) == GQL_WRAP_LIST;
}

/* Without the outermost wrapper. */
static inline struct gql_ref gql_ref_inner(struct gql_ref ref)
{
    return (struct gql_ref){ ref.type, ref.wraps >> 2 };
}

static inline struct gql_ref gql_ref_nullable(struct gql_ref ref)
{
    return gql_ref_is_non_null(ref) ? gql_ref_inner(ref) : ref;
}

#endif
