/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - what resolvers share */
#ifndef AQ_MANAGER_CALL_GRAPHQL_RESOLVE_H
#define AQ_MANAGER_CALL_GRAPHQL_RESOLVE_H

#include "graphql/graphql.h"
#include "manager/call/api.h"
#include "schema.h"
#include "store/query.h"

struct cluster_role;
struct entity;
struct folder_list;
struct gql_feed;
struct gql_images;

/* Of one request: gql_call.context and gql_get.context. */
struct gql_context {
    struct api *api;
    struct request *req;
    const struct principal *who;
    struct gql_feed *feed;    /* where events are the answer, else NULL */
    struct slot_types *types; /* as known when the request came: they stay the same for it */
    struct strbuf out;
    struct gql_page *pages;             /* what replies point into; freed at the end */
    size_t kept_bytes;                  /* of these */
    struct gql_read *reads, *last_read; /* what is read when the read under way is done */
    bool is_reading, is_full;
    const struct gql_images *images; /* of kernels; NULL until one is asked for */
    struct {
        const char *text; /* of the session whose kernels were looked at last; NULL = of none */
        const struct cluster_role *items; /* names and images */
        size_t count;
    } roles;
    bool has_listed_live;     /* once a request: it looks at all that live, in this turn */
    struct aq_error read_err; /* why nothing more is read */
};

struct gql_read;

struct gql_page {
    struct store_page *page;
    struct gql_page *next;
};

/* How a field is resolved. It is about a field of the schema, of any object and at some cost; those
 * of entities' members need none (struct gql_entity).
 */
struct gql_entry {
    uint32_t field; /* SCHEMA_FIELD_... */
    struct gql_resolver resolver;
};

/* A type whose objects begin with a row of an entity: fields without an entry are its members. */
struct gql_entity {
    uint32_t type; /* SCHEMA_TYPE_... */
    const struct entity *entity;
};

/* Types of the same objects: fields of 'type' without an entry are resolved as those of 'as'. */
struct gql_same {
    uint32_t as, type; /* SCHEMA_TYPE_... */
};

/* Entries of one file. */
struct gql_table {
    const struct gql_entry *entries;
    size_t count;
};

#define GQL_ENTRIES(name) extern const struct gql_table name##_gql_table
#define GQL_ENTRIES_END(name) \
    const struct gql_table name##_gql_table = { name##_entries, AQ_COUNT(name##_entries) }

/* For gql_limits.cost, beside those of resolver.h: a query of the store; a change of it; a walk
 * over all sessions or images in memory; and how many rows a list is reckoned to have that is
 * whole.
 */
#define GQL_COST_READ 100
#define GQL_COST_WRITE 1000
#define GQL_COST_WALK 2000
#define GQL_ROWS_WHOLE 20

/* Resolvers that give the same to every object. */
/* clang-format off */
#define GQL_FIXED_TEXT(literal)                                                                    \
    { .how = GQL_HOW_CONST,                                                                        \
      .value = { .kind = GQL_STRING, .count = sizeof(literal) - 1, .text = (literal) } }
/* clang-format on */
/* clang-format off */
#define GQL_FIXED_INT(number)                                                                      \
    { .how = GQL_HOW_CONST, .value = { .kind = GQL_INT, .integer = (number) } }
/* clang-format on */
#define GQL_FIXED_BOOL(yes)                                                  \
    {                                                                        \
        .how = GQL_HOW_CONST, .value = {.kind = GQL_BOOL, .boolean = (yes) } \
    }
#define GQL_FIXED_EMPTY                                    \
    {                                                      \
        .how = GQL_HOW_CONST, .value = {.kind = GQL_LIST } \
    }

/* ---- reading rows ---- */

typedef int gql_list_fn(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                        struct aq_error *err);

enum gql_shape {
    GQL_ONE,        /* the first row or null */
    GQL_MANY,       /* a list of rows */
    GQL_PAGE,       /* {items, total_count} */
    GQL_CONNECTION, /* of Relay: the query has a range */
};

