/* SPDX-License-Identifier: Apache-2.0 */
/* ast.h - a parsed document
 *
 * Everything lies in the document's arena and is linked by 'next' in the
 * order of the text. Names are interned: one struct symbol for each distinct
 * name of a document, so names are equal when pointers are. Places are byte
 * offsets into the text. Validation adds what the schema says (the members
 * marked "validated"); afterwards a document is constant.
 */
#ifndef AQ_GRAPHQL_AST_H
#define AQ_GRAPHQL_AST_H

#include "base/arena.h"
#include "graphql/schema.h"

struct ast_fragment;

struct symbol {
    uint32_t len, index;           /* index: 0.. in the order of first appearance */
    struct ast_fragment *fragment; /* the (last) fragment of this name, or NULL */
    char text[];                   /* NUL-terminated */
};

struct ast_name {
    const struct symbol *symbol; /* NULL = not there */
    uint32_t at;
};

enum ast_value_kind {
    AST_VARIABLE,
    AST_INT,
    AST_FLOAT,
    AST_STRING,
    AST_BLOCK_STRING,
    AST_BOOLEAN,
    AST_NULL,
    AST_ENUM,
    AST_LIST,
    AST_OBJECT,
};

struct ast_value {
    uint8_t kind; /* enum ast_value_kind */
    bool boolean;
    uint32_t at, count; /* count: bytes of the text, items, or fields */
    union {
        const char *text;            /* int, float, strings: NUL-terminated */
        const struct symbol *symbol; /* variable, enum */
        struct ast_value *items;
        struct ast_argument *fields;
    };
    struct ast_value *next;
};

/* An argument, or a field of an object value. */
struct ast_argument {
    struct ast_name name;
    struct ast_value *value;
    const struct gql_input_def *def; /* validated; NULL = unknown or of a custom scalar */
    struct ast_argument *next;
};

struct ast_directive {
    struct ast_name name; /* name.at is the name's place, 'at' that of the @ */
    uint32_t at;
    struct ast_argument *args;
    const struct gql_directive_def *def; /* validated */
    struct ast_directive *next;
};

struct ast_type {
    struct ast_name name;
    uint32_t at, wraps; /* wraps as in struct gql_ref */
};

struct ast_set {
    uint32_t at, count, index; /* index: 0.. among the document's sets */
    struct ast_selection *first;
};

enum ast_selection_kind { AST_FIELD, AST_SPREAD, AST_INLINE };

struct ast_selection {
    uint8_t kind; /* enum ast_selection_kind */
    bool has_alias;
    uint32_t at;
    struct ast_name key;  /* field: alias or name */
    struct ast_name name; /* field, spread; inline: type condition, if any */
    struct ast_argument *args;
    struct ast_directive *directives;
    struct ast_set *set;             /* NULL = none */
    const struct gql_field_def *def; /* field, validated */
    const struct gql_type *type;     /* validated; field: parent type; inline: its type */
    struct ast_selection *next;
};

enum ast_definition_kind {
    AST_QUERY,
    AST_MUTATION,
    AST_SUBSCRIPTION,
    AST_FRAGMENT,
    AST_TYPE_SYSTEM, /* of a type, a directive or the schema: only its name is kept */
};

struct ast_variable {
    struct ast_name name; /* name.at: the name, 'at': the $ */
    uint32_t at;
    struct ast_type type;
    struct ast_value *default_value;
    struct ast_directive *directives;
    struct gql_ref ref; /* validated; type NULL = unknown */
    struct ast_variable *next;
};

struct ast_operation {
    struct ast_variable *variables;
    const struct gql_type *root; /* validated; NULL = the schema has none */
};

struct ast_fragment {
    struct ast_name condition;
    const struct gql_type *type; /* validated; NULL = unknown or not composite */
    struct ast_definition *definition;
    uint32_t index; /* 0.. among the document's fragments */
};

/* Directive locations: also bits of gql_directive_def.locations. */
enum gql_location {
    LOCATION_QUERY,
    LOCATION_MUTATION,
    LOCATION_SUBSCRIPTION,
    LOCATION_FIELD,
    LOCATION_FRAGMENT_DEFINITION,
    LOCATION_FRAGMENT_SPREAD,
    LOCATION_INLINE_FRAGMENT,
    LOCATION_VARIABLE_DEFINITION,
    LOCATION_SCHEMA,
    LOCATION_SCALAR,
    LOCATION_OBJECT,
    LOCATION_FIELD_DEFINITION,
    LOCATION_ARGUMENT_DEFINITION,
    LOCATION_INTERFACE,
    LOCATION_UNION,
    LOCATION_ENUM,
    LOCATION_ENUM_VALUE,
    LOCATION_INPUT_OBJECT,
    LOCATION_INPUT_FIELD_DEFINITION,
    LOCATION_COUNT,
};

struct ast_definition {
    uint8_t kind;         /* enum ast_definition_kind */
    bool extends;         /* "extend ..." */
    uint32_t at, index;   /* index: 0.. in the order of the text */
    struct ast_name name; /* symbol NULL: anonymous operation, schema */
    const struct ast_value *description;
    struct ast_directive *directives;
    struct ast_set *set; /* operation, fragment */
    union {
        struct ast_operation operation;
        struct ast_fragment fragment;
    };
    struct ast_definition *next;
};

static inline bool ast_is_operation(const struct ast_definition *def)
{
    return def->kind <= AST_SUBSCRIPTION;
}

struct gql_document {
    struct arena arena;
    const char *text; /* a copy, NUL-terminated */
    uint32_t len;
    uint32_t symbol_count, set_count, definition_count, fragment_count, operation_count;
    struct ast_definition *first;
    unsigned refs;
    uint64_t hash;
    struct gql_document *newer, *older; /* in the cache */
};

extern const char *const gql_location_names[LOCATION_COUNT];

#endif
