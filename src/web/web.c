/* SPDX-License-Identifier: Apache-2.0 */
/* web.c - see web/web.h */
#include "web/web.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "http/exposition.h"
#include "http/problem.h"
#include "web/check.h"

#define ORIGINS_MSEC 15000 /* between questions where pages may connect */
#define CONNECT_MSEC 5000  /* to a manager */

/* ---- what no route has ---- */

static void web_on_other(struct request *req, void *data)
{
    struct web *web = data;
    const char *target = request_get_target(req);
    enum method method = request_get_head(req)->method;
    struct aq_error err = { 0 };

    if (method == METHOD_OPTIONS && request_get_header(req, "Access-Control-Request-Method"))
        request_reply_empty(req, 204); /* who may is in page_guard() */
    else if (relay_is_asked(req))
        relay_serve(web, req);
    else if (strncmp(target, "/server/", 8) == 0 || strncmp(target, "/pipeline/", 10) == 0) {
        aq_fail_kind(&err, ENOENT, "url-not-found", "Unknown URL path: %.200s",
                     request_get_path(req));
        request_fail(req, &err);
    } else if (method == METHOD_GET || method == METHOD_HEAD) {
        files_serve(web, req);
    } else {
        aq_fail_kind(&err, EOPNOTSUPP, "method-not-allowed", "files are read");
        request_fail(req, &err);
    }
}

static const struct route web_other = { METHOD_GET,
                                        "/",
                                        0,
                                        web_on_other,
                                        .doc = "What is passed on, and files",
                                        .flags = ROUTE_STREAM_BODY,
                                        .body_max = UINT64_MAX };

/* ---- the manager ---- */

const char *web_get_api(const struct web *web)
{
    return web->settings->api.items[web->api];
}

void web_leave_api(struct web *web, const char *api)
{
    if (web_get_api(web) == api)
        web->api = (web->api + 1) % web->settings->api.count;
}

static void web_ask_origins(struct web *web);

static void web_on_time(void *data)
{
    struct web *web = data;

    web->timer = defer_call(web->loop, ORIGINS_MSEC, web_on_time, web);
    web_ask_origins(web);
}

static bool web_is_plain_url(const char *url)
{
    return url && strncmp(url, "http", 4) == 0 && !strpbrk(url, " ;,'\"\\\n");
}

/* Proxies and storage hosts, with their WebSockets. */
static void web_on_origins(void *data, const json_t *result, const struct aq_error *err,
                           int64_t retry_sec)
{
    const json_t *list = json_object_get(result, "origins"), *item;
    const char *proxy = json_string_value(json_object_get(result, "proxy"));
    struct web *web = data;
    size_t i;

    (void)err;
    (void)retry_sec;
    web->origins_ask = NULL;
    if (!result)
        return;
    strbuf_clear(&web->proxy_url);
    if (web_is_plain_url(proxy))
        strbuf_adds(&web->proxy_url, proxy);
    strbuf_clear(&web->origins);
    json_array_foreach(list, i, item) {
        const char *url = json_string_value(item);

        if (web_is_plain_url(url))
            strbuf_addf(&web->origins, " %s ws%s", url, url + strlen("http"));
    }
}

static void web_ask_origins(struct web *web)
{
    struct aq_error err = { 0 };

    if (manager_is_connected(&web->manager) && !web->origins_ask)
        (void)manager_ask(&web->manager, "origins", json_object(), web_on_origins, web,
                          &web->origins_ask, &err);
}

static void web_on_connected(void *self)
{
    struct web *web = self;

    logins_on_connected(&web->logins);
    if (!web->origins.len) /* else a manager that has just begun may not know all of them again */
        web_ask_origins(web);
}

static void web_on_message(void *self, const struct message *msg)
{
    struct web *web = self;

    if (msg->type == MSG_WEB_ANSWER)
        manager_take_answer(&web->manager, &msg->web_answer);
    else if (msg->type == MSG_WEB_ENDED)
        logins_on_ended(&web->logins, &msg->web_ended);
}

static void web_on_disconnected(void *self)
{
    struct web *web = self;

    manager_on_disconnected(&web->manager);
    logins_on_disconnected(&web->logins);
}

/* ---- life ---- */

static int web_add_routes(struct web *web, struct aq_error *err)
{
    int r = front_server_init(&web->http, web->front, err);

    if (r == 0)
        r = router_add(web->http.router, entry_routes, entry_route_count, web, err);
    if (r == 0)
        r = router_add(web->http.router, state_routes, state_route_count, web, err);
    if (r == 0)
        router_set_fallback(web->http.router, &web_other, web);
    return r;
}

