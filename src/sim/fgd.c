/* SPDX-License-Identifier: Apache-2.0 */
/* fgd.c - fragmentation gradient descent as its authors' scheduler computes it
 *
 * The fragment of a node for a task is all its free GPU if the task takes no
 * GPU, may not use the model or does not fit; else what is free on GPUs that
 * have less left than the task's part. F is the mean over the typical tasks.
 * A task goes where F falls most: floor(100 * sigmoid(fall / 1000)), the first
 * of equals.
 */
#include <math.h>
#include <string.h>

#include "sim/policy.h"

#define GPUS_MAX 64

struct fgd_gpus {
    int64_t cpu_milli;
    uint32_t count;
    uint16_t model;
    int32_t free[GPUS_MAX];
};

static void fgd_read_gpus(const struct cluster *c, const int64_t *free,
                          const struct cluster_device *devices, uint32_t count,
                          struct fgd_gpus *ret)
{
    ret->cpu_milli = c->cpu_column == SIZE_MAX ? 0 : free[c->cpu_column] / (AMOUNT_ONE / 1000);
    ret->count = AQ_MIN(count, (uint32_t)GPUS_MAX);
    ret->model = ret->count ? devices[0].model : 0;
    for (uint32_t d = 0; d < ret->count; d++)
        ret->free[d] = (int32_t)(devices[d].free * 1000 / devices[d].capacity);
}

static double fgd_fragment(const struct fgd_gpus *g, const struct request_shape *shape)
{
    int64_t all = 0, small = 0;
    int32_t fitting = 0;

    for (uint32_t d = 0; d < g->count; d++) {
        all += g->free[d];
        if (g->free[d] >= shape->part_milli)
            fitting++;
        else
            small += g->free[d];
    }
    if (!shape->devices || !(shape->models >> g->model & 1) || g->cpu_milli < shape->cpu_milli
        || fitting < shape->devices)
        return (double)all;
    return (double)small;
}

static double fgd_mean_fragment(const struct policy *p, const struct fgd_gpus *g)
{
    double sum = 0;

    for (size_t i = 0; i < p->typical_count; i++)
        sum += p->typical.shapes[i].count * fgd_fragment(g, &p->typical.shapes[i].shape);
    return p->typical_total > 0 ? sum / p->typical_total : 0;
}

static double fgd_rounded(double fall)
{
    return floor(100 / (1 + exp(-fall / 1000)));
}

static double fgd_score_with(const struct policy *p, const struct fgd_gpus *before, double mean,
                             const struct request_shape *shape, uint32_t device)
{
    struct fgd_gpus after = *before;

    after.cpu_milli -= shape->cpu_milli;
    if (shape->devices == 1) {
        after.free[device] -= shape->part_milli;
    } else {
        int32_t left = shape->devices;

        for (uint32_t d = 0; d < after.count && left > 0; d++)
            if (after.free[d] >= shape->part_milli) {
                after.free[d] -= shape->part_milli;
                left--;
            }
    }
    return fgd_rounded(mean - fgd_mean_fragment(p, &after));
}

/* The best score, of the first device that has it. */
static double fgd_best_score(const struct policy *p, const struct fgd_gpus *g,
                             const struct request_shape *shape, int32_t *ret_device)
{
    double mean = fgd_mean_fragment(p, g), best = -1;

    if (shape->devices != 1)
        return fgd_score_with(p, g, mean, shape, 0);
    for (uint32_t d = 0; d < g->count; d++) {
        double score;

        if (g->free[d] < shape->part_milli)
            continue;
        score = fgd_score_with(p, g, mean, shape, d);
        if (score > best) {
            best = score;
            *ret_device = (int32_t)d;
        }
    }
    return best;
}

static double fgd_score(void *data, const struct cluster *c, const struct slot_request *req,
                        const struct node_state *s, int32_t *ret_device)
{
    struct request_shape shape;
    struct fgd_gpus g;

    (void)request_shape_of(c, req, &shape);
    fgd_read_gpus(c, s->free, s->devices, s->device_count, &g);
    return fgd_best_score(data, &g, &shape, ret_device);
}

/* Of equal devices the first in the node's own order. */
static uint32_t fgd_pick_device(void *data, struct cluster *c, struct slot_request *req,
                                const struct selector *self, const struct node_list *allowed,
                                uint32_t node, int32_t *device)
{
    const struct cluster_node *n = &c->nodes[node];
    const struct node_state *s = &c->states[n->state];
    struct request_shape shape;
    struct fgd_gpus g;
    int32_t own = -1;

    (void)self;
    (void)allowed; /* tasks of traces have no constraints */
    (void)request_shape_of(c, req, &shape);
    if (shape.devices != 1)
        return node;
    fgd_read_gpus(c, n->free, n->devices, n->device_count, &g);
    (void)fgd_best_score(data, &g, &shape, &own);
    for (uint32_t d = 0; own >= 0 && d < s->device_count; d++)
        if (memcmp(&s->devices[d], &n->devices[own], sizeof(*s->devices)) == 0)
            *device = (int32_t)d;
    return node;
}

const struct selector_ops policy_fgd = { .name = "fgd",
                                         .score = fgd_score,
                                         .pick = fgd_pick_device };
