/* cost.h - what a kernel or graph cost the last times
 *
 * A fixed table, written without a lock: two kernels that meet in one place
 * displace each other, and a torn pair is one wrong estimate, which the next
 * measurement puts right.
 */
#ifndef AQ_GPU_COST_H
#define AQ_GPU_COST_H

#include <stdbool.h>
#include <stdint.h>

struct cost {
    uint64_t key;
    uint32_t ns;       /* estimate; 0 = not measured yet */
    uint16_t left;     /* launches until it is measured again */
    uint8_t measured;  /* how often, up to COST_SURE */
    uint8_t pending;   /* a first measurement is under way */
    uint32_t most_ns;  /* the shortest measurement among others, of late; 0 = none */
};

/* After so many measurements a cost is measured only every COST_EVERY_NS of it, or
 * every COST_EVERY launches.
 */
#define COST_SURE 16
#define COST_EVERY_NS 2000000
#define COST_EVERY 1024

#define COST_TABLE_BITS 12

extern struct cost cost_table[1u << COST_TABLE_BITS];

/* The key of a launch: never 0. */
static inline uint64_t cost_key(const void *function, uint64_t blocks, uint64_t threads)
{
    uint64_t key = (uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15);

    key ^= (blocks * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ (threads << 48);
    return key ? key : 1;
}

/* Its place; taken from another kernel if need be. */
static inline struct cost *cost_find(uint64_t key)
{
    struct cost *cost = &cost_table[key >> (64 - COST_TABLE_BITS)];

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
static inline uint16_t cost_pause(const struct cost *cost)
{
    if (cost->measured < COST_SURE || cost->ns >= COST_EVERY_NS)
        return 1;
    return cost->ns <= COST_EVERY_NS / COST_EVERY ? COST_EVERY
                                                  : (uint16_t)(COST_EVERY_NS / cost->ns);
}

/* What is known of a measurement. */
enum cost_quality {
    COST_ALONE,        /* nobody else used the device */
    COST_AMONG_OTHERS, /* turns of others may be in it */
    COST_CORRECTED,    /* they were taken out, which may be wrong both ways */
    COST_ESTIMATE,     /* in the light of what was known before: the new estimate */
};

struct cost_measure {
    int64_t ns;        /* between the two events */
    int64_t waited_ns; /* by the host's clock, from its begin until its end was seen */
    int64_t own_ns;    /* that part of it in which the device was this container's */
    bool is_alone;     /* no other container has wanted time of late */
    bool is_beside;    /* other launches of this process ran at the same time */
    bool was_idle;     /* this process had no other measurement under way */
    uint32_t takers;   /* processes that took turns of late, this one among them */
};

/* Of a container's turn, where several share the device's time. */
#define COST_TURN_NS 2000000

/* What the measured time is worth while others use the device, too. A kernel
 * shorter than a turn mostly runs within one, and where it did not, a turn of
 * another container is in the figure: then the estimate is better. In a longer
 * one the turns of others are as many as the agent's clock says: at most the time between
 * the events, and, for one launched to an idle queue, at least what is left without
 * as many turns of others as there can be. Where the clock says that the others took all
 * of their turns, it is that; and never more than the shortest measurement of late, which
 * is kept in 'cost'.
 */
int64_t cost_worth(struct cost *cost, const struct cost_measure *measure, enum cost_quality *ret);

/* Other work can only make a measurement longer, so the estimate goes down by
 * half of the way, and up by an eighth, and not to outliers. What was measured
 * among others is much less of a reason to go up.
 */
void cost_learn(uint64_t key, int64_t ns, enum cost_quality quality);

/* Functions were unloaded: their addresses may come back as others. */
void cost_forget(void);
void cost_forget_key(uint64_t key);

#endif
