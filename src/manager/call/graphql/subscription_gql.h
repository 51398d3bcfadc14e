/* SPDX-License-Identifier: Apache-2.0 */
/* subscription_gql.h - the answer to a GraphQL subscription: events, as graphql-sse's clients read them
 *
 * Who accepts text/event-stream is answered so: "next" with a reply as it otherwise would be the
 * whole answer, and "complete" after the last. A subscription's document is executed at once, for
 * how the session is now, and again for each change of its status, with the rights of then. It is
 * complete when the session has ended, or the right to it, or when its user has opened others.
 * Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_SUBSCRIPTION_GQL_H
#define AQ_MANAGER_CALL_GRAPHQL_SUBSCRIPTION_GQL_H

#include "manager/call/graphql/resolve.h"

struct gql_feed;

GQL_ENTRIES(subscription);

/* For a request whose client accepts events; else NULL. In its arena; 'run' is to execute the
 * request's document once more and to call one of the last two functions.
 */
struct gql_feed *gql_feed_new(struct api *api, struct request *req,
                              void (*run)(struct gql_feed *feed));

struct api *gql_feed_api(const struct gql_feed *feed);
struct request *gql_feed_request(const struct gql_feed *feed);

/* The request's parameters, which are kept for the next time. json_decref. */
int gql_feed_parse(struct gql_feed *feed, json_t **ret, struct aq_error *err);

/* A run has ended with this reply. */
void gql_feed_take(struct gql_feed *feed, const struct strbuf *reply);
/* There is no reply: the request fails, or if it has been answered already, ends. */
void gql_feed_fail(struct gql_feed *feed, const struct aq_error *err);

#endif
