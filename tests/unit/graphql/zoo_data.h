/* SPDX-License-Identifier: Apache-2.0 */
/* zoo_data.h - a fake data source behind zoo.graphql, for all tests */
#ifndef AQ_TESTS_UNIT_GRAPHQL_ZOO_DATA_H
#define AQ_TESTS_UNIT_GRAPHQL_ZOO_DATA_H

#include "graphql/graphql.h"
#include "zoo.h"

extern const struct gql_resolver zoo_resolvers[ZOO_FIELD_COUNT];

/* What resolvers saw since the last zoo_reset(). */
struct zoo_seen {
    unsigned owner_calls;   /* Cat.owner and Dog.owner, batched */
    unsigned owner_parents; /* in all of these calls */
    unsigned sets;          /* mutation set(value:) */
    struct gql_call *slow;  /* Query.slow, to be answered by the test; NULL = none waits */
    bool slow_later;        /* Query.slow waits */
    unsigned pauses;        /* turns that ended before their request */
    bool cats_selected;     /* Query.owner was asked for 'cats' */
    size_t memory;          /* of the request that called Cat.owner or Dog.owner last */
};
extern struct zoo_seen zoo_seen;

void zoo_reset(void);

/* An engine over the zoo with these limits (NULL = none). */
struct gql_engine *zoo_engine(const struct gql_limits *limits, size_t cache_documents);
struct gql_engine *zoo_lenient_engine(void);

/* Run a query that does not wait. The reply is appended to 'out'. */
struct gql_result zoo_run(struct gql_engine *engine, const char *query, const char *variables,
                          const char *operation, struct strbuf *out);

#endif
