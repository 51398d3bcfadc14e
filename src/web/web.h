/* SPDX-License-Identifier: Apache-2.0 */
/* web.h - the web server as a whole: its browsers, its manager, and what they share
 *
 * People log in with e-mail and password and get a cookie. Their requests below /func are signed
 * with their keypairs and passed on to the manager; the keypairs never reach a browser. All other
 * paths are files. It keeps nothing that a restart loses: logins are the manager's. Loop's thread.
 */
#ifndef AQ_WEB_WEB_H
#define AQ_WEB_WEB_H

#include "front/server.h"
#include "http/client.h"
#include "http/client_address.h"
#include "web/login.h"
#include "web/settings.h"

#define WEB_URL_MAX 320

struct web {
    uv_loop_t *loop;
    struct front *front;
    const struct settings *settings;
    struct front_server http;
    struct client *client; /* of managers */
    struct manager manager;
    struct logins logins;
    int folder;                              /* settings.folder; -1 = none */
    unsigned char secret[FRONT_SECRET_SIZE]; /* of browsers in which somebody has logged in */
    struct address_list proxies;
    size_t api;                      /* of settings.api: the manager that is asked */
    int64_t signed_usec;             /* the date of the last signature */
    struct strbuf origins;           /* where pages may connect, beside here: for a policy */
    struct strbuf proxy_url;         /* of apps; empty = there is none */
    struct manager_ask *origins_ask; /* for both, under way */
    struct defer *timer;             /* asks again */
    struct list relays;              /* requests that are passed on */
    struct {
        uint64_t logins, failed_logins, refused, passed, upgrades; /* since the start */
        uint64_t bytes_in, bytes_out;
    } counts;
};

extern const struct front_type web_type;

/* The URL of the manager that requests are sent to, borrowed from the settings. */
const char *web_get_api(const struct web *web);
/* A request that was sent to 'api', of web_get_api(), failed: the next manager of the list is used,
 * unless another request that failed there has left it before.
 */
void web_leave_api(struct web *web, const char *api);

/* ---- page.c: what guards browsers ---- */

/* server_guard_fn: pages of other origins change nothing, open no WebSocket and ask the manager
 * nothing, though a browser sends the cookie to all ports of a host.
 */
int page_guard(struct request *req, const struct route *route, void *data, struct aq_error *err);
/* Do browsers reach it by https? */
bool page_is_https(const struct web *web);
/* "scheme://host[:port]" as the browser knows it. */
void page_write_endpoint(const struct web *web, const struct request *req, char ret[WEB_URL_MAX]);
/* The headers of a page whose scripts and styles have this nonce. 'hashes' are sources of a policy
 * for the other scripts of the WebUI's page; NULL = it is the console's.
 */
void page_add_policy(const struct web *web, struct request *req, const char *nonce,
                     const char *hashes);
#define PAGE_NONCE_MAX 25
void page_make_nonce(char ret[PAGE_NONCE_MAX]);

/* ---- entry.c: /server/; state.c: what else it says of itself ---- */

extern const struct route entry_routes[], state_routes[];
extern const size_t entry_route_count, state_route_count;

/* The hash of the request's cookie; false without one. */
bool entry_find_hash(const struct web *web, const struct request *req, char ret[COOKIE_HASH_MAX]);
/* The body as it was before the WebUI hid it, borrowed from the request or in 'buf'. */
int entry_read_body(const struct web *web, struct request *req, const char *body, size_t len,
                    struct strbuf *buf, const char **ret, size_t *ret_len, struct aq_error *err);

/* ---- relay.c: /func ---- */

/* Is it for the manager? */
bool relay_is_asked(const struct request *req);
void relay_serve(struct web *web, struct request *req);
/* Everything that is passed on is cut. */
void relays_cut(struct web *web);
/* To the manager at 'api'; for requests without a keypair 'login' is NULL. Header lines. */
int relay_write_headers(struct web *web, const struct request *req, const char *api,
                        enum method method, const char *target, const char *content_type,
                        const struct login *login, struct strbuf *out, struct aq_error *err);

/* ---- files.c ---- */

int files_open(struct web *web, struct aq_error *err);
void files_serve(struct web *web, struct request *req);

/* ---- console.c: files in the program ---- */

/* 'path' is below its own, "" its first page. */
void console_serve(struct web *web, struct request *req, const char *path, const char *base);

/* ---- config.c ---- */

/* What Backend.AI's WebUI reads at its start. */
void config_serve(struct web *web, struct request *req);

#endif
