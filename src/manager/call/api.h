/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - what the handlers of REST and GraphQL share: the manager's HTTP
 * interface as one object, parameters of a request, and answers
 *
 * Everything here runs on the loop's thread.
 */
#ifndef AQ_MANAGER_CALL_API_H
#define AQ_MANAGER_CALL_API_H

#include <jansson.h>
#include <stdbool.h>

#include "http/client_address.h"
#include "http/problem.h"
#include "http/replay.h"
#include "http/router.h"
#include "http/server.h"
#include "http/sign.h"
#include "manager/core/core.h"
#include "manager/call/caller.h"
#include "manager/call/decode.h"
#include "manager/call/rate_limit.h"

/* Let manager 'to', NULL = any, lead in place of this one. 0 = it will; what is under way ends in
 * good order before.
 */
typedef int api_yield_fn(void *data, const char *to, struct aq_error *err);

struct api_streams;
struct audit_trail;
struct flush_queue;
struct gql_engine;
struct kept_answers;
struct login_audit;
struct tasks;
struct turn_queue;

/* What every request may need, and the state of each feature that has one, which only the files of
 * its directory look into (FEATURE/FEATURE_feature.h).
 */
struct api {
    struct core *core;
    int64_t started_usec; /* monotonic */
    struct router *router;
    struct http_replay *replay;
    struct sign_cache *sign_cache;
    struct rate_limiter *rate;
    struct audit_trail *audit_trail;
    struct login_audit *login_audit;
    struct kept_answers *kept_answers; /* to requests that may be sent again */
    struct address_list proxies;       /* that are believed who asks them; borrowed */
    struct origin_rules origins;       /* in effect; the server looks at it */
    api_yield_fn *yield;               /* NULL = there is one manager */
    void *yield_data;
    bool is_frozen;                /* by an administrator: API_FREEZABLE requests fail */
    struct turn_queue *turns;      /* of GraphQL requests and lists */
    struct turn_queue *file_turns; /* of lists of files, which wait for storage hosts */
    struct flush_queue *flushes;   /* of event streams */
    struct api_streams *streams;
    struct tasks *tasks; /* tasks.h */
    struct gql_engine *gql;
    struct list gql_feeds; /* subscriptions that follow a session, the oldest first */
    /* A signature was accepted that must not be accepted again; NULL = nothing keeps copies. */
    void (*on_signature)(const struct api *api, const struct sign_claim *claim);

    struct account_settings *account;
    struct cluster_state *cluster;
    struct etcd_sync *etcd; /* NULL = none is set */
    int64_t etcd_away_usec; /* wall clock: since when it and the configuration tree are not in
                                agreement; 0 = they are, or there is none */
    struct folder_state *folder;
    struct image_state *image;
    struct live_feed *live;
    struct login_state *login;
    struct notification_state *notification;
    struct pipeline_runs *pipeline;
    struct redis_state *redis; /* NULL = none is configured */
    struct scheduling_state *scheduling;
    struct serving_state *serving;
    struct stream_state *stream;
};

/* ---- parameters ---- */

/* May this request have a body? A GET or HEAD only if its Content-Type, which
 * is signed, says JSON: so nobody can add one to a request that had none.
 */
bool api_may_have_body(const struct request *req);

/* The request's parameters as JSON: body if there is one, else query. json_decref.
 * -EINVAL for a body that may not be.
 */
int api_parse(struct request *req, json_t **ret, struct aq_error *err);

/* Decode the request's parameters by its route's table into 'target', which may
 * be NULL if the table has no values. A route without a table takes no
 * parameters. FIELD_OBJECT members borrow from the JSON in *ret_tree, which is
 * the caller's then (json_decref); with NULL it is freed at once. -EINVAL names
 * the parameter.
 */
int api_decode(struct request *req, void *target, json_t **ret_tree, struct aq_error *err);

/* For requests that take nothing: false after answering that something was given. */
bool api_has_no_params(struct request *req);

/* ---- answers ---- */

/* The caller's mistake in one parameter: -EINVAL, invalid-api-params. */
int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...) AQ_PRINTF(3, 4);

/* What a WebSocket says of a mistake of its client's: {"type": "error", "field", "message"}. */
void api_write_mistake(struct strbuf *out, const struct aq_error *err);

/* The answer tells web servers that a login with a browser ends by it, perhaps the one with which
 * the request came.
 */
void api_say_login_ended(struct request *req);

/* core_done_fn with the request as data: 204 or a problem. */
void api_reply_done(void *req, int r, const struct aq_error *err);

/* Times as REST shows them: ISO 8601, null for 0. */
void api_write_time(struct jsonw *w, const char *key, int64_t usec);
/* A member whose value is JSON text; NULL or "" gives null. */
void api_write_raw(struct jsonw *w, const char *key, const char *json);
void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id);

#endif