/* Whose places connections take: proxies' are everybody's. */
static bool web_name_peer(const char *address, char ret[SERVER_PEER_MAX], void *data)
{
    const struct web *web = data;

    return client_address_name_peer(address, &web->proxies, ret);
}

static void web_open_client(struct web *web)
{
    const struct client_options options = {
        .connect_msec = CONNECT_MSEC,
        .connections_max = (unsigned)web->settings->common.connections_max,
    };

    web->client = client_new(web->loop, &options);
}

static void web_free(struct web *web)
{
    front_server_done(&web->http);
    aq_closep(&web->folder);
    web->folder = -1;
    strbuf_done(&web->origins);
    strbuf_done(&web->proxy_url);
    explicit_bzero(web->secret, sizeof(web->secret));
}

static void web_settle(void *self)
{
    struct web *web = self;

    if (front_server_has_ended(&web->http))
        web_free(web);
}

static int web_open(void *self, struct front *front, const void *settings,
                    const struct link_identity *identity, struct aq_error *err)
{
    struct web *web = self;
    struct server_options options = {
        .app = { .guard = page_guard, .guard_data = web, .name_peer = web_name_peer }
    };
    int r;

    web->loop = &front->loop;
    web->front = front;
    web->settings = settings;
    web->folder = -1;
    web->proxies = (struct address_list){ .items = web->settings->trusted_proxies.items,
                                          .count = web->settings->trusted_proxies.count };
    list_init(&web->relays);
    strbuf_init(&web->origins);
    strbuf_init(&web->proxy_url);
    manager_init(&web->manager, front);
    front_derive_secret(identity, "aliquot-web browser 1", web->secret);
    web_open_client(web);
    if ((r = files_open(web, err)) < 0 || (r = web_add_routes(web, err)) < 0)
        return r;
    logins_open(&web->logins, web->loop, &web->manager);
    if ((r = front_server_open(&web->http, &options, web_settle, err)) < 0)
        return r;
    web->timer = defer_call(web->loop, ORIGINS_MSEC, web_on_time, web);
    log_info("serving %s", web->settings->common.public_url);
    return 0;
}

static void web_drain(void *self)
{
    struct web *web = self;

    front_server_drain(&web->http);
}

static void web_close(void *self)
{
    struct web *web = self;

    defer_cancel(AQ_TAKE(web->timer));
    relays_cut(web);
    front_server_close(&web->http);
    logins_close(&web->logins);
    manager_done(&web->manager);
    client_free(AQ_TAKE(web->client));
    web_settle(web);
}

static void web_write_metrics(void *self, struct strbuf *out)
{
    const struct web *w = self;

    exposition_single(out, "aliquot_web_manager_connected", "gauge",
                      "Whether the web server is connected to its manager.",
                      manager_is_connected(&w->manager));
    exposition_single(out, "aliquot_web_known_logins", "gauge",
                      "Logins that were used in the last minute.", (double)w->logins.by_hash.count);
    exposition_single(out, "aliquot_web_logins_total", "counter", "Logins since the start.",
                      (double)w->counts.logins);
    exposition_single(out, "aliquot_web_failed_logins_total", "counter",
                      "Logins that were refused.", (double)w->counts.failed_logins);
    exposition_single(out, "aliquot_web_requests_total", "counter",
                      "Requests that were passed on to the manager.", (double)w->counts.passed);
    exposition_single(out, "aliquot_web_upgrades_total", "counter",
                      "Of them those that became WebSockets.", (double)w->counts.upgrades);
    exposition_single(out, "aliquot_web_refused_total", "counter",
                      "Requests that were refused: pages of other origins, nobody logged in, no "
                      "manager.",
                      (double)w->counts.refused);
    exposition_single(out, "aliquot_web_bytes_in_total", "counter",
                      "Bytes passed on to the manager.", (double)w->counts.bytes_in);
    exposition_single(out, "aliquot_web_bytes_out_total", "counter", "Bytes passed on to browsers.",
                      (double)w->counts.bytes_out);
}

const struct front_type web_type = {
    .name = "web",
    .purpose = "serves browsers",
    .draining = "no more requests are taken",
    .mask = 077,
    .items = settings_items,
    .option = "static",
    .settings_size = sizeof(struct settings),
    .finish = settings_finish,
    .checks = web_checks,
    .open = web_open,
    .on_connected = web_on_connected,
    .on_message = web_on_message,
    .on_disconnected = web_on_disconnected,
    .drain = web_drain,
    .close = web_close,
    .write_metrics = web_write_metrics,
};
