/* SPDX-License-Identifier: Apache-2.0 */
/* router.h - which handler answers which request
 *
 * Routes are static tables; the docs of "GET /", the tests and the
 * authorisation hook read the same rows. A literal segment wins over a
 * parameter. Segments are compared after percent decoding.
 */
#ifndef AQ_HTTP_ROUTER_H
#define AQ_HTTP_ROUTER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "http/message.h"

struct request;

typedef void route_handler_fn(struct request *req, void *data);

enum {
    ROUTE_STREAM_BODY = 1u << 0, /* call the handler before the body; see request_read_body() */
};

#define ROUTE_REFUSED (-1) /* route_answer.status: no request succeeds */

/* How a request that succeeded is answered, for documentation. */
struct route_answer {
    int status, other; /* 0 = 200; 0 = always with that status. 101 and 204 have no body */
    const char *types; /* media types, "a|b"; NULL = "application/json", "" = no body */
};

struct route {
    enum method method;
    const char *path; /* "/session/{name}/logs": parameters are whole segments */
    int role;         /* the caller's own meaning */
    route_handler_fn *handler;
    const void *body;  /* the caller's table that decodes the body, or NULL */
    const char *doc;   /* one line */
    unsigned flags;    /* ROUTE_* */
    uint64_t body_max; /* 0 = the server's limit */
    struct route_answer answer;
    const char *body_types; /* of ROUTE_STREAM_BODY, as route_answer.types */
    unsigned list_max;      /* the body may be a list of so many objects as well; 0 = it may not */
};

#define ROUTER_PARAMS_MAX 8
#define ROUTER_SEGMENTS_MAX 16

struct route_param {
    const char *name, *value; /* decoded, valid UTF-8, not empty */
};

struct route_match {
    const struct route *route;
    void *data; /* of the table */
    struct route_param params[ROUTER_PARAMS_MAX];
    size_t param_count;
    unsigned allowed; /* bit per enum method: who would answer at this path */
};

struct router;

struct router *router_new(void);
void router_free(struct router *router);
AQ_DEFINE_CLEANUP(struct router, router_free)

/* Add a table, which must outlive the router; 'data' is given to its handlers.
 * -EINVAL names the row that is malformed, lacks a handler or a doc line, or
 * says the same as another. Before the first match.
 */
int router_add(struct router *router, const struct route *routes, size_t count, void *data,
               struct aq_error *err);

/* Where a path has the literal segment 'segment', it may have 'alias' as well, unless that is a
 * literal there, too. Both must outlive the router, which has one alias.
 */
void router_alias(struct router *router, const char *alias, const char *segment);

/* Of any method and path that no row has: what it gets has no parameters. It must outlive the
 * router.
 */
void router_set_fallback(struct router *router, const struct route *route, void *data);

/* All rows, sorted by path, then method. */
const struct route *const *router_list(const struct router *router, size_t *ret_count);

/* Find the row. HEAD falls back to GET. 0; -ENOENT with kind "url-not-found";
 * -EOPNOTSUPP with kind "method-not-allowed" and ret->allowed set; -EINVAL for
 * broken escapes or text that is not UTF-8. Parameters go to 'arena'.
 */
int router_match(const struct router *router, enum method method, const char *path, size_t len,
                 struct arena *arena, struct route_match *ret, struct aq_error *err) AQ_UNTRUSTED;

/* "GET, HEAD, POST" from route_match.allowed. */
void router_format_allow(unsigned allowed, struct strbuf *out);

#endif