struct gql_node;

/* What a GQL_PAGE field gives to the type's resolvers. */
struct gql_rows_page {
    struct gql_value items;
    int64_t total;
};
#define GQL_PAGE_ITEMS GQL_VALUE_AT(struct gql_rows_page, items)
#define GQL_PAGE_TOTAL GQL_COUNT_AT(struct gql_rows_page, total)

struct gql_fetch {
    struct gql_call *call;
    enum gql_shape shape;
    uint32_t type;               /* GQL_ONE where the schema says an interface; 0 = as declared */
    const struct gql_node *node; /* GQL_CONNECTION */
    size_t row_size;
    gql_list_fn *list;
    struct store_query query;
    const char *find;                  /* sessions: store_find_sessions() of this text instead */
    const struct folder_list *folders; /* these, by store_list_folders(), instead */
    bool nothing;  /* the arguments exclude each other, or memory knows of none: no rows */
    int64_t total; /* without limit and offset, if memory knows it; else -1 */
    void (*on_read)(const struct gql_fetch *fetch); /* looks at the page first; NULL = nobody */
    struct store_page *page;                        /* set while it runs */
};

/* In the request's arena. */
struct gql_fetch *gql_fetch_new(struct gql_call *call, enum gql_shape shape, gql_list_fn *list,
                                size_t row_size);
/* limit ('limit_max' at most), offset, filter and order: the first four arguments of every X_list.
 * Without an order, query.order stays as the caller set it.
 */
#define GQL_PAGE_MAX 100
int gql_fetch_page_args(struct gql_fetch *fetch, int64_t limit_max, struct aq_error *err);
/* Read on a thread of the store, fill the one result of a root field. Returns
 * what the resolver returns.
 */
int gql_fetch_start(struct gql_fetch *fetch);
/* Fail the call with the error; returns what the resolver returns. */
int gql_fetch_fail(struct gql_fetch *fetch, const struct aq_error *err);

/* Read from the store when what the request reads already is done, so that one request has
 * one of the store's threads at most. Nothing is read for a request that is over its memory:
 * 'done' gets an error then. Returns GQL_LATER, for the resolver to return.
 */
int gql_read(struct gql_call *call, store_tx_fn fn, store_done_fn done, void *data);

/* All pages of one request together. */
#define GQL_KEPT_MAX (32 << 20)
/* In the function of gql_read(): let the query read what there is room for. -EMSGSIZE: none. */
int gql_set_room(const struct gql_context *context, struct store_query *query,
                 struct aq_error *err);

/* Keep the page until the reply is written. */
void gql_keep(struct gql_context *context, struct arena *arena, struct store_page *page);

/* ---- who may see what ---- */

/* Restrict to what the caller may see: a user to the own key or id, a domain's
 * administrator to the domain.
 */
void gql_scope(const struct gql_context *context, struct store_query *query);
/* 0, or -EPERM with the text that clients know. */
int gql_need(const struct gql_context *context, enum api_role role, struct aq_error *err);

/* ---- arguments and values ---- */

/* NULL if it was not given. */
const char *gql_arg_text(const struct gql_call *call, unsigned index);
/* A member of an input object; null if either was not given, or the field or type has none. */
struct gql_value gql_arg_member(const struct gql_call *call, const char *arg, const char *member);
/* 1, -1 or 0 = not given, as store_query.is_active */
int gql_arg_active(const struct gql_call *call, unsigned index);

/* The slots as JSON text in the arena. */
struct gql_value gql_slots(struct gql_get *get, const struct slots *slots);
/* The words of a text that are parted by any of 'separators', as a list; copied. */
struct gql_value gql_words(struct arena *arena, const char *text, const char *separators);
/* Clients know by a UUID what has a name alone: the same name has the same one. */
struct uuid gql_uuid_of_name(const char *name);
/* Copy into the arena. */
struct gql_value gql_copy(struct gql_get *get, const char *text);

#endif
