/* SPDX-License-Identifier: Apache-2.0 */
/* net_lookup.c - hosts that the table is to know by their addresses: the manager, registries */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/net/net_internal.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

struct net_lookup {
    uv_getaddrinfo_t request;
    struct net *net;
    char host[256];
    bool is_registry; /* else it is denied */
    uint16_t port;    /* of a registry */
};

static void net_lookup_changed(struct net *net)
{
    net->wanted++;
    net_table_update(net);
}

static void net_lookup_deny(struct net *net, uint32_t address)
{
    const struct range range = { address, 32 };

    for (size_t i = 0; i < net->denied_count; i++)
        if (net->denied[i].bits == 32 && net->denied[i].first == address)
            return;
    vec_grow(&net->denied, &net->denied_cap, net->denied_count + 1, sizeof(*net->denied));
    net->denied[net->denied_count++] = range;
    net_lookup_changed(net);
}

static void net_lookup_admit(struct net *net, uint32_t address, uint16_t port)
{
    const struct nft_rules_target target = { .range = { address, 32 }, .port = port };

    for (size_t i = 0; i < net->registries_count; i++)
        if (net->registries[i].range.first == address && net->registries[i].port == port)
            return;
    vec_grow(&net->registries, &net->registries_cap, net->registries_count + 1,
             sizeof(*net->registries));
    net->registries[net->registries_count++] = target;
    net_lookup_changed(net);
}

static void net_lookup_take(const struct net_lookup *lookup, uint32_t address)
{
    if (!lookup->is_registry) {
        net_lookup_deny(lookup->net, address);
    } else if (lookup->port) {
        net_lookup_admit(lookup->net, address, lookup->port);
    } else {
        net_lookup_admit(lookup->net, address, 80);
        net_lookup_admit(lookup->net, address, 443);
    }
}

static void net_lookup_on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct net_lookup *lookup = request->data;
    struct net *net = lookup->net;

    if (status < 0 && lookup->is_registry)
        log_info("the registry '%s' cannot be looked up: %s", lookup->host, uv_strerror(status));
    else if (status < 0)
        log_warning("kernels may reach '%s': it cannot be looked up: %s", lookup->host,
                    uv_strerror(status));
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        if (at->ai_family == AF_INET) {
            struct sockaddr_in in;

            memcpy(&in, at->ai_addr, sizeof(in));
            net_lookup_take(lookup, ntohl(in.sin_addr.s_addr));
        }
    uv_freeaddrinfo(found);
    free(lookup);
    net_job_ended(net);
}

static void net_lookup_start(struct net *net, const char *host, bool is_registry, uint16_t port)
{
    const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    struct net_lookup *lookup = aq_alloc(sizeof(*lookup));

    lookup->net = net;
    lookup->is_registry = is_registry;
    lookup->port = port;
    lookup->request.data = lookup;
    (void)snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    if (uv_getaddrinfo(net->loop, &lookup->request, net_lookup_on_found, lookup->host, NULL, &hints)
        < 0)
        free(lookup);
    else
        net->jobs++;
}

void net_deny(struct net *net, const char *host)
{
    net_lookup_start(net, host, false, 0);
}

void net_admit_registry(struct net *net, const char *host, uint16_t port)
{
    net_lookup_start(net, host, true, port);
}

/* Of no user and no container: below the ids that settings give to containers, one for each
 * agent of the machine, whose tags are 24 bits.
 */
#define PULL_GROUP_FIRST UINT32_C(0x60000000)

uint32_t net_get_pull_group(const struct net *net)
{
    return PULL_GROUP_FIRST + (uint32_t)strtoul(net->directory.tag, NULL, 16);
}
