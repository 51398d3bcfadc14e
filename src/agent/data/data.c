/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - see data.h: who is let in, and where to */
#include "agent/data/data_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/exposition.h"

int data_connect(struct data_path *path, const char *text, const char *proxy, app_socket_fn *fn,
                 void *data, struct app_socket **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int ns = -1;
    struct ticket ticket;
    int r = ticket_read(path->key, text, strlen(text), clock_realtime_usec(), &ticket, err);

    if (r < 0)
        return r;
    if (strcmp(ticket.agent, path->agent_id) != 0)
        return aq_fail_kind(err, EACCES, "other-agent",
                            "the ticket is for agent '%s', not for "
                            "'%s'",
                            ticket.agent, path->agent_id);
    if (proxy && strcmp(ticket.proxy, proxy) != 0)
        return aq_fail_kind(err, EACCES, "other-proxy", "the ticket is for '%s', not for '%s'",
                            ticket.proxy, proxy);
    r = path->open_network(path->data, &ticket.kernel_id, &ns, err);
    return r < 0 ? r : app_socket_connect(path->loop, ns, ticket.port, fn, data, ret, err);
}

struct message data_refusal(const struct aq_error *err)
{
    return (struct message){ .type = MSG_DATA_REFUSED,
                             .data_refused = { .kind = err->kind ? err->kind : "connect-failed",
                                               .text = err->text } };
}

static void data_path_listen(struct data_path *path, const struct data_conf *conf)
{
    char address[HOST_PORT_MAX];
    struct aq_error err = { 0 };

    if (data_socket_new(path, conf, &path->socket, &err) < 0)
        log_warning("proxies of this machine reach apps through the manager: %s", err.text);
    err = (struct aq_error){ 0 };
    if (conf->host && data_server_new(path, conf, &path->server, &err) < 0)
        log_warning("proxies of other machines reach apps through the manager: %s", err.text);
    if (path->server)
        path->address = aq_strdup(
            conf->address
                ? conf->address
                : host_port_write(conf->host, data_server_get_port(path->server), address));
    else
        path->address = aq_strdup("-");
}

int data_path_new(const struct data_conf *conf, struct data_path **ret, struct aq_error *err)
{
    struct data_path *path = aq_alloc(sizeof(*path));
    int r;

    *path = (struct data_path){ .loop = conf->loop,
                                .agent_id = aq_strdup(conf->agent_id),
                                .open_network = conf->open_network,
                                .data = conf->data };
    r = ticket_key_new(conf->ca, &path->key, err);
    if (r < 0) {
        data_path_free(path);
        return r;
    }
    data_path_listen(path, conf);
    *ret = path;
    return 0;
}

void data_path_free(struct data_path *path)
{
    if (!path)
        return;
    data_socket_free(path->socket);
    data_server_free(path->server);
    ticket_key_free(path->key);
    free(path->agent_id);
    free(path->address);
    free(path);
}

const char *data_path_get_address(const struct data_path *path)
{
    return path->socket || path->server ? path->address : NULL;
}

void data_path_write_metrics(const struct data_path *path, struct strbuf *out)
{
    exposition_single(out, "aliquot_agent_data_streams", "gauge",
                      "Connections to apps that pass this agent, by TLS, now.",
                      path->server ? (double)data_server_count(path->server) : 0);
    exposition_single(out, "aliquot_agent_data_handed_over_total", "counter",
                      "Connections to apps handed over to proxies of this machine.",
                      (double)path->counts.handed_over);
    exposition_single(out, "aliquot_agent_data_opened_total", "counter",
                      "Connections to apps opened for proxies of other machines.",
                      (double)path->counts.opened);
    exposition_single(out, "aliquot_agent_data_refused_total", "counter",
                      "Connections of the data path that were refused.",
                      (double)path->counts.refused);
    exposition_single(out, "aliquot_agent_data_bytes_in_total", "counter",
                      "Bytes passed on to apps by TLS.", (double)path->counts.bytes_in);
    exposition_single(out, "aliquot_agent_data_bytes_out_total", "counter",
                      "Bytes passed on from apps by TLS.", (double)path->counts.bytes_out);
}
