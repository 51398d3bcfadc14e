/* api.h - what the handlers of all resources share */
#ifndef AQ_MANAGER_API_API_H
#define AQ_MANAGER_API_API_H

#include <jansson.h>
#include <stdbool.h>

#include "http/problem.h"
#include "http/replay.h"
#include "http/sign.h"
#include "http/router.h"
#include "http/server.h"
#include "http/version.h"
#include "manager/api/decode.h"
#include "manager/api/rate.h"
#include "manager/core/core.h"
#include "store/read.h"

struct gql_engine;
struct tasks;

struct api {
    struct core *core;
    struct router *router;
    struct replay *replay;
    struct sign_cache *sign_cache;
    struct rate *rate;
    struct gql_engine *gql;
    int64_t started_usec; /* monotonic */
    unsigned logins;      /* passwords being checked */
    bool is_frozen;       /* durable as the setting "manager.status" */
    char *announcement;   /* NULL = none; setting "manager.announcement" */
    json_t *aliases;      /* of images; aliases.h */
    struct tasks *tasks;  /* task.h */
};

/* The role column of a route: the least that a caller must be. */
enum api_role {
    API_PUBLIC,     /* anyone, also without a signature */
    API_USER,       /* an active keypair of an active user */
    API_ADMIN,      /* a domain's administrator, for that domain, or a superadmin */
    API_SUPERADMIN,
};
#define API_ROLE_MASK 0xf
#define API_FREEZABLE 0x10 /* or'ed to the role: refused while the manager is frozen */

const char *api_role_name(enum api_role role); /* "public" ... */

/* Who calls; of a public route nobody: access_key "". */
struct principal {
    char access_key[ACCESS_KEY_MAX];
    struct uuid user_id;
    enum user_role role;
    const char *domain;
    struct api_version version;
};

const struct principal *api_principal(const struct request *req);
bool principal_is_superadmin(const struct principal *who);
bool principal_may(enum user_role have, enum api_role need);
/* Clients below v9 know the session states of 22.03 only. */
bool principal_is_old(const struct principal *who);

/* The request's parameters as JSON: body if there is one, else query. json_decref. */
int api_parse(struct request *req, json_t **ret, struct aq_error *err);

/* Decode the request's parameters by its route's table (none: there must be
 * no parameters) into 'target' (NULL: nothing in the table has a value). With 'ret_tree' the JSON that FIELD_OBJECT
 * members borrow from is the caller's, else it goes.
 */
int api_decode(struct request *req, void *target, json_t **ret_tree, struct aq_error *err);

/* For requests that take nothing: false after answering that something was given. */
bool api_has_no_params(struct request *req);

/* The keypair on whose behalf a request is made: 'owner_access_key', for
 * administrators, or the caller's own if NULL. -EPERM (generic-forbidden),
 * -EINVAL for a key that does not exist.
 */
int api_owner(const struct api *api, const struct request *req, const char *owner_access_key,
              const struct keypair **ret, struct aq_error *err);

/* ---- answers ---- */

/* The caller's mistake in one parameter: -EINVAL, invalid-api-params. */
int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...) AQ_PRINTF(3, 4);

/* core_done_fn with the request as data: 204 or a problem. */
void api_reply_done(void *req, int r, const struct aq_error *err);

/* Times as REST shows them: ISO 8601, null for 0. */
void api_write_time(struct jsonw *w, const char *key, int64_t usec);
/* A member whose value is JSON text; NULL or "" gives null. */
void api_write_raw(struct jsonw *w, const char *key, const char *json);
void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id);

/* ---- lists ---- */

#define API_LIST_DEFAULT 100
#define API_LIST_MAX 1000

struct api_page {
    const char *filter, *order;
    int64_t limit, offset;
};

/* For a struct with a member 'page'. */
#define API_PAGE_FIELDS(type)                                                                      \
    { "limit", FIELD_INT, 0, offsetof(type, page.limit), 1, API_LIST_MAX },                        \
    { "offset", FIELD_INT, 0, offsetof(type, page.offset), 0, INT64_C(1000000000) },               \
    { "filter", FIELD_STR, FIELD_NULLABLE, offsetof(type, page.filter), 0, 4096 },                 \
    { "order", FIELD_STR, FIELD_NULLABLE, offsetof(type, page.order), 0, 256 }

void api_page_apply(const struct api_page *page, struct store_query *query);

struct api_list {
    const struct api *api;
    struct request *req;
    struct store_query query;
    int (*list)(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                struct aq_error *err);
    void (*write)(const struct api_list *list, const struct store_page *page, size_t i,
                  struct jsonw *w);
    const char *one_of; /* "agent instance": the reply is the first row, or 404 without one */
    int status;         /* 0 = 200 */
    struct store_page *page;
};

/* Read a page on a worker thread and answer {"items": [...], "total": N}. 'list' is in
 * the request's arena, and so is what its query points to.
 */
void api_list_start(struct api_list *list);

/* A zeroed list in the request's arena; NULL after it has answered that memory is short. */
struct api_list *api_list_new(const struct api *api, struct request *req);

/* Read the settings that the API keeps in the store; blocks. */
int manager_load(struct api *api, struct aq_error *err);

/* ---- tables of the resources ---- */

#define API_ROUTES(name)                                                                           \
    extern const struct route name##_routes[];                                                     \
    extern const size_t name##_route_count
#define API_ROUTES_END(name) const size_t name##_route_count = AQ_COUNT(name##_routes)

API_ROUTES(hello);
API_ROUTES(auth);
API_ROUTES(manager);
API_ROUTES(session_create);
API_ROUTES(session);
API_ROUTES(session_change);
API_ROUTES(session_end);
API_ROUTES(session_history);
API_ROUTES(session_list);
API_ROUTES(logs);
API_ROUTES(pty);
API_ROUTES(apps);
API_ROUTES(exec);
API_ROUTES(events);
API_ROUTES(task);
API_ROUTES(resource);
API_ROUTES(agent);
API_ROUTES(image);
API_ROUTES(aliases);
API_ROUTES(user);
API_ROUTES(keypair);
API_ROUTES(domain);
API_ROUTES(group);
API_ROUTES(policy);
API_ROUTES(resource_group);
API_ROUTES(fair_share);
API_ROUTES(audit);
API_ROUTES(statistics);
API_ROUTES(gql);

#endif
