/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.h - where the values of fields come from
 *
 * A table with one entry for each field of an object type, by the ids of the
 * generated header. An entry is a function that answers for all objects at
 * once, now or later (GQL_CALL), a getter for one object (GQL_GET), or the
 * place of a struct's member.
 *
 * Resolvers allocate from the request's arena and check nothing: the engine ends a request that is
 * over gql_limits.memory, and looks before each call, getter, object and field, and before it
 * allocates for all objects at a place. So a request exceeds its limit by what one call allocates
 * at most, and by what the calls do that have not answered by then. A resolver whose allocation
 * does not follow from its cost and the number of its parents (a text of the client taken apart,
 * rows that no argument bounds) asks arena_has_room() first, or arena_is_over() between parents,
 * and leaves the other results null.
 */
#ifndef AQ_GRAPHQL_RESOLVER_H
#define AQ_GRAPHQL_RESOLVER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/uuid.h"
#include "graphql/schema.h"
#include "graphql/value.h"

enum { GQL_DONE = 0, GQL_LATER = 1 };

/* One field for all objects at one place of one request. */
struct gql_call {
    void *context;                     /* the request's */
    const struct gql_field_def *field; /* which field this is */
    const void *const *parents;        /* 'count' objects of the parent type */
    uint32_t count;
    const struct gql_value *args; /* coerced, in the schema's order; GQL_ABSENT = not given */
    struct gql_value *results;    /* to be set: one for each parent; null at first */
    struct arena *arena;          /* lives as long as the request */
};

/* Fill call->results and return GQL_DONE; or return GQL_LATER, fill them
 * later and then call gql_call_done(), from the same thread, exactly once.
 */
typedef int (*gql_call_fn)(struct gql_call *call);
void gql_call_done(struct gql_call *call);

/* The same error for every parent. Returns GQL_DONE. */
int gql_call_fail(struct gql_call *call, const char *fmt, ...) AQ_PRINTF(2, 3);

/* Whether the query asks for the field called 'name' below this one. */
bool gql_call_selects(const struct gql_call *call, const char *name);

struct gql_get {
    void *context;
    const struct gql_field_def *field;
    const struct gql_value *args;
    struct arena *arena;
    uint32_t offset;  /* the resolver's */
    char scratch[64]; /* for a result's text; valid until the next getter */
};

/* The value of one object's field. Must not wait; may be called again for the same object. */
typedef struct gql_value (*gql_get_fn)(struct gql_get *get, const void *parent);

enum gql_how {
    GQL_HOW_NONE, /* no resolver: gql_engine_new() refuses */
    GQL_HOW_CALL,
    GQL_HOW_GET,
    GQL_HOW_CONST,  /* 'value' for every object; all-zero is null */
    GQL_HOW_SELF,   /* the parent itself, or a part of its struct, is the object */
    GQL_HOW_TEXT,   /* const char *, NULL = null */
    GQL_HOW_CHARS,  /* char[], NUL-terminated */
    GQL_HOW_BOOL,   /* bool */
    GQL_HOW_INT32,  /* int32_t */
    GQL_HOW_UINT32, /* uint32_t */
    GQL_HOW_INT64,  /* int64_t; not of an Int, which has 32 bits: gql_engine_new() refuses */
    GQL_HOW_COUNT,  /* int64_t, as gql_int_clamped() */
    GQL_HOW_ENUM,   /* int, index into the enum's values */
    GQL_HOW_UUID,   /* struct uuid, nil = null */
    GQL_HOW_TIME,   /* int64_t wall-clock microseconds, 0 = null, as ISO 8601 */
    GQL_HOW_OBJECT, /* pointer to an object of the declared type */
    GQL_HOW_VALUE,  /* struct gql_value */
};

struct gql_resolver {
    enum gql_how how;
    uint32_t offset; /* of the member in the parent's struct */
    uint32_t cost;   /* for gql_limits.cost; 0 counts as 1 */
    uint32_t rows;   /* the length of a list that no argument bounds, for the cost; 0 counts as 1 */
    bool is_short;   /* no longer than that, whatever its arguments say */
    union {
        gql_call_fn call;
        gql_get_fn get;
        struct gql_value value;
    };
};

/* What a value is reckoned for: a text that may be long, one that is made from others. */
#define GQL_COST_TEXT 20
#define GQL_COST_MADE 5

#define GQL_AT(what, type, member)                                \
    {                                                             \
        .how = (what), .offset = (uint32_t)offsetof(type, member) \
    }
#define GQL_CALL(fn)                      \
    {                                     \
        .how = GQL_HOW_CALL, .call = (fn) \
    }
/* A call that is dear, or gives a list that no argument bounds. */
#define GQL_CALL_COST(fn, cost_, rows_)                                     \
    {                                                                       \
        .how = GQL_HOW_CALL, .cost = (cost_), .rows = (rows_), .call = (fn) \
    }
/* One whose list is short: an argument 'limit' that is above what there can be costs nothing. */
#define GQL_CALL_SHORT(fn, cost_, rows_)                                                      \
    {                                                                                         \
        .how = GQL_HOW_CALL, .cost = (cost_), .rows = (rows_), .is_short = true, .call = (fn) \
    }
#define GQL_GET_COST(fn, cost_)                          \
    {                                                    \
        .how = GQL_HOW_GET, .cost = (cost_), .get = (fn) \
    }
#define GQL_GET(fn)                     \
    {                                   \
        .how = GQL_HOW_GET, .get = (fn) \
    }
#define GQL_ALWAYS_NULL      \
    {                        \
        .how = GQL_HOW_CONST \
    }
#define GQL_SELF            \
    {                       \
        .how = GQL_HOW_SELF \
    }
#define GQL_PART_AT(type, member) GQL_AT(GQL_HOW_SELF, type, member)
#define GQL_TEXT_AT(type, member) GQL_AT(GQL_HOW_TEXT, type, member)
#define GQL_CHARS_AT(type, member) GQL_AT(GQL_HOW_CHARS, type, member)
#define GQL_BOOL_AT(type, member) GQL_AT(GQL_HOW_BOOL, type, member)
#define GQL_INT32_AT(type, member) GQL_AT(GQL_HOW_INT32, type, member)
#define GQL_UINT32_AT(type, member) GQL_AT(GQL_HOW_UINT32, type, member)
#define GQL_INT64_AT(type, member) GQL_AT(GQL_HOW_INT64, type, member)
#define GQL_COUNT_AT(type, member) GQL_AT(GQL_HOW_COUNT, type, member)
#define GQL_ENUM_AT(type, member) GQL_AT(GQL_HOW_ENUM, type, member)
#define GQL_UUID_AT(type, member) GQL_AT(GQL_HOW_UUID, type, member)
#define GQL_TIME_AT(type, member) GQL_AT(GQL_HOW_TIME, type, member)
#define GQL_OBJECT_AT(type, member) GQL_AT(GQL_HOW_OBJECT, type, member)
#define GQL_VALUE_AT(type, member) GQL_AT(GQL_HOW_VALUE, type, member)

#endif
