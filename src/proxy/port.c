/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - see port.h */
#include "proxy/port.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/url.h"

#define CHECK_MSEC 5000
/* Clients that lost their session try again for a while; they must not meet another's. */
#define REST_USEC (60 * USEC_PER_SEC)

static void port_on_waiting(struct listener *listener, void *data)
{
    struct port *port = data;

    if (port->is_tcp)
        tunnel_accept(port);
    else
        browser_accept(port->proxy, listener, port);
}

static int port_listen(struct port *port, struct aq_error *err)
{
    const struct settings *s = port->proxy->settings;
    char address[HOST_PORT_MAX];
    const struct listener_options options = { .address = host_port_write(s->common.listen.host,
                                                                         port->number, address),
                                              .tls = port->is_tcp ? NULL : port->proxy->front->tls,
                                              .insecure = port->is_tcp || s->common.insecure };

    return listener_new(port->proxy->loop, &options, port_on_waiting, port, &port->listener, err);
}

static void port_free(struct port *port)
{
    list_remove(&port->link);
    listener_close(port->listener);
    free(port);
}

static void port_close(struct port *port, const char *why)
{
    log_info("port %u of app %s is closed: %s", (unsigned)port->number, port->of.app, why);
    listener_close(AQ_TAKE(port->listener));
    tunnels_cut(port);
    browsers_cut(port->proxy, port);
    port->rests_until_usec = clock_monotonic_usec() + REST_USEC;
}

/* ---- looking after them ---- */

static void port_look_after(struct port *port)
{
    const struct msg_app_connect want = { .request_id = port->check_id,
                                          .session_id = port->of.session_id,
                                          .app = port->of.app,
                                          .access_key = port->of.access_key };

    if (!port->listener && port->rests_until_usec <= clock_monotonic_usec())
        port_free(port);
    else if (port->listener && !port->connection_count
             && port->of.expires_usec <= clock_realtime_usec())
        port_close(port, "nobody has used it for as long as a cookie lasts");
    else if (port->listener)
        manager_check(&port->proxy->manager, &want);
}

static void port_on_time(void *data)
{
    struct proxy *p = data;

    p->port_timer = NULL;
    for (struct list *it = p->ports.next, *next = it->next; it != &p->ports;
         it = next, next = it->next)
        port_look_after(LIST_ENTRY(it, struct port, link));
    p->port_timer = defer_call(p->loop, CHECK_MSEC, port_on_time, p);
}

void ports_on_denied(struct proxy *p, const struct uuid *check_id, const char *why)
{
    LIST_FOREACH(it, &p->ports) {
        struct port *port = LIST_ENTRY(it, struct port, link);

        if (port->listener && uuid_equals(&port->check_id, check_id)) {
            port_close(port, why);
            return;
        }
    }
}

/* ---- taking one ---- */

static struct port *port_find_number(const struct proxy *p, uint16_t number)
{
    LIST_FOREACH(it, &p->ports) {
        struct port *port = LIST_ENTRY(it, struct port, link);

        if (port->number == number)
            return port;
    }
    return NULL;
}

static struct port *port_find_of(const struct proxy *p, const struct cookie *of, bool is_tcp)
{
    LIST_FOREACH(it, &p->ports) {
        struct port *port = LIST_ENTRY(it, struct port, link);

        if (port->listener && port->is_tcp == is_tcp
            && uuid_equals(&port->of.session_id, &of->session_id)
            && strcmp(port->of.app, of->app) == 0
            && strcmp(port->of.access_key, of->access_key) == 0)
            return port;
    }
    return NULL;
}

/* Ports that rest count, or a user could take all by one short session after the other. */
static int port_check_user(const struct proxy *p, const struct cookie *of, struct aq_error *err)
{
    int64_t max = p->settings->user_ports_max, count = 0;

    LIST_FOREACH(it, &p->ports)
        count += strcmp(LIST_ENTRY(it, struct port, link)->of.access_key, of->access_key) == 0;
    if (count < max)
        return 0;
    log_info(
        "app %s of access key %s gets no port: it has %lld, [proxy] max-ports-per-user is %lld",
        of->app, of->access_key, (long long)count, (long long)max);
    return aq_fail(err, EDQUOT,
                   "your apps have %lld ports of the proxy, as many as one user may have: end a "
                   "session whose apps you do not need and try again after a minute, or ask the "
                   "administrator to raise [proxy] max-ports-per-user, which is %lld",
                   (long long)count, (long long)max);
}

/* NULL = try another. */
static struct port *port_add(struct proxy *p, const struct cookie *of, bool is_tcp, uint16_t number)
{
    struct aq_error err = { 0 };
    struct port *port;

