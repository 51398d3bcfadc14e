/* SPDX-License-Identifier: Apache-2.0 */
/* select_device.c - selectors that take turns, or look at the devices
 *
 * "bin-packing" and "high-performance" are the two modes of Alnair's vGPU
 * sharing scheduler, per device as its documents promise: the fullest device
 * where it fits, or the emptiest.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/agent.h"
#include "sched/select_node.h"

/* ---- taking turns ---- */

struct turns {
    char last[AGENT_ID_MAX + 1]; /* that was chosen; "" = none yet */
};

static void *select_device_open_turns(void)
{
    return aq_alloc(sizeof(struct turns));
}

/* The first of a state whose id comes after 'id', else the first of all. */
static uint32_t select_device_member_after(const struct cluster *c, const struct node_state *s,
                                           const char *id)
{
    size_t low = 0, high = s->member_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (strcmp(c->nodes[s->members[middle]].id, id) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return s->members[low < s->member_count ? low : 0];
}

/* Ids that come after 'last' come first. */
static int select_device_compare_turns(const char *a, const char *b, const char *last)
{
    bool a_is_next = strcmp(a, last) > 0, b_is_next = strcmp(b, last) > 0;

    return a_is_next == b_is_next ? strcmp(a, b) : a_is_next ? -1 : 1;
}

static bool select_device_is_sooner(const struct turns *t, const struct cluster *c, uint32_t a,
                                    uint32_t b)
{
    return b == CLUSTER_NONE
           || select_device_compare_turns(c->nodes[a].id, c->nodes[b].id, t->last) < 0;
}

static uint32_t select_device_pick_turn(void *data, struct cluster *c, struct slot_request *req,
                                        const struct selector *self,
                                        const struct node_list *allowed, uint32_t node,
                                        int32_t *device)
{
    struct turns *t = data;
    uint32_t best = CLUSTER_NONE;

    (void)node;
    (void)device;
    for (uint32_t i = 0; allowed && i < allowed->count; i++)
        if (select_device_is_sooner(t, c, allowed->nodes[i], best))
            best = allowed->nodes[i];
    for (uint32_t s = 0; !allowed && s < c->state_count; s++) {
        uint32_t next;

        if (!c->states[s].member_count || !cluster_fit(c, req, s, self)->has_room)
            continue;
        next = select_device_member_after(c, &c->states[s], t->last);
        if (select_device_is_sooner(t, c, next, best))
            best = next;
    }
    return best;
}

static void select_device_note_turn(void *data, const struct cluster *c, uint32_t node)
{
    struct turns *t = data;

    (void)snprintf(t->last, sizeof(t->last), "%s", c->nodes[node].id);
}

const struct selector_ops sched_round_robin = { .name = "roundrobin",
                                                .spreads = true,
                                                .open = select_device_open_turns,
                                                .close = free,
                                                .pick = select_device_pick_turn,
                                                .on_placement = select_device_note_turn };

/* ---- by devices ---- */

/* The share that would be used of the best device, in 1/100; of nodes without
 * devices, of the first slot that is compared.
 */
static double select_device_used_share(const struct cluster *c, const struct slot_request *req,
                                       const struct node_state *s, int sign, int32_t *ret_device)
{
    double best = 0;

    *ret_device = -1;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct cluster_device *d = &s->devices[i];
        int64_t amount = req->amounts[d->column];
        double used;

        if (amount <= 0 || !(req->models >> d->model & 1) || d->free < AQ_MIN(amount, d->capacity))
            continue;
        used = 100.0 * (double)(d->capacity - d->free + AQ_MIN(amount, d->capacity))
               / (double)d->capacity;
        if (*ret_device < 0 || sign * used > sign * best) {
            best = used;
            *ret_device = (int32_t)i;
        }
    }
    (void)c;
    return best;
}

/* A request without devices stays off agents that have them. */
static double select_device_score_packing(void *data, const struct cluster *c,
                                          const struct slot_request *req,
                                          const struct node_state *s, int32_t *ret_device)
{
    double used = select_device_used_share(c, req, s, 1, ret_device);

    (void)data;
    return *ret_device < 0 && s->device_count ? -1 : used;
}

static double select_device_score_performance(void *data, const struct cluster *c,
                                              const struct slot_request *req,
                                              const struct node_state *s, int32_t *ret_device)
{
    double used = select_device_used_share(c, req, s, -1, ret_device);

    (void)data;
    return *ret_device < 0 && s->device_count ? -1 : 100 - used;
}

const struct selector_ops sched_bin_packing = { .name = "bin-packing",
                                                .score = select_device_score_packing };
const struct selector_ops sched_high_performance = { .name = "high-performance",
                                                     .spreads = true,
                                                     .score = select_device_score_performance };
