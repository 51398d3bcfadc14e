/* SPDX-License-Identifier: Apache-2.0 */
/* net_settings.c - network settings (net/net.h) from agent.toml */
#include "agent/settings/net_settings.h"

#include <errno.h>

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
    };
}
