/* SPDX-License-Identifier: Apache-2.0 */
/* launch_cost.h - estimates of the device time that a GPU kernel or graph takes
 *
 * A fixed table, written without a lock: two GPU kernels with the same index
 * overwrite each other, and a torn pair is one wrong estimate, which the next
 * measurement corrects. All times are nanoseconds of device time. Any thread.
 */
#ifndef AQ_GPU_LAUNCH_COST_H
#define AQ_GPU_LAUNCH_COST_H

#include <stdbool.h>
#include <stdint.h>

struct launch_cost {
    uint64_t key;
    uint32_t ns;      /* estimate; 0 = not measured yet */
    uint16_t left;    /* launches until it is measured again */
    uint8_t measured; /* how often, up to LAUNCH_COST_SURE */
    uint8_t pending;  /* a first measurement is under way */
    uint32_t most_ns; /* the shortest measurement among others, of late; 0 = none */
};

/* After so many measurements a cost is measured only every LAUNCH_COST_EVERY_NS of it, or
 * every LAUNCH_COST_EVERY launches.
 */
#define LAUNCH_COST_SURE 16
#define LAUNCH_COST_EVERY_NS 2000000
#define LAUNCH_COST_EVERY 1024

#define LAUNCH_COST_TABLE_BITS 12

extern struct launch_cost launch_cost_table[1u << LAUNCH_COST_TABLE_BITS];

/* The key of a launch: never 0. */
static inline uint64_t launch_cost_key(const void *function, uint64_t blocks, uint64_t threads)
{
    uint64_t key = (uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15);

    key ^= (blocks * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ (threads << 48);
    return key ? key : 1;
}

/* Its place; taken from another GPU kernel if need be. */
static inline struct launch_cost *launch_cost_find(uint64_t key)
{
    struct launch_cost *cost = &launch_cost_table[key >> (64 - LAUNCH_COST_TABLE_BITS)];

    if (__builtin_expect(cost->key != key, 0)) {
        cost->ns = 0;
        cost->pending = 0;
        cost->left = 1;
        cost->measured = 0;
        cost->most_ns = 0;
        cost->key = key;
    }
    return cost;
}

/* How many launches until the next measurement, this one being under way. */
static inline uint16_t launch_cost_interval(const struct launch_cost *cost)
{
    if (cost->measured < LAUNCH_COST_SURE || cost->ns >= LAUNCH_COST_EVERY_NS)
        return 1;
    return cost->ns <= LAUNCH_COST_EVERY_NS / LAUNCH_COST_EVERY
               ? LAUNCH_COST_EVERY
               : (uint16_t)(LAUNCH_COST_EVERY_NS / cost->ns);
}

/* What is known of a measurement. */
enum launch_cost_quality {
    LAUNCH_COST_ALONE,        /* nobody else used the device */
    LAUNCH_COST_AMONG_OTHERS, /* turns of others may be in it */
    LAUNCH_COST_CORRECTED,    /* they were taken out, which may be wrong both ways */
    LAUNCH_COST_ESTIMATE,     /* in the light of what was known before: the new estimate */
};

struct launch_cost_measure {
    int64_t ns;          /* between the two events */
    int64_t waited_ns;   /* by the host's clock, from its begin until its end was seen */
    int64_t own_ns;      /* that part of it in which the device was this container's */
    bool is_uncontended; /* no other container has wanted time of late */
    bool is_beside;      /* other launches of this process ran at the same time */
    bool was_idle;       /* this process had no other measurement under way */
    uint32_t contenders; /* processes that took turns of late, this one among them */
};

/* Of a container's turn, where several share the device's time. */
#define LAUNCH_COST_TURN_NS 2000000

/* The cost that a measurement shows while others use the device, too. A GPU kernel
 * shorter than a turn mostly runs within one, and where it did not, a turn of
 * another container is in the figure: then the estimate is better. In a longer
 * one the turns of others are as many as the agent's clock says: at most the time between
 * the events, and, for one launched to an idle queue, at least what is left without
 * as many turns of others as there can be. Where the clock says that the others took all
 * of their turns, it is that; and never more than the shortest measurement of late, which
 * is kept in 'cost'.
 */
int64_t launch_cost_worth(struct launch_cost *cost, const struct launch_cost_measure *measure,
                          enum launch_cost_quality *ret);

/* Other work can only make a measurement longer, so the estimate goes down by
 * half of the way, and up by an eighth, and not to outliers. What was measured
 * among others is much less of a reason to go up.
 */
void launch_cost_learn(uint64_t key, int64_t ns, enum launch_cost_quality quality);

/* Functions were unloaded: their addresses may come back as others. */
void launch_cost_drop_all(void);
void launch_cost_drop(uint64_t key);

#endif
