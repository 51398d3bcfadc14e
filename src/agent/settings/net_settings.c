/* SPDX-License-Identifier: Apache-2.0 */
/* net_settings.c - network settings (net/net.h) from agent.toml */
#include "agent/settings/net_settings.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* NULL-terminated. */
static const char *const *net_settings_texts_of(const struct conf_list *list, struct arena *arena)
{
    const char **texts = arena_array(arena, list->count + 1, sizeof(*texts));

    for (size_t i = 0; i < list->count; i++)
        texts[i] = list->items[i];
    return texts;
}

void net_settings_fill(struct net_settings *ret, const struct settings *settings,
                       const char *identity, struct arena *arena)
{
    const struct settings *s = settings;

    *ret = (struct net_settings){
        .identity = identity,
        .run_dir = s->run,
        .pool = s->network_pool,
        .dns = net_settings_texts_of(&s->network_dns, arena),
        .denied = net_settings_texts_of(&s->network_deny, arena),
        .allowed = net_settings_texts_of(&s->network_allow, arena),
        .port_min = (uint16_t)s->port_min,
        .port_max = (uint16_t)s->port_max,
        .connections_max = s->network_connections_max,
        .port_rest_usec = s->port_rest_usec,
        .tunnel_port = (uint16_t)s->cluster_port,
    };
}

/* A datagram socket that is connected has chosen its address; nothing is sent. */
static char *net_settings_find_source(const struct conf_listen *manager, struct arena *arena)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
    struct sockaddr_storage own;
    struct addrinfo *found = NULL;
    socklen_t len = sizeof(own);
    char port[8], text[NI_MAXHOST];
    char *ret = NULL;

    (void)snprintf(port, sizeof(port), "%u", (unsigned)manager->port);
    if (getaddrinfo(manager->host, port, &hints, &found) != 0)
        return NULL;
    for (const struct addrinfo *at = found; at && !ret; at = at->ai_next) {
        AQ_CLEANUP(aq_closep) int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0
            && getsockname(fd, (struct sockaddr *)&own, &len) == 0
            && getnameinfo((const struct sockaddr *)&own, len, text, sizeof(text), NULL, 0,
                           NI_NUMERICHOST)
                   == 0)
            ret = arena_strdup(arena, text);
    }
    freeaddrinfo(found);
    return ret;
}

/* The manager is on this machine, and others do not reach this address. */
static bool net_settings_is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

const char *net_settings_find_address(const struct settings *settings,
                                      const struct conf_listen *manager, struct arena *arena)
{
    const char *source = net_settings_find_source(manager, arena);

    if (source && !net_settings_is_loopback(source))
        return source;
    return settings->address;
}

void net_settings_fill_cluster(struct cluster_settings *ret, const struct settings *settings,
                               const struct conf_listen *manager, struct arena *arena)
{
    *ret = (struct cluster_settings){ .mode = settings->cluster,
                                      .id = settings->id,
                                      .state = settings->state,
                                      .address = settings->cluster_address,
                                      .port = (uint16_t)settings->cluster_port,
                                      .is_host_offered = settings->network_host };
    if (!ret->address && manager
        && (settings->network_host || strcmp(settings->cluster, "none") != 0))
        ret->address = net_settings_find_source(manager, arena);
    if (settings->address && (!ret->address || net_settings_is_loopback(ret->address)))
        ret->address = settings->address;
}
