/* SPDX-License-Identifier: Apache-2.0 */
/* net_settings.h - network settings (net/net.h) from agent.toml */
#ifndef AQ_AGENT_SETTINGS_NET_SETTINGS_H
#define AQ_AGENT_SETTINGS_NET_SETTINGS_H

#include "agent/net/net.h"
#include "agent/settings/settings.h"
#include "base/arena.h"

/* Texts are borrowed from 'settings', 'identity' and the arena. */
void net_settings_fill(struct net_settings *ret, const struct settings *settings,
                       const char *identity, struct arena *arena);

#endif
