/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - ways to choose an agent, by name */
#include "sim/policy.h"

#include <errno.h>
#include <string.h>

#include "sched/plugin.h"

#define PLUGIN "plugin:"

/* ---- any ---- */

static int32_t policy_random_device(struct policy *p, const struct slot_request *req,
                                    const struct node_state *s)
{
    int32_t found[64];
    uint32_t count = 0;

    for (uint32_t d = 0; d < s->device_count && count < 64; d++) {
        int64_t amount = req->amounts[s->devices[d].column];

        if (amount > 0 && (req->models >> s->devices[d].model & 1) && s->devices[d].free >= amount)
            found[count++] = (int32_t)d;
    }
    return count ? found[random_below(&p->random, count)] : -1;
}

static uint32_t policy_pick_random(void *data, struct cluster *c, struct slot_request *req,
                                   const struct selector *self, const struct node_list *allowed,
                                   uint32_t node, int32_t *device)
{
    struct policy *p = data;
    uint64_t count = 0, at;

    (void)allowed; /* tasks of traces have no constraints */
    for (uint32_t s = 0; s < c->state_count; s++)
        if (c->states[s].member_count && cluster_fit(c, req, s, self)->has_room)
            count += c->states[s].member_count;
    at = random_below(&p->random, count);
    for (uint32_t s = 0; s < c->state_count; s++) {
        if (!c->states[s].member_count || !cluster_fit(c, req, s, self)->has_room)
            continue;
        if (at < c->states[s].member_count) {
            *device = policy_random_device(p, req, &c->states[s]);
            return c->states[s].members[at];
        }
        at -= c->states[s].member_count;
    }
    return node;
}

const struct selector_ops policy_random = { .name = "random", .pick = policy_pick_random };

/* ---- the least left ---- */

static double policy_score_bestfit(void *data, const struct cluster *c,
                                   const struct slot_request *req, const struct node_state *s,
                                   int32_t *ret_device)
{
    struct policy *p = data;
    double cpu = 0, devices = 0;

    (void)ret_device;
    if (c->cpu_column != SIZE_MAX)
        cpu = (double)(s->free[c->cpu_column] - req->amounts[c->cpu_column]);
    for (uint32_t d = 0; d < s->device_count; d++)
        devices += (double)s->devices[d].free;
    for (size_t i = 0; i < c->columns; i++)
        devices -= c->device_capacity[i] ? (double)req->amounts[i] : 0;
    return -cpu / p->cpu_max - devices / p->devices_max;
}

const struct selector_ops policy_bestfit = { .name = "bestfit", .score = policy_score_bestfit };

/* ---- names ---- */

int policy_find(const char *name, const struct selector_ops **ret, struct aq_error *err)
{
    static const struct selector_ops *const own[] = { &policy_random, &policy_bestfit,
                                                      &policy_fgd };

    for (size_t i = 0; i < AQ_COUNT(own); i++)
        if (strcmp(own[i]->name, name) == 0) {
            *ret = own[i];
            return 0;
        }
    if (strncmp(name, PLUGIN, strlen(PLUGIN)) == 0)
        return sched_plugin_load(name + strlen(PLUGIN), NULL, ret, err);
    if ((*ret = sched_find_selector(name)))
        return 0;
    return aq_fail_field(err, EINVAL, "policy",
                         "there is no policy '%s'; known are fragmentation "
                         "(the default), concentrated, dispersed, legacy, roundrobin, bin-packing, "
                         "high-performance, plugin:FILE, and for comparison random, bestfit, fgd",
                         name);
}
