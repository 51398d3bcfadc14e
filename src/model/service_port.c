/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a container that others may connect to. */
#include "model/service_port.h"
#include "base/json_load.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define NUMBER_MAX 9 /* digits: no overflow */

static const char *const protocols[] = { "tcp", "http", "preopen", "vnc", "rdp" };

/* Of the runner (2000 to 2003), sshd and ttyd in Backend.AI's containers. */
static bool service_port_is_reserved(long port)
{
    return (port >= 2000 && port <= 2003) || port == 2200 || port == SERVICE_TERMINAL_PORT;
}

static const struct service *service_port_find_owner(const struct services *services, long port)
{
    for (size_t i = 0; i < services->count; i++)
        for (size_t p = 0; p < services->items[i].count; p++)
            if (services->ports[services->items[i].first + p] == port)
                return &services->items[i];
    return NULL;
}

/* Add a port to the last service. */
static int service_port_add(struct services *services, long port, long min, long max,
                            const char *field, struct aq_error *err)
{
    const struct service *owner = service_port_find_owner(services, port);

    if (port > max)
        return aq_fail_field(err, EINVAL, field, "port %ld must be smaller than %ld", port,
                             max + 1);
    if (port < min)
        return aq_fail_field(err, EINVAL, field, "port %ld must be larger than %ld", port, min - 1);
    if (service_port_is_reserved(port))
        return aq_fail_field(err, EINVAL, field,
                             "port %ld is reserved, as 2000 to 2003, 2200 and 7681 are; choose "
                             "another",
                             port);
    if (owner)
        return aq_fail_field(err, EINVAL, field, "port %ld is already used by '%s'", port,
                             owner->name);
    if (services->port_count == SERVICE_PORTS_MAX)
        return aq_fail_field(err, E2BIG, field, "a container can have %d service ports at most",
                             SERVICE_PORTS_MAX);
    services->ports[services->port_count++] = (uint16_t)port;
    services->items[services->count - 1].count++;
    return 0;
}

static struct service *service_port_add_service(struct services *services, const char *protocol)
{
    struct service *service = &services->items[services->count++];

    *service = (struct service){ .protocol = protocol, .first = services->port_count };
    return service;
}

/* ---- the image's label ---- */

static int service_port_fail_malformed(struct aq_error *err, const char *label)
{
    return aq_fail_field(err, EINVAL, SERVICE_LABEL,
                         "Invalid service-ports format at '%.60s' in the image's label %s: "
                         "NAME:PROTOCOL:PORT or NAME:PROTOCOL:[PORT,PORT] is wanted",
                         label, SERVICE_LABEL);
}

/* Digits at *at; -1 if there are none, or too many. */
static long service_port_take_number(const char **at)
{
    size_t len = strspn(*at, "0123456789");
    long value = len && len <= NUMBER_MAX ? strtol(*at, NULL, 10) : -1;

    *at += len;
    return value;
}

/* "PORT" or "[PORT,PORT]"; with 'is_kept' they become the last service's. */
static int service_port_take_ports(struct services *services, const char **at, bool is_kept,
                                   const char *item, struct aq_error *err)
{
    bool is_list = **at == '[';
    int r = 0;

    do {
        long port;

        *at += is_list;
        port = service_port_take_number(at);
        if (port < 0)
            return service_port_fail_malformed(err, item);
        if (is_kept)
            r = service_port_add(services, port, 1025, 65534, SERVICE_LABEL, err);
    } while (r == 0 && is_list && **at == ',');
    if (r == 0 && is_list && *(*at)++ != ']')
        return service_port_fail_malformed(err, item);
    return r;
}

/* NULL: there is no such protocol. */
static const char *service_port_find_protocol(const char *text, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(protocols); i++)
        if (strlen(protocols[i]) == len && memcmp(protocols[i], text, len) == 0)
            return protocols[i];
    return NULL;
}

static int service_port_take_service(struct services *services, const char **at,
                                     struct aq_error *err)
{
    const char *item = *at, *word, *protocol;
    size_t name_len = strspn(item, WORD "-"), len;
    bool is_kept;

