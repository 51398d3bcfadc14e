/* SPDX-License-Identifier: Apache-2.0 */
/* group_agents.h - what can be said of a resource group's agents to users of its queue */
#ifndef AQ_MANAGER_CORE_SCHEDULING_GROUP_AGENTS_H
#define AQ_MANAGER_CORE_SCHEDULING_GROUP_AGENTS_H

#include <stdbool.h>

struct core;
struct resource_group_entry;
struct strbuf;

/* Append why the group has no agent to place anything on, and who changes that. */
void group_agents_say_none(const struct core *core, const struct resource_group_entry *g,
                           struct strbuf *sentence);

/* Append a line with the agents of the group that take no new sessions now, and why; nothing if
 * there are none.
 */
void group_agents_say_absent(const struct core *core, const struct resource_group_entry *g,
                             struct strbuf *text);

/* Does a ready agent of the group have the image, or run all sessions as processes of its machine?
 * 'image' is canonical.
 */
bool group_agents_have_image(const struct core *core, const struct resource_group_entry *g,
                             const char *image);

#endif
