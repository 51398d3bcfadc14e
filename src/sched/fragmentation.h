/* SPDX-License-Identifier: Apache-2.0 */
/* fragmentation.h - what an agent's free resources are worth to those to come
 *
 * The potential of an agent says how much of what it has free will probably
 * stay useless, given the mix of requests seen so far; placements go where it
 * grows least. It has four parts, in thousandths of a device:
 *
 *  - balance: free devices that the free CPU cannot serve at the rate at which
 *    the mix needs CPU, and, at a tenth of the weight, CPU beyond that. This
 *    also sends requests without devices to where CPU is in excess;
 *  - whole devices kept together: agents with many free ones are worth more
 *    than their sum, to requests for several;
 *  - leftovers: the mean of what stays free after fixed random streams of the
 *    typical requests were poured into the agent;
 *  - much kept together: by the square of what is free of CPU and devices, so
 *    that work goes to agents that are in use and large requests find others.
 *    It counts as far as sessions leave: where nothing does, all agents are
 *    filled in the end, and keeping some empty would keep them useless.
 *
 * It refines fragmentation gradient descent ("Beware of Fragmentation", USENIX
 * ATC 2023), which scores by the mean fragment over the typical requests.
 *
 * The mix is learned from requests as they come: the most frequent shapes
 * (CPU, number and part of devices, models) that make up 95 % of them.
 */
#ifndef AQ_SCHED_FRAGMENTATION_H
#define AQ_SCHED_FRAGMENTATION_H

#include "sched/select_node.h"
#include "sched/scheduler.h"

/* The shape of a request: what it takes of CPU and devices. */
struct request_shape {
    int64_t cpu_milli;
    int32_t devices;    /* 0 = none */
    int32_t part_milli; /* of each device: 1..1000 */
    uint32_t column;    /* of the devices' slot */
    uint32_t unused;    /* 0: shapes are compared as bytes */
    uint64_t models;
};

/* What counts of an agent. */
struct node_contents {
    int64_t cpu_milli;
    uint32_t device_count;
    struct free_device {
        int32_t milli;
        uint16_t column, model;
    } * devices;
};

/* Shapes with how often they came. */
struct request_mix {
    struct {
        struct request_shape shape;
        double count;
    } * shapes; /* most frequent first, after request_mix_sort() */
    size_t count, cap;
    double total;
    double cpu_milli, device_milli; /* sums over all requests */
};

/* The shape of a single-node session in a scheduler. */
void sched_request_shape(struct sched *s, const struct sched_session *session,
                         struct request_shape *ret);
bool request_shape_of(const struct cluster *c, const struct slot_request *req,
                      struct request_shape *ret);
void request_mix_add(struct request_mix *m, const struct request_shape *shape);
/* Sort; returns how many of the first make up 'part' of all requests. */
size_t request_mix_sort(struct request_mix *m, double part);
void request_mix_done(struct request_mix *m);

#endif
