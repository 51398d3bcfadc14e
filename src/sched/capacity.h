/* SPDX-License-Identifier: Apache-2.0 */
/* capacity.h - what agents could give if nothing ran on them: which amounts fit, and the nearest
 *
 * An amount of a slot whose devices are listed fits as fit.c places it on devices that are free:
 * on one device, or in equal parts on as few as can hold it, or in any parts if it may be split;
 * all of one quantum and each part a multiple of that. Amounts as in model/slot.h. Pure.
 */
#ifndef AQ_SCHED_CAPACITY_H
#define AQ_SCHED_CAPACITY_H

#include "sched/sched.h"

/* A device of one slot. */
struct capacity_device {
    int64_t capacity;
    int64_t quantum; /* it gives multiples of this; 0 = any amount */
};

/* The largest amount of at most 'amount' that fits on the devices; 0 = none. */
int64_t capacity_floor(const struct capacity_device *devices, size_t count, bool may_split,
                       int64_t amount);
/* The smallest of at least 'amount'; INT64_MAX = none. */
int64_t capacity_ceiling(const struct capacity_device *devices, size_t count, bool may_split,
                         int64_t amount);

/* What each container of a session asks for, and how many of them one agent has to hold. */
struct capacity_request {
    const struct slots *each; /* slots with 0 do not count */
    int64_t together;         /* 1 if its containers may be on different agents */
    bool may_split;
    const struct slot_types *types;
    const char *architecture;      /* NULL = any */
    const char *const *designated; /* ids of agents: only these; NULL = any */
    size_t designated_count;
};

/* Agents one after another; *at is 0 at first. The next goes into *ret, of which id, architecture,
 * capacity and devices count, good until the next call; false = there is none.
 */
typedef bool (*capacity_next_fn)(const void *data, size_t *at, struct sched_agent *ret);

/* What all agents would give of one slot of the request: the most of any, and to each container. */
struct capacity_slot {
    int64_t sum;          /* that any agent has of it */
    int64_t largest;      /* that any could give to each; 0 = none */
    int64_t below, above; /* the nearest amounts that fit; 0 and INT64_MAX = none */
    int64_t beside;       /* the largest below what is asked, of agents that can hold all the
                             other slots; 0 = none */
};

struct capacity_report {
    size_t agents;               /* of the architecture, and designated */
    int64_t containers;          /* that they can hold, all of them empty */
    struct capacity_slot *slots; /* as in 'each' */
};

/* A report on no agents yet, for capacity_look(); it lives in 'arena'. */
struct capacity_report capacity_report_begin(const struct capacity_request *req,
                                             struct arena *arena);

/* Could these agents hold 'containers' like that? 'report' gets what is known of them; whole only
 * if they could not: the first that are enough end the search.
 */
bool capacity_look(const struct capacity_request *req, int64_t containers, capacity_next_fn next,
                   const void *data, struct arena *arena, struct capacity_report *report);

#endif
