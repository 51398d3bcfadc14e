/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - see proxy.h */
#include "proxy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/host_port.h"
#include "base/log.h"
#include "http/exposition.h"
#include "proxy/check.h"
#include "proxy/connections.h"
#include "proxy/port.h"

static void proxy_on_waiting(struct listener *listener, void *data)
{
    browser_accept(data, listener, NULL);
}

static int proxy_listen(struct proxy *p, struct aq_error *err)
{
    const struct settings *s = p->settings;
    const struct tls_options tls = { .is_server = true,
                                     .cert_file = s->common.tls_cert,
                                     .key_file = s->common.tls_key };
    char address[HOST_PORT_MAX];
    struct listener_options options = { .address = host_port_write(s->common.listen.host,
                                                                   s->common.listen.port, address),
                                        .insecure = s->common.insecure };
    int r = s->common.tls_cert ? tls_context_new(&tls, &p->tls, err) : 0;

    options.tls = p->tls;
    if (r == 0)
        r = listener_new(p->loop, &options, proxy_on_waiting, p, &p->listener, err);
    return r;
}

static void proxy_on_denied(void *data, const struct uuid *request_id, const char *text)
{
    ports_on_denied(data, request_id, text);
}

static int proxy_open(void *self, struct front *front, uv_loop_t *loop, const void *settings,
                      const struct link_identity *identity, struct aq_error *err)
{
    struct proxy *p = self;
    int r;

    p->loop = loop;
    p->front = front;
    p->settings = settings;
    connections_init(p);
    list_init(&p->ports);
    if ((r = cookie_init(err)) < 0)
        return r;
    cookie_derive(identity->key, p->secret);
    if ((r = proxy_listen(p, err)) < 0 || (r = ports_open(p, err)) < 0)
        return r;
    r = manager_new(loop, p->settings, identity, front, proxy_on_denied, p, &p->manager, err);
    if (r == 0)
        log_info("serving %s on port %u", p->settings->common.public_url,
                 (unsigned)listener_get_port(p->listener));
    return r;
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
    if (p->loop) {
        browsers_cut(p, NULL);
        ports_close(p);
        connections_done(p);
    }
    manager_free(AQ_TAKE(p->manager));
    tls_context_free(AQ_TAKE(p->tls));
    explicit_bzero(p->secret, sizeof(p->secret));
}

static void proxy_reload(void *self)
{
    struct proxy *p = self;
    struct aq_error err = { 0 };

    if (!p->tls)
        return;
    if (tls_context_reload(p->tls, &err) < 0)
        log_error("the certificate stays as it was: %s", err.text);
    else
        log_info("the certificate was read again");
}

static bool proxy_write_metrics(void *data, struct strbuf *out)
{
    const struct proxy *p = data;

    exposition_single(out, "aliquot_proxy_manager_connected", "gauge",
                      "Whether the proxy is connected to its manager.",
                      manager_is_connected(p->manager));
    exposition_single(out, "aliquot_proxy_connections", "gauge", "Connections of browsers now.",
                      (double)p->connection_count);
    exposition_single(out, "aliquot_proxy_connections_total", "counter",
                      "Connections of browsers since the start.", (double)p->counts.connections);
    exposition_single(out, "aliquot_proxy_requests_total", "counter", "Requests passed on to apps.",
                      (double)p->counts.requests);
    exposition_single(out, "aliquot_proxy_upgrades_total", "counter",
                      "Of them those that became WebSockets and the like.",
                      (double)p->counts.upgrades);
    exposition_single(out, "aliquot_proxy_refused_total", "counter",
                      "Requests for apps that were refused.", (double)p->counts.refused);
    exposition_single(out, "aliquot_proxy_bytes_in_total", "counter", "Bytes passed on to apps.",
                      (double)p->counts.bytes_in);
    exposition_single(out, "aliquot_proxy_bytes_out_total", "counter", "Bytes that apps sent.",
                      (double)p->counts.bytes_out);
    return strbuf_ok(out);
}

const struct front_type proxy_type = {
    .name = "proxy",
    .purpose = "leads browsers to apps",
    .draining = "no more connections are taken",
    .mask = 077,
    .items = settings_items,
    .settings_size = sizeof(struct settings),
    .finish = settings_finish,
    .check = proxy_check,
    .open = proxy_open,
    .drain = proxy_drain,
    .close = proxy_close,
    .reload = proxy_reload,
    .write_metrics = proxy_write_metrics,
};
