/* SPDX-License-Identifier: Apache-2.0 */
/* group_agents.c - what can be said of a resource group's agents to users of its queue */
#include "manager/core/scheduling/group_agents.h"

#include <string.h>

#include "base/strbuf.h"
#include "manager/core/images.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"

#define ABSENT_MAX 4 /* agents named of those that take no sessions */

static bool group_agents_has(const struct resource_group_entry *g, const struct agent_entry *a)
{
    return a->a.resource_group && strcmp(a->a.resource_group, g->g.name) == 0;
}

void group_agents_say_none(const struct core *core, const struct resource_group_entry *g,
                           struct strbuf *sentence)
{
    size_t known = 0, drained = 0, unheard = 0;

    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];

        if (!a->is_known || !group_agents_has(g, a))
            continue;
        known++;
        if (a->a.status != AGENT_ALIVE || !a->is_connected || a->is_late)
            unheard++;
        else if (!a->a.schedulable)
            drained++;
    }
    if (core->agent_count == 0)
        strbuf_adds(sentence, "It waits for an agent: no machine has joined the cluster. An "
                              "administrator lets one join: 'aliquot agent token' prints the "
                              "command for it.");
    else if (known == 0)
        strbuf_addf(sentence,
                    "It waits for an agent: resource group '%s' has none. Choose another with "
                    "--resource-group, or let an administrator move an agent: aliquot agent set "
                    "--resource-group %s AGENT.",
                    g->g.name, g->g.name);
    else
        strbuf_addf(sentence,
                    "It waits for an agent: none in resource group '%s' takes new sessions "
                    "(drained: %zu, not connected: %zu, for another reason: %zu).",
                    g->g.name, drained, unheard, known - drained - unheard);
}

/* Why the agent takes no new sessions; NULL = it takes them. */
static const char *group_agents_absence(const struct agent_entry *a)
{
    if (a->a.status != AGENT_ALIVE || !a->is_connected || a->is_late)
        return "not connected";
    if (!a->a.schedulable)
        return "drained";
    return agent_entry_is_ready(a) ? NULL : "not ready";
}

void group_agents_say_absent(const struct core *core, const struct resource_group_entry *g,
                             struct strbuf *text)
{
    size_t count = 0;

    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];
        const char *why = a->is_known && group_agents_has(g, a) ? group_agents_absence(a) : NULL;

        if (!why || ++count > ABSENT_MAX)
            continue;
        strbuf_addf(text, "%s%s (%s",
                    count == 1 ? "\nAgents that take no new sessions now: " : ", ", a->a.id, why);
        if (!a->a.schedulable && a->a.drain_reason)
            strbuf_addf(text, ": %s", a->a.drain_reason);
        strbuf_addc(text, ')');
    }
    if (count > ABSENT_MAX)
        strbuf_addf(text, " and %zu more", count - ABSENT_MAX);
    strbuf_adds(text, count ? "." : "");
}

bool group_agents_have_image(const struct core *core, const struct resource_group_entry *g,
                             const char *image)
{
    AQ_CLEANUP(aq_freep) char *quoted = aq_format("\"%s\"", image);

    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];

        if (!agent_entry_is_ready(a) || !group_agents_has(g, a))
            continue;
        if (strstr(core_get_agent_images(core, a->a.id), quoted)
            || (a->runtime && strcmp(a->runtime, "process") == 0))
            return true;
    }
    return false;
}