    if (port_find_number(p, number))
        return NULL;
    port = aq_alloc(sizeof(*port));
    port->proxy = p;
    port->number = number;
    port->is_tcp = is_tcp;
    port->of = *of;
    port->check_id = uuid_random();
    list_init(&port->tunnels);
    list_add(&p->ports, &port->link);
    if (port_listen(port, &err) == 0)
        return port;
    port_free(port);
    return NULL;
}

int ports_take(struct proxy *p, const struct cookie *of, bool is_tcp, uint16_t wanted,
               struct port **ret, struct aq_error *err)
{
    const struct settings *s = p->settings;
    uint32_t count = s->port_max ? (uint32_t)s->port_max - s->port_min + 1 : 0;
    uint32_t first = count ? randombytes_uniform(count) : 0;
    int r;

    if (!count)
        return aq_fail(err, ENOENT, "this proxy has no ports for apps: [proxy] ports is not set");
    if ((*ret = port_find_of(p, of, is_tcp))) {
        (*ret)->of.expires_usec = of->expires_usec;
        return 0;
    }
    if ((r = port_check_user(p, of, err)) < 0)
        return r;
    if (wanted >= s->port_min && wanted <= s->port_max)
        *ret = port_add(p, of, is_tcp, wanted);
    for (uint32_t i = 0; !*ret && i < count; i++)
        *ret = port_add(p, of, is_tcp, (uint16_t)(s->port_min + (first + i) % count));
    if (*ret)
        return 0;
    log_warning("app %s gets no port: all ports are taken, [proxy] ports is %s", of->app, s->ports);
    return aq_fail(err, EAGAIN,
                   "all ports of the proxy are taken: try again later, or ask the administrator "
                   "for a wider range in [proxy] ports, which is %s",
                   s->ports);
}

/* ---- who may connect to one without a cookie ---- */

struct port *ports_find(const struct proxy *p, const char *token, const char *address)
{
    LIST_FOREACH(it, &p->ports) {
        struct port *port = LIST_ENTRY(it, struct port, link);

        for (size_t i = 0; port->listener && i < port->address_count; i++)
            if (strcmp(port->addresses[i].token, token) == 0
                && strcmp(port->addresses[i].text, address) == 0)
                return port;
    }
    return NULL;
}

void port_admit(struct port *port, const char *address, const char *token)
{
    struct port_address *at;
    size_t i = 0;

    while (i < port->address_count && strcmp(port->addresses[i].text, address) != 0)
        i++;
    if (i == PORT_ADDRESSES_MAX) {
        i--;
        memmove(port->addresses, port->addresses + 1, i * sizeof(port->addresses[0]));
    }
    at = &port->addresses[i];
    port->address_count = AQ_MAX(port->address_count, i + 1);
    (void)snprintf(at->text, sizeof(at->text), "%s", address);
    (void)snprintf(at->token, sizeof(at->token), "%s", token);
    at->until_usec = port->of.expires_usec;
}

bool port_admits(const struct port *port, const char *address)
{
    for (size_t i = 0; i < port->address_count; i++)
        if (strcmp(port->addresses[i].text, address) == 0)
            return port->addresses[i].until_usec > clock_realtime_usec();
    return false;
}

void port_write_url(const struct port *port, struct strbuf *out)
{
    const struct settings *s = port->proxy->settings;
    char address[HOST_PORT_MAX];
    struct aq_error err = { 0 };
    struct url url;

    if (url_parse(s->common.public_url, &url, &err) < 0)
        return; /* settings_load() has read it */
    strbuf_addf(out, "%s://%s",
                port->is_tcp              ? "tcp"
                : port->proxy->front->tls ? "https"
                                          : "http",
                host_port_write(url.address.host, port->number, address));
}

/* ---- life ---- */

void ports_open(struct proxy *p)
{
    p->port_timer = defer_call(p->loop, CHECK_MSEC, port_on_time, p);
}

void ports_drain(struct proxy *p)
{
    defer_cancel(AQ_TAKE(p->port_timer));
    LIST_FOREACH(it, &p->ports)
        listener_close(AQ_TAKE(LIST_ENTRY(it, struct port, link)->listener));
}

void ports_close(struct proxy *p)
{
    defer_cancel(AQ_TAKE(p->port_timer));
    for (struct list *it = p->ports.next, *next = it->next; it != &p->ports;
         it = next, next = it->next) {
        struct port *port = LIST_ENTRY(it, struct port, link);

        tunnels_cut(port);
        port_free(port);
    }
}
