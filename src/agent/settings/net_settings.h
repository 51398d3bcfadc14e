/* SPDX-License-Identifier: Apache-2.0 */
/* net_settings.h - network settings (net/net.h) from agent.toml */
#ifndef AQ_AGENT_SETTINGS_NET_SETTINGS_H
#define AQ_AGENT_SETTINGS_NET_SETTINGS_H

#include "agent/net/cluster.h"
#include "agent/settings/settings.h"
#include "base/arena.h"

/* Texts are borrowed from 'settings', 'identity' and the arena. */
void net_settings_fill(struct net_settings *ret, const struct settings *settings,
                       const char *identity, struct arena *arena);

/* The address of this node for others: that by which it reaches 'manager', else that in agent.toml;
 * NULL if only this machine reaches it. Blocks as below.
 */
const char *net_settings_find_address(const struct settings *settings,
                                      const struct conf_listen *manager, struct arena *arena);

/* What cluster_new() needs; texts are borrowed from 'settings' and the arena. The address is the
 * one by which this node reaches 'manager' (NULL = not known), else that in agent.toml. Blocks for
 * as long as the manager's name is looked up.
 */
void net_settings_fill_cluster(struct cluster_settings *ret, const struct settings *settings,
                               const struct conf_listen *manager, struct arena *arena);

#endif
