/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_internal.h - what forecast.c and availability.c share */
#ifndef AQ_SCHED_FORECAST_INTERNAL_H
#define AQ_SCHED_FORECAST_INTERNAL_H

#include "sched/scheduler_internal.h"

/* From this time until the next step, an agent has this much free. */
struct availability_step {
    int64_t from_usec;
    int64_t *free; /* width amounts, then what each device has free */
};

/* The availability timeline of one agent. In the forecast's arena. */
struct availability {
    struct availability_step *steps;
    uint32_t count, cap;
    uint32_t version; /* counts changes of the timeline; from 1 */
    bool may_fall;    /* it may have less at some time than now; else what fits now fits always */
};

#define EARLIEST_BUCKETS 1024

struct forecast {
    struct sched *s;
    struct arena *arena;
    int64_t now_usec;
    bool assumes_ends; /* one without a lifetime that runs stays as long again as it has run */
    uint32_t *claims;  /* handles of sessions that resources are kept for, in order */
    uint32_t claim_count;
    struct availability *timelines; /* per node */
    uint32_t *by_id;                /* nodes */
    uint32_t node_count;
    uint32_t *promised; /* per node: the first session that has a later start, or a claim, there */
    struct earliest_starts *earliest[EARLIEST_BUCKETS]; /* see forecast.c */
    int64_t *least;                                     /* scratch: one step's amounts */
    struct cluster_device *devices;                     /* scratch */
    struct device_part *parts;
};

static inline int64_t forecast_time_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* ---- forecast.c ---- */

/* Reserve 'e' at its earliest time not before 'from_usec': its holds are where. INT64_MAX: never,
 * then it holds nothing.
 */
int64_t forecast_reserve_earliest(struct forecast *p, struct sched_entry *e, int64_t from_usec);
/* When one that runs, or has its place already, ends; later than now. INT64_MAX = not known. */
int64_t forecast_expected_end(const struct forecast *p, const struct sched_entry *e);
/* Note that the waiting 'e' is to start on 'node' some time. */
void forecast_mark_promised(struct forecast *p, uint32_t node, const struct sched_entry *e);

/* ---- availability.c ---- */

/* Every agent with what it has free now, forever. */
void availability_init(struct forecast *p);
/* Amounts in a step of the agent's timeline. */
size_t availability_step_size(const struct forecast *p, uint32_t node);
/* Add (1) or take (-1) what 'req' asks for during [from, to); 'from' is not before now. */
void availability_add(struct forecast *p, uint32_t node, const struct slot_request *req,
                      const struct device_part *parts, uint32_t part_count, int64_t from,
                      int64_t to, int sign);
/* Take of what is free what 'req' asks for, as much of it as there is, for good. */
void availability_keep(struct forecast *p, uint32_t node, const struct slot_request *req,
                       const struct device_part *parts, uint32_t part_count);
/* Can 'req' be there from step 'first' until 'to'? The same devices all the time, so what counts
 * is the least of each. If not, *ret_last is a step before whose end it cannot begin.
 */
bool availability_fits(struct forecast *p, uint32_t node, const struct slot_request *req,
                       uint32_t first, int64_t to, uint32_t *ret_last);
/* Not before 'from'; INT64_MAX if never, or not before 'until'. */
int64_t availability_earliest(struct forecast *p, uint32_t node, const struct slot_request *req,
                              int64_t lifetime, int64_t from, int64_t until);
/* The step that 'at' is in. */
uint32_t availability_find_step(const struct availability *l, int64_t at);
/* How many of 'req' the agent could hold from 'at' until 'to', as fit_count_row() counts.
 */
uint32_t availability_count(struct forecast *p, uint32_t node, const struct slot_request *req,
                            int64_t at, int64_t to);
/* Choose devices for 'req' from 'from' until 'to'; *ret holds nothing before, and is not taken out
 * of the timeline. 'device' as below.
 */
void availability_choose(struct forecast *p, uint32_t node, const struct slot_request *req,
                         int64_t from, int64_t to, int32_t device, struct hold *ret);
/* Take 'req' from 'at' on for 'lifetime'; where and which devices goes into *ret, which holds
 * nothing. 'device' is the state's that a single part would best be of, if it is free as long as
 * that; -1 = any.
 */
void availability_take(struct forecast *p, uint32_t node, const struct slot_request *req,
                       int64_t lifetime, int64_t at, int32_t device, struct hold *ret);

#endif
