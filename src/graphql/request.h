/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - one request under way: what the files of the executor share
 *
 * A plan is the merged selection for objects of one type at one place of the
 * query. A batch is all objects there are of that type at that place; its
 * columns hold what resolvers answered, one value for each object. Fields
 * that are read from the object itself have no column. When nothing is left
 * to resolve, the reply is written depth first from batches and objects.
 */
#ifndef AQ_GRAPHQL_REQUEST_H
#define AQ_GRAPHQL_REQUEST_H

#include "graphql/annotate.h"
#include "graphql/coerce.h"
#include "graphql/parser.h"

struct gql_engine {
    struct gql_conf conf;
    gql_scalar_fn *scalars;         /* by type id - 1 */
    struct gql_resolver *resolvers; /* of introspection, by field id - schema->field_count */
    const struct gql_directive_def *skip, *include;
    struct cache *cache;
    struct arena spare; /* the last request's memory, for the next one */
};

/* A reason why something has no value, to be reported where it is needed. */
struct refusal {
    const char *message; /* NULL = none */
    uint32_t at;
};

struct plan_node {
    const struct ast_selection *field;
    struct plan_node *next;
};

struct plan_field {
    const char *label; /* "key": with its quotes and colon */
    uint32_t label_len;
    const char *key;
    const struct gql_field_def *def;
    const struct gql_resolver *resolver;
    struct plan_node *nodes, *last_node; /* all fields of this key, in order */
    struct gql_value *args;
    struct refusal refusal; /* the arguments have no value */
    bool has_column;
    struct field_plan *plans; /* of what this field gives, by type */
};

struct field_plan {
    const struct gql_type *type;
    struct plan_field *fields;
    uint32_t count, cap;
    struct refusal refusal;  /* a condition has no value */
    struct field_plan *next; /* of the same field, other types */
};

struct batch {
    struct field_plan *plan;
    const void *const *objects;
    uint32_t count, cap;        /* cap 0: 'objects' belongs to someone else */
    uint32_t resolved;          /* fields that were begun */
    struct gql_value **columns; /* by field; NULL where there is no column */
    struct batch *next;         /* to be resolved */
};

/* A list of rows in a column, once their batch is known: kind GQL_SPAN. */
#define GQL_SPAN 64
struct span {
    const struct batch *batch;
    const void *const *rows; /* NULL elements have no place in the batch */
    uint32_t first;
};

struct call {
    struct gql_call call; /* first */
    struct gql_request *request;
    struct batch *batch;
    uint32_t field;
    bool returned, done;
    struct call *next; /* finished, to be looked at */
};

/* Where the writing is in an object or list, so that it can go on in a later turn. */
struct write_level {
    uint32_t at;  /* the field or item that is written next, or was begun */
    uint32_t row; /* of a list of rows: the item's place in its batch */
    size_t start; /* of the value of 'at' in the reply */
    struct write_level *above, *below;
};

struct gql_request {
    struct gql_engine *engine;
    struct arena arena;
    struct gql_document *doc;
    const struct ast_definition *operation;
    void *context;
    const void *root;
    struct gql_value *variables; /* by symbol index */
    struct errors errors;
    struct strbuf *out;
    size_t start; /* of the reply in 'out' */
    gql_done_fn done;
    void *data;

    /* marks of symbols and fragments seen while one plan is made */
    uint32_t *symbol_marks, *symbol_fields, *fragment_marks, mark;

    struct batch *queue, *queue_last;
    struct batch *top;
    struct call *finished;
    uint32_t pending;    /* calls that have not answered */
    uint32_t next_field; /* of a mutation: to be started */
    bool pumping;

    struct jsonw writer;
    size_t data_start;    /* of the value of "data" */
    struct error *thrown; /* on its way to a place that may be null */
    bool data_is_null;
    struct gql_get get;

    void (*pause)(void *context, struct gql_request *request);
    uint32_t turn_work;      /* done in this turn */
    uint32_t unchecked_work; /* of it, since it was last asked whether the turn is over */
    size_t counted_len;      /* of the reply: bytes that were counted as work */
    bool is_turn_over, is_paused, is_too_large;
    struct write_level top_level, *level;
    struct write_level *paused_at;    /* the level whose next field or item waits */
    struct write_level *returning_to; /* the same, while the way back to it is made */
    bool is_returning;
};

static inline void *request_alloc(struct gql_request *r, size_t count, size_t size)
{
    return arena_array(&r->arena, count, size);
}

/* Whether the request has used up its memory: nothing more is begun, and it ends without a reply
 * once the calls under way have answered. Asked between fields, and between rows and items where
 * each may allocate.
 */
static inline bool request_is_over(const struct gql_request *r)
{
    return arena_is_over(&r->arena);
}

/* plan.c */

/* The plan for objects of 'type' where the fields 'nodes' are. */
struct field_plan *plan_find(struct gql_request *r, struct plan_field *field,
                             const struct gql_type *type);
struct field_plan *plan_new(struct gql_request *r, const struct gql_type *type,
                            const struct plan_node *nodes, const struct ast_set *set);

/* Whether @skip and @include let a selection in. False with a refusal if a condition has no value. */
bool plan_includes(struct gql_request *r, const struct ast_directive *directives,
                   struct refusal *refusal);

/* execute.c */

/* Count work of this turn; whether the turn is over. */
void request_count_work(struct gql_request *r, size_t values);
bool request_turn_is_over(struct gql_request *r);
void request_run(struct gql_request *r);
void request_free(struct gql_request *r);

/* write.c: the reply's beginning, for a mutation each field of the top object
 * as soon as it is resolved, and the rest. write_end() is false if the turn ended before the
 * reply did: call it again.
 */
void write_begin(struct gql_request *r);
void write_top_field(struct gql_request *r, uint32_t field);
bool write_end(struct gql_request *r);

/* introspect.c */
struct gql_resolver *introspection_resolvers(const struct gql_schema *schema);

#endif
