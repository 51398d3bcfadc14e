/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - numbers that are the same for a seed on every machine (splitmix64) */
#ifndef AQ_SIM_RANDOM_H
#define AQ_SIM_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Uniform in [0, n), 0 < n < 2^32. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
    return (random_next(r) >> 32) * n >> 32;
}

static inline struct random random_make(uint64_t seed)
{
    struct random r = { seed * UINT64_C(0xd1342543de82ef95) + 1 };

    (void)random_next(&r);
    return r;
}

#endif