    word = item + name_len + 1;
    if (!name_len || item[name_len] != ':' || !(len = strspn(word, WORD)) || word[len] != ':')
        return service_port_fail_malformed(err, item);
    if (name_len > SERVICE_NAME_MAX)
        return aq_fail_field(err, EINVAL, SERVICE_LABEL,
                             "a service's name has more than %d characters: '%.70s...'",
                             SERVICE_NAME_MAX, item);
    protocol = service_port_find_protocol(word, len);
    is_kept = len != 3 || memcmp(word, "pty", 3) != 0;
    if (is_kept && !protocol)
        return aq_fail_field(err, EINVAL, SERVICE_LABEL,
                             "Unsupported service protocol '%.*s': it is none of tcp, http, "
                             "preopen, vnc, rdp",
                             (int)AQ_MIN(len, (size_t)40), word);
    if (is_kept && services->count == SERVICE_PORTS_MAX)
        return aq_fail_field(err, E2BIG, SERVICE_LABEL,
                             "a container can have %d service ports at most", SERVICE_PORTS_MAX);
    if (is_kept)
        memcpy(service_port_add_service(services, protocol)->name, item, name_len);
    *at = word + len + 1;
    return service_port_take_ports(services, at, is_kept, item, err);
}

int services_add_label(struct services *services, const char *label, struct aq_error *err)
{
    const char *at = label;
    int r = 0;

    while (r == 0 && *at) {
        const char *item = at;

        r = service_port_take_service(services, &at, err);
        if (r == 0 && *at && *at++ != ',')
            r = service_port_fail_malformed(err, item);
    }
    return r;
}

void services_mark_endpoints(struct services *services, const char *label)
{
    for (const char *at = label; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");

        for (size_t i = 0; i < services->count; i++)
            if (strlen(services->items[i].name) == len
                && memcmp(services->items[i].name, at, len) == 0)
                services->items[i].is_inference = true;
        at += len;
    }
}

/* ---- what a session opens ---- */

static int service_port_add_opened(struct services *services, int64_t port, struct aq_error *err)
{
    static const char field[] = "preopen_ports";

    if (port < 0 || port > INT32_MAX)
        return aq_fail_field(err, EINVAL, field, "preopen_ports must be a list of port numbers");
    if (services->count == SERVICE_PORTS_MAX)
        return aq_fail_field(err, E2BIG, field, "a container can have %d service ports at most",
                             SERVICE_PORTS_MAX);
    (void)snprintf(service_port_add_service(services, "preopen")->name, SERVICE_NAME_MAX + 1, "%ld",
                   (long)port);
    return service_port_add(services, (long)port, 1024, 65535, field, err);
}

int services_add_preopen(struct services *services, const struct int_list *ports,
                         struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ports->count; i++)
        r = service_port_add_opened(services, ports->items[i], err);
    return r;
}

/* ---- ours ---- */

bool services_add_own(struct services *services, const char *name, const char *protocol,
                      uint16_t port)
{
    if (services->count == SERVICE_PORTS_MAX || services->port_count == SERVICE_PORTS_MAX)
        return false;
    for (size_t i = 0; i < services->count; i++)
        if (strcmp(services->items[i].name, name) == 0)
            return false;
    (void)snprintf(service_port_add_service(services, protocol)->name, SERVICE_NAME_MAX + 1, "%s",
                   name);
    services->items[services->count - 1].count = 1;
    services->ports[services->port_count++] = port;
    return true;
}

/* ---- writing ---- */

static void service_port_write_ports(struct jsonw *w, const char *key, const uint16_t *ports,
                                     size_t count)
{
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++)
        if (ports[i])
            jsonw_int(w, ports[i]);
    jsonw_array_end(w);
}

void services_write(const struct services *services, const uint16_t *outside, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < services->count; i++) {
        const struct service *service = &services->items[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "name", service->name);
        jsonw_member_str(w, "protocol", service->protocol);
        service_port_write_ports(w, "container_ports", services->ports + service->first,
                                 service->count);
        service_port_write_ports(w, "host_ports", outside ? outside + service->first : NULL,
                                 outside ? service->count : 0);
        jsonw_member_bool(w, "is_inference", service->is_inference);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}
