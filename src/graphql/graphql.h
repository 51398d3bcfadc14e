/* SPDX-License-Identifier: Apache-2.0 */
/* graphql.h - GraphQL requests over static type tables
 *
 * The October 2021 specification with the messages, locations and error order
 * of graphql-js 16. Bytes in, bytes out: the engine knows nothing about what
 * its resolvers do.
 *
 * The schema 'things.graphql' says "type Query { things(limit: Int = 20):
 * [Thing!]! } type Thing { id: ID! name: String owner: User }". In meson.build
 *
 *     things_schema = graphql_compile.process('things.graphql')
 *
 * makes things.h and things.c, to be listed among the sources. Then:
 *
 *     #include "things.h"
 *
 *     static int list_things(struct gql_call *call)
 *     {
 *         int64_t limit = call->args[THINGS_ARG_Query_things_limit].integer;
 *         ...
 *         call->results[0] = gql_rows(rows, count);
 *         return GQL_DONE;
 *     }
 *
 *     static int load_owners(struct gql_call *call)
 *     {
 *         start_query(call->parents, call->count, on_owners, call);
 *         return GQL_LATER;
 *     }
 *
 *     static const struct gql_resolver resolvers[THINGS_FIELD_COUNT] = {
 *         [THINGS_FIELD_Query_things] = GQL_CALL(list_things),
 *         [THINGS_FIELD_Thing_id] = GQL_UUID_AT(struct thing, id),
 *         [THINGS_FIELD_Thing_name] = GQL_TEXT_AT(struct thing, name),
 *         [THINGS_FIELD_Thing_owner] = GQL_CALL(load_owners),
 *     };
 *
 * load_owners() gets all things of the list at once; on_owners() later sets
 * call->results[i] for each of call->parents and calls gql_call_done(call).
 * Resolution goes level by level: each field is resolved once for all objects
 * at its place in the query. What is read straight from a struct or a getter
 * is read while the reply is written, and stored nowhere.
 */
#ifndef AQ_GRAPHQL_GRAPHQL_H
#define AQ_GRAPHQL_GRAPHQL_H

#include <jansson.h>

#include "base/strbuf.h"
#include "graphql/resolver.h"

/* How a custom scalar reads its input: a JSON-like value (null never gets
 * here) from a variable or a literal. Sets *ret and returns NULL, or returns
 * what is wrong (static or in 'arena'). BigInt, DateTime, JSONString and UUID
 * are known without; any other scalar takes every value as it is.
 */
typedef const char *(*gql_scalar_fn)(struct arena *arena, const struct gql_value *in,
                                     struct gql_value *ret);

struct gql_scalar {
    const char *name; /* NULL ends a table */
    gql_scalar_fn parse;
};

/* Refused beyond these, with a location; 0 = no limit. */
struct gql_limits {
    size_t bytes;        /* of the document */
    uint32_t tokens;     /* of the document */
    uint32_t nesting;    /* braces and brackets in each other; never more than 1,000 */
    uint32_t depth;      /* of fields, fragments spread */
    uint32_t fields;     /* fields, fragments spread */
    uint32_t aliases;    /* the same of those with an alias */
    uint32_t directives; /* the same of directives */
    uint64_t cost;       /* sum of the fields' costs, below a field with an integer 'first',
                            'last' or 'limit' times its value */
    uint64_t work;       /* steps of validation */
    size_t memory;       /* of one request, without document and reply; see resolver.h */
    size_t reply;        /* bytes of the reply; beyond it the request fails */
    uint32_t turn;       /* values that are read or written before gql_params.pause is called */
};

/* clang-format off */
#define GQL_LIMITS_DEFAULT                                                                         \
    {                                                                                              \
        .bytes = 1 << 20, .tokens = 20000, .nesting = 200, .depth = 20, .fields = 5000,            \
        .aliases = 1000, .directives = 1000, .cost = 1000000, .work = 500000,                      \
        .memory = 256 << 20, .reply = 256 << 20, .turn = 20000                                     \
    }
/* clang-format on */

struct gql_conf {
    const struct gql_schema *schema;
    const struct gql_resolver *resolvers; /* schema->field_count of them, by field id */
    const struct gql_scalar *scalars;     /* or NULL */
    struct gql_limits limits;
    bool is_lenient;        /* neither fragments that nothing uses are refused, nor a last
                               operation that ends before its selections */
    size_t cache_documents; /* how many validated documents to keep; 0 = none */
};

/* An engine and its requests belong to one thread. 'conf' is copied, what it
 * points to is borrowed. Returns 0 or -EINVAL (a field without a resolver, named).
 */
struct gql_engine;
int gql_engine_new(const struct gql_conf *conf, struct gql_engine **ret, struct aq_error *err);
void gql_engine_free(struct gql_engine *engine); /* after its last request */
AQ_DEFINE_CLEANUP(struct gql_engine, gql_engine_free)

struct gql_request;
struct gql_params {
    const char *query;
    size_t query_len;
    const char *operation;   /* which operation of the document; NULL = its only one */
    const json_t *variables; /* an object, or NULL; not needed after gql_execute() */
    void *context;           /* for resolvers */
    const void *root;        /* the parent object of root fields; may be NULL */
    /* A turn's share of the work is done (limits.turn): call gql_resume() later, so that
     * others have theirs. NULL = the request is never interrupted, nor are mutations.
     */
    void (*pause)(void *context, struct gql_request *request);
};

/* {"query", "variables", "operationName" or "operation_name"} of a request's
 * body, borrowed. -EINVAL with the field named.
 */
int gql_params_from_json(const json_t *body, struct gql_params *ret,
                         struct aq_error *err) AQ_UNTRUSTED;

struct gql_result {
    int code;        /* 0; -ENOMEM past gql_limits.memory, without a reply */
    bool executed;   /* false: refused before anything ran, the reply has no "data" */
    uint32_t errors; /* entries of "errors" in the reply */
};
typedef void (*gql_done_fn)(void *data, const struct gql_result *result);

/* Append the reply {"data":...,"errors":[...]} ("errors" only if there are
 * any; only "errors" if nothing ran) to 'out' and call 'done', before or after
 * this returns. 'out' must live until then; what 'params' points to, but for
 * context and root, only until this returns.
 */
void gql_execute(struct gql_engine *engine, const struct gql_params *params, struct strbuf *out,
                 gql_done_fn done, void *data) AQ_UNTRUSTED;

/* Go on after a pause, once for each. */
void gql_resume(struct gql_request *request);

struct gql_stats {
    size_t documents, bytes; /* in the cache */
    uint64_t hits, misses;
};
void gql_engine_get_stats(const struct gql_engine *engine, struct gql_stats *ret);

#endif
