/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - see proxy.h */
#include "proxy/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/server.h"
#include "http/exposition.h"
#include "proxy/check.h"
#include "proxy/connections.h"
#include "proxy/agent_link.h"
#include "proxy/place.h"
#include "proxy/port.h"
#include "proxy/route.h"
#include "proxy/serving.h"

static void proxy_on_waiting(struct listener *listener, void *data)
{
    browser_accept(data, listener, NULL);
}

static int proxy_open(void *self, struct front *front, const void *settings,
                      const struct link_identity *identity, struct aq_error *err)
{
    struct proxy *p = self;
    char address[HOST_PORT_MAX];
    const struct listener_options options = front_listener_options(front, address);
    int r;

    p->loop = &front->loop;
    p->front = front;
    p->settings = settings;
    connections_init(p);
    list_init(&p->ports);
    if (p->settings->domain) {
        struct strbuf url = STRBUF_INIT;

        place_write_domain(p->settings->common.public_url, p->settings->domain, &url);
        p->domain_url = strbuf_steal(&url);
    }
    manager_init(&p->manager, front);
    front_derive_secret(identity, "aliquot-proxy cookie 1", p->secret);
    p->routes = routes_new(p);
    r = agent_links_new(p->loop, identity, p->settings->run, &p->agent_links, err);
    if (r < 0)
        return r;
    p->serving = serving_new(p);
    r = listener_new(p->loop, &options, proxy_on_waiting, p, &p->listener, err);
    if (r < 0)
        return r;
    ports_open(p);
    log_info("serving %s on port %u", p->settings->common.public_url,
             (unsigned)listener_get_port(p->listener));
    return 0;
}

static void proxy_on_greet(void *self, struct msg_hello *hello)
{
    const struct proxy *p = self;

    hello->domain_url = p->domain_url;
}

static void proxy_on_connected(void *self)
{
    struct proxy *p = self;

    routes_on_connected(p->routes);
    serving_on_connected(p->serving);
}

static void proxy_on_message(void *self, const struct message *msg)
{
    struct proxy *p = self;

    if (msg->type == MSG_SERVING_ROUTES)
        serving_on_routes(p->serving, &msg->serving_routes);
    else
        manager_on_message(&p->manager, msg);
}

static void proxy_on_disconnected(void *self)
{
    struct proxy *p = self;

    manager_on_disconnected(&p->manager);
}

static void proxy_drain(void *self)
{
    struct proxy *p = self;

    p->is_draining = true;
    listener_close(AQ_TAKE(p->listener));
    ports_drain(p);
    browsers_drain(p);
    if (p->connection_count == 0)
        front_drained(p->front);
}

static void proxy_close(void *self)
{
    struct proxy *p = self;

    p->is_draining = false;
    listener_close(AQ_TAKE(p->listener));
    browsers_cut(p, NULL);
    ports_close(p);
    connections_done(p);
    serving_free(AQ_TAKE(p->serving));
    manager_done(&p->manager);
    routes_free(AQ_TAKE(p->routes));
    agent_links_free(AQ_TAKE(p->agent_links));
    explicit_bzero(p->secret, sizeof(p->secret));
    free(AQ_TAKE(p->domain_url));
}

static void proxy_write_metrics(void *data, struct strbuf *out)
{
    const struct proxy *p = data;

    exposition_single(out, "aliquot_proxy_manager_connected", "gauge",
                      "Whether the proxy is connected to its manager.",
                      front_is_connected(p->front));
    exposition_single(out, "aliquot_proxy_connections", "gauge", "Connections of browsers now.",
                      (double)p->connection_count);
    exposition_single(out, "aliquot_proxy_connections_total", "counter",
                      "Connections of browsers since the start.", (double)p->counts.connections);
    exposition_single(out, "aliquot_proxy_requests_total", "counter", "Requests passed on to apps.",
                      (double)p->counts.requests);
    exposition_single(out, "aliquot_proxy_upgrades_total", "counter",
                      "Of them those that became WebSockets and the like.",
                      (double)p->counts.upgrades);
    exposition_single(out, "aliquot_proxy_by_socket_total", "counter",
                      "Connections to apps that agents of this machine handed over.",
                      (double)p->counts.by_socket);
    exposition_single(out, "aliquot_proxy_by_tls_total", "counter",
                      "Connections to apps through their agents.", (double)p->counts.by_tls);
    exposition_single(out, "aliquot_proxy_by_manager_total", "counter",
                      "Connections to apps through the manager.", (double)p->counts.by_manager);
    exposition_single(out, "aliquot_proxy_refused_total", "counter",
                      "Requests for apps that were refused.", (double)p->counts.refused);
    exposition_single(out, "aliquot_proxy_bytes_in_total", "counter", "Bytes passed on to apps.",
                      (double)p->counts.bytes_in);
    exposition_single(out, "aliquot_proxy_bytes_out_total", "counter", "Bytes that apps sent.",
                      (double)p->counts.bytes_out);
    serving_write_metrics(p->serving, out);
}

const struct front_type proxy_type = {
    .name = "proxy",
    .purpose = "leads browsers to apps",
    .draining = "no more connections are taken",
    .mask = 077,
    .items = settings_items,
    .settings_size = sizeof(struct settings),
    .finish = settings_finish,
    .checks = proxy_checks,
    .open = proxy_open,
    .on_greet = proxy_on_greet,
    .on_connected = proxy_on_connected,
    .on_message = proxy_on_message,
    .on_disconnected = proxy_on_disconnected,
    .drain = proxy_drain,
    .close = proxy_close,
    .write_metrics = proxy_write_metrics,
};
