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

#include "http/problem.h"
#include "http/replay.h"
#include "http/router.h"
#include "http/server.h"
#include "http/sign.h"
#include "manager/core/core.h"
#include "manager/call/caller.h"
#include "http/client_address.h"
#include "manager/cluster/config_known.h"
#include "manager/call/decode.h"
#include "manager/login/password_rules.h"
#include "manager/call/rate_limit.h"

struct gql_engine;
struct flush_queue;
struct folder_jobs;
struct folder_recount;
struct folder_rights;
struct kept_answers;
struct live_feed;
struct log_quota;
struct turn_queue;
struct api_streams;
struct app_proxy;
struct audit_trail;
struct callbacks;
struct deliveries;
struct login_audit;
struct login_limits;
struct notifications;
struct password_queue;
struct rescan;
struct signup;
struct storage_hosts;
struct tasks;
struct web_logins;

/* Of one transfer of files into or out of a session; 0 = any number. */
struct transfer_limits {
    int64_t bytes_max, files_max;
};

/* Whose policies, where they are not those of keypairs. */
enum owner_policy_kind { OWNER_POLICY_USER, OWNER_POLICY_PROJECT, OWNER_POLICY_KINDS };

struct api {
    struct core *core;
    struct router *router;
    struct http_replay *replay;
    struct sign_cache *sign_cache;
    struct rate_limiter *rate;
    struct audit_trail *audit_trail;
    struct deliveries *deliveries;
    struct callbacks *callbacks; /* NULL = stopped */
    struct notifications *notifications;
    struct login_audit *login_audit;
    struct login_limits *login_limits;
    struct kept_answers *kept_answers; /* to requests that may be sent again */
    struct password_queue *passwords;  /* NULL = nobody has logged in yet */
    struct password_rules password_rules;
    struct signup *signup; /* NULL = nobody can sign up */
    struct transfer_limits transfer_limits;
    int64_t execution_timeout_usec; /* of code that is run in a session; 0 = none */
    struct address_list proxies;    /* that are believed who asks them; borrowed */
    struct gql_engine *gql;
    struct list gql_feeds;       /* subscriptions that follow a session, the oldest first */
    struct turn_queue *turns;    /* of GraphQL requests and lists */
    struct flush_queue *flushes; /* of event streams */
    struct api_streams *streams;
    struct live_feed *live; /* what consoles show */
    struct log_quota *log_quota;
    struct app_proxy *app_proxy;
    struct storage_hosts *storage_hosts;
    struct web_logins *web_logins;
    int64_t started_usec;                       /* monotonic */
    struct config_settings settings;            /* of the configuration tree */
    struct origin_rules own_origins;            /* of manager.toml */
    struct origin_rules origins;                /* in effect; the server looks at it */
    json_t *aliases;                            /* of images; image_aliases.h */
    json_t *image_limits;                       /* image_limits.h */
    json_t *catalogue;                          /* of registries' images; image_catalogue.h */
    struct rescan *rescan;                      /* NULL = none is under way */
    json_t *presets;                            /* presets.h */
    json_t *owner_policies[OWNER_POLICY_KINDS]; /* owner_policies.h */
    int64_t owner_policies_since_usec;          /* the same: since when there is 'default' */
    json_t *folder_rules;                       /* folder_rules.h */
    struct folder_jobs *folder_jobs;
    struct folder_recount *folder_recount;
    struct folder_rights *folder_rights;
    bool has_automatic_folders; /* any there is, or was, whose name begins with a dot: else sessions
                                   are made without asking the store for them */
    struct tasks *tasks;        /* tasks.h */
    char *openapi;              /* the answer of GET /spec/openapi; NULL = not asked for yet */
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
 * the parameter, -ENOMEM.
 */
int api_decode(struct request *req, void *target, json_t **ret_tree, struct aq_error *err);

/* For requests that take nothing: false after answering that something was given. */
bool api_has_no_params(struct request *req);

/* ---- answers ---- */

/* The caller's mistake in one parameter: -EINVAL, invalid-api-params. */
int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...) AQ_PRINTF(3, 4);

/* What a WebSocket says of a mistake of its client's: {"type": "error", "field", "message"}. */
void api_write_mistake(struct strbuf *out, const struct aq_error *err);

/* core_done_fn with the request as data: 204 or a problem. */
void api_reply_done(void *req, int r, const struct aq_error *err);

/* Times as REST shows them: ISO 8601, null for 0. */
void api_write_time(struct jsonw *w, const char *key, int64_t usec);
/* A member whose value is JSON text; NULL or "" gives null. */
void api_write_raw(struct jsonw *w, const char *key, const char *json);
void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id);

#endif
