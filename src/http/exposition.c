/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format, and the listener that serves it. */
#include "http/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/memory.h"
#include "http/server.h"
#include "http/tls.h"

void exposition_family(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void exposition_begin(struct strbuf *out, const char *name)
{
    strbuf_adds(out, name);
}

void exposition_label(struct strbuf *out, const char *label, const char *value)
{
    bool is_first = out->len && out->data[out->len - 1] != '"';

    strbuf_addf(out, "%c%s=\"", is_first ? '{' : ',', label);
    for (; *value; value++) {
        if (*value == '\n')
            strbuf_adds(out, "\\n");
        else if (*value == '"' || *value == '\\')
            strbuf_addf(out, "\\%c", *value);
        else
            strbuf_addc(out, *value);
    }
    strbuf_addc(out, '"');
}

void exposition_value(struct strbuf *out, double value)
{
    struct jsonw w = jsonw_make(out);

    if (out->len && out->data[out->len - 1] == '"')
        strbuf_addc(out, '}');
    strbuf_addc(out, ' ');
    if (isfinite(value))
        jsonw_double(&w, value);
    else
        strbuf_adds(out, "NaN");
    strbuf_addc(out, '\n');
}

static void exposition_part(struct strbuf *out, const char *name, const char *part,
                            const char *const *labels)
{
    strbuf_addf(out, "%s_%s", name, part);
    for (size_t i = 0; labels[i]; i += 2)
        exposition_label(out, labels[i], labels[i + 1]);
}

void exposition_histogram(struct strbuf *out, const char *name, const char *const *labels,
                          const double *bounds, size_t bound_count, const int64_t *counts,
                          double sum)
{
    int64_t total = 0;
    char bound[32];

    for (size_t i = 0; i <= bound_count; i++) {
        if (i < bound_count)
            (void)snprintf(bound, sizeof(bound), "%g", bounds[i]);
        total += counts[i];
        exposition_part(out, name, "bucket", labels);
        exposition_label(out, "le", i < bound_count ? bound : "+Inf");
        exposition_value(out, (double)total);
    }
    exposition_part(out, name, "sum", labels);
    exposition_value(out, sum);
    exposition_part(out, name, "count", labels);
    exposition_value(out, (double)total);
}

void exposition_single(struct strbuf *out, const char *name, const char *type, const char *help,
                       double value)
{
    exposition_family(out, name, type, help);
    exposition_begin(out, name);
    exposition_value(out, value);
}

/* ---- GET /metrics ---- */

struct metrics_server {
    struct router *router;
    struct server *server;
    struct listener *listener;
    struct tls_context *tls;
    void (*write)(void *data, struct strbuf *out);
    bool (*is_healthy)(void *data);
    void *data;
};

static void exposition_on_metrics(struct request *req, void *data)
{
    const struct metrics_server *m = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    m->write(m->data, &out);
    request_reply(req, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, out.len);
}

static const struct route metrics_routes[] = {
    { METHOD_GET, "/metrics", 0, exposition_on_metrics, NULL,
      "Metrics in Prometheus' text format" },
};

static void exposition_on_health(struct request *req, void *data)
{
    const struct metrics_server *m = data;
    bool is_healthy = m->is_healthy(m->data);
    const char *text = is_healthy ? "ok\n" : "not ready\n";

    request_reply(req, is_healthy ? 200 : 503, "text/plain", text, strlen(text));
}

static const struct route health_routes[] = {
    { METHOD_GET, "/health", 0, exposition_on_health, NULL, "Whether this serves" },
};

static void exposition_release(void *data)
{
    struct metrics_server *m = data;

    server_free(m->server);
    router_free(m->router);
    tls_context_free(m->tls);
    free(m);
}

void metrics_close(struct metrics_server *server)
{
    if (server)
        server_stop(server->server, 0, exposition_release, server);
}

uint16_t metrics_port(const struct metrics_server *server)
{
    return listener_get_port(server->listener);
}

static int exposition_open_tls(struct metrics_server *m, const struct metrics_conf *conf,
                               struct aq_error *err)
{
    const struct tls_options options = { .is_server = true,
                                         .cert_file = conf->tls_cert,
                                         .key_file = conf->tls_key };

    if (!conf->tls_cert && !conf->tls_key)
        return 0;
    if (!conf->tls_cert || !conf->tls_key)
        return aq_fail_field(err, EINVAL, "metrics.tls-cert",
                             "tls-cert and tls-key belong together: set both or neither");
    return tls_context_new(&options, &m->tls, err);
}

static int exposition_open_server(struct metrics_server *m, uv_loop_t *loop,
                                  const struct metrics_conf *conf, struct aq_error *err)
{
    struct server_options options = { .limits = { .connections_max = 64 } };
    struct listener_options listen = { .address = conf->address, .insecure = conf->insecure };
    int r;

    m->router = router_new();
    r = router_add(m->router, metrics_routes, AQ_COUNT(metrics_routes), m, err);
    if (r == 0 && m->is_healthy)
        r = router_add(m->router, health_routes, AQ_COUNT(health_routes), m, err);
    options.app.router = m->router;
    listen.tls = m->tls;
    m->server = server_new(loop, &options);
    return r < 0 ? r : server_listen(m->server, &listen, &m->listener, err);
}

int metrics_listen(uv_loop_t *loop, const struct metrics_conf *conf, struct metrics_server **ret,
                   struct aq_error *err)
{
    struct metrics_server *m;
    int r;

    *ret = NULL;
    if (!conf->address || !conf->address[0] || strcmp(conf->address, "off") == 0)
        return 0;
    m = aq_alloc(sizeof(*m));
    m->write = conf->write;
    m->is_healthy = conf->is_healthy;
    m->data = conf->data;
    r = exposition_open_tls(m, conf, err);
    if (r == 0)
        r = exposition_open_server(m, loop, conf, err);
    if (r == 0)
        *ret = m;
    else if (m->server)
        metrics_close(m);
    else
        exposition_release(m);
    return r;
}
