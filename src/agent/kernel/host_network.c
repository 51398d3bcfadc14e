/* SPDX-License-Identifier: Apache-2.0 */
/* host_network.c - kernels that use the network of their node */
#include "agent/kernel/host_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"

#define HOSTS_MAX (64u << 10) /* bytes of the node's file that are passed on */

bool host_network_is_wanted(const struct local_kernel *k)
{
    return session_spec_uses_host_network(&kernel_get_spec(k)->session);
}

uint16_t host_network_port(const struct host_network *host, enum cluster_host_port which)
{
    return (uint16_t)(host->own->port + which);
}

/* ---- the interface ---- */

static bool host_network_has_address(const struct sockaddr *address, const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    if (!address)
        return false;
    if (address->sa_family == AF_INET && inet_pton(AF_INET, text, bytes) == 1)
        return memcmp(&((const struct sockaddr_in *)(const void *)address)->sin_addr, bytes,
                      sizeof(struct in_addr))
               == 0;
    if (address->sa_family == AF_INET6 && inet_pton(AF_INET6, text, bytes) == 1)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, bytes,
                      sizeof(struct in6_addr))
               == 0;
    return false;
}

/* Left empty where no interface has it: then frameworks choose one themselves. */
static void host_network_find_interface(struct host_network *host)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *at = all; at && !host->interface[0]; at = at->ifa_next)
        if (host_network_has_address(at->ifa_addr, host->own->address))
            (void)snprintf(host->interface, sizeof(host->interface), "%s", at->ifa_name);
    freeifaddrs(all);
}

/* ---- ports ---- */

static bool host_network_has_port(const struct host_network *host, uint16_t port)
{
    if (port >= host->own->port && port < host->own->port + CLUSTER_HOST_PORTS)
        return true;
    for (size_t i = 0; i < host->port_count; i++)
        if (host->ports[i] == port)
            return true;
    return false;
}

static bool host_network_is_listened_on(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    return fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
           && errno == EADDRINUSE;
}

static int host_network_check_port(const struct local_kernel *k, uint16_t port,
                                   struct aq_error *err)
{
    for (size_t i = 0; i < k->agent->kernels.count; i++) {
        const struct local_kernel *other = k->agent->kernels.entries[i].value;
        char id[UUID_TEXT_MAX];

        if (other != k && other->host && host_network_has_port(other->host, port))
            return aq_fail_as(err, EADDRINUSE, "port-in-use", "network",
                              "port %u of the node belongs to kernel %s, which has the host "
                              "network, too; wait for its end, or choose another port",
                              port, uuid_format(&other->id, id));
    }
    return host_network_is_listened_on(port)
               ? aq_fail_as(err, EADDRINUSE, "port-in-use", "network",
                            "a program of the node listens on port %u; choose another port, or "
                            "another node",
                            port)
               : 0;
}

void host_network_keep_ports(struct host_network *host, const struct services *services)
{
    memcpy(host->ports, services->ports, services->port_count * sizeof(*host->ports));
    host->port_count = services->port_count;
}

int host_network_check_ports(const struct local_kernel *k, const struct services *services,
                             struct aq_error *err)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < CLUSTER_HOST_PORTS; i++)
        r = host_network_check_port(k, host_network_port(k->host, (enum cluster_host_port)i), err);
    for (size_t i = 0; r == 0 && i < services->port_count; i++)
        r = host_network_check_port(k, services->ports[i], err);
    return r;
}

/* ---- open, close ---- */

int host_network_open(struct local_kernel *k, struct aq_error *err)
{
    const char *text = kernel_get_spec(k)->network;
    struct host_network *host;
    int r;

    if (k->host)
        return 0;
    if (!k->agent->settings->network_host || !text)
        return aq_fail_as(err, ENOTSUP, "no-host-network", "network",
                          "containers of this node have private networks only; its administrator "
                          "may set [network] host in agent.toml");
    host = aq_alloc(sizeof(*host));
    r = cluster_network_parse(text, &host->arena, &host->network, err);
    if (r == 0) {
        host->own = cluster_network_find(&host->network, kernel_hostname_of(k));
        if (!host->own || !cluster_network_is_host(&host->network))
            r = aq_fail_field(err, EINVAL, "network", "the session's network lacks kernel '%s'",
                              kernel_hostname_of(k));
    }
    if (r == 0)
        host_network_find_interface(host);
    k->host = host;
    if (r < 0)
        host_network_close(k);
    return r;
}

void host_network_close(struct local_kernel *k)
{
    struct host_network *host = AQ_TAKE(k->host);

    if (host)
        arena_done(&host->arena);
    free(host);
}

void host_network_add_hosts(const struct host_network *host, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf node = STRBUF_INIT;

    for (size_t i = 0; i < host->network.kernel_count; i++)
        strbuf_addf(out, "%s\t%s\n", host->network.kernels[i].address,
                    host->network.kernels[i].hostname);
    strbuf_adds(out, fs_read(AT_FDCWD, "/etc/hosts", HOSTS_MAX, &node, NULL) == 0
                         ? node.data
                         : "127.0.0.1\tlocalhost\n");
}
