/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - one value on its way into or out of a resolver
 *
 * Sixteen bytes, passed by value. Texts, lists and objects are borrowed: they
 * must live until the request is done (the request's arena is the place for
 * what is made on the way).
 */
#ifndef AQ_GRAPHQL_VALUE_H
#define AQ_GRAPHQL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

enum gql_kind {
    GQL_NULL = 0, /* so that zeroed memory is null */
    GQL_ABSENT,   /* arguments and input fields only: not given, no default */
    GQL_BOOL,
    GQL_INT,
    GQL_FLOAT,
    GQL_STRING, /* also UUID, DateTime, ID, ...: scalars are texts unless said otherwise */
    GQL_ENUM,   /* index into the enum type's values */
    GQL_LIST,
    GQL_INPUT, /* input object: one value for each field of its type, in that order */
    GQL_MAP,   /* members of a custom scalar that takes any JSON */
    GQL_OBJECT,
    GQL_ROWS,  /* list of objects of one type, as pointers; NULL elements are null */
    GQL_RAW,   /* text that already is one JSON value; output of custom scalars only */
    GQL_ERROR, /* a resolver's failure; text is the message */
};

struct gql_member;

struct gql_value {
    uint8_t kind;   /* enum gql_kind */
    uint32_t count; /* bytes of a text, elements of a list; GQL_OBJECT: type id or 0 */
    union {
        bool boolean;
        int64_t integer; /* GQL_INT, GQL_ENUM */
        double real;
        const char *text; /* GQL_STRING, GQL_RAW, GQL_ERROR; inputs are NUL-terminated */
        const struct gql_value *items; /* GQL_LIST, GQL_INPUT */
        const struct gql_member *members;
        const void *object;
        const void *const *rows;
    };
};

struct gql_member {
    const char *name;
    struct gql_value value;
};

static inline struct gql_value gql_null(void)
{
    return (struct gql_value){ .kind = GQL_NULL };
}

static inline struct gql_value gql_bool(bool value)
{
    return (struct gql_value){ .kind = GQL_BOOL, .boolean = value };
}

static inline struct gql_value gql_int(int64_t value)
{
    return (struct gql_value){ .kind = GQL_INT, .integer = value };
}

/* For Int, which has 32 bits: what is larger or smaller becomes the last number that has room. */
static inline struct gql_value gql_int_clamped(int64_t value)
{
    return gql_int(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

static inline struct gql_value gql_float(double value)
{
    return (struct gql_value){ .kind = GQL_FLOAT, .real = value };
}

static inline struct gql_value gql_enum(uint32_t index)
{
    return (struct gql_value){ .kind = GQL_ENUM, .integer = index };
}

static inline struct gql_value gql_textn(const char *text, size_t len)
{
    return (struct gql_value){ .kind = GQL_STRING, .count = (uint32_t)len, .text = text };
}

/* NULL gives null. */
static inline struct gql_value gql_text(const char *text)
{
    return text ? gql_textn(text, strlen(text)) : gql_null();
}

static inline struct gql_value gql_raw(const char *json, size_t len)
{
    return (struct gql_value){ .kind = GQL_RAW, .count = (uint32_t)len, .text = json };
}

/* An object of the field's declared object type; NULL gives null. */
static inline struct gql_value gql_object(const void *object)
{
    return (struct gql_value){ .kind = object ? GQL_OBJECT : GQL_NULL, .object = object };
}

/* An object where the schema says interface or union: 'type_id' names its own type. */
static inline struct gql_value gql_object_of(uint32_t type_id, const void *object)
{
    return (struct gql_value){ .kind = object ? GQL_OBJECT : GQL_NULL,
                               .count = type_id,
                               .object = object };
}

/* A list of values, e.g. from arena_array(call->arena, count, sizeof(struct gql_value)). */
static inline struct gql_value gql_list(const struct gql_value *items, uint32_t count)
{
    return (struct gql_value){ .kind = GQL_LIST, .count = count, .items = items };
}

/* A list of objects of the declared type: 'count' pointers, not copied. */
static inline struct gql_value gql_rows(const void *const *rows, uint32_t count)
{
    return (struct gql_value){ .kind = GQL_ROWS, .count = count, .rows = rows };
}

/* The same for an array of structs of 'size' bytes. */
struct gql_value gql_rows_of(struct arena *arena, const void *array, uint32_t count, size_t size);

/* A failure with a message, formatted into 'arena'. */
struct gql_value gql_error(struct arena *arena, const char *fmt, ...) AQ_PRINTF(2, 3);

static inline bool gql_is_given(struct gql_value value)
{
    return value.kind != GQL_ABSENT && value.kind != GQL_NULL;
}

#endif
