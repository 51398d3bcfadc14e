/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - the numbers of the seed, in streams that do not disturb each other */
#include "simuv/simuv_internal.h"

__extension__ typedef unsigned __int128 random_wide;

static uint64_t random_state[SIMUV_STREAMS];

/* splitmix64 */
static uint64_t random_step(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void simuv_random_seed(uint64_t seed)
{
    uint64_t state = seed;

    for (int i = 0; i < SIMUV_STREAMS; i++)
        random_state[i] = random_step(&state);
}

uint64_t simuv_random_of(enum simuv_stream stream)
{
    return random_step(&random_state[stream]);
}

uint64_t simuv_random_of_below(enum simuv_stream stream, uint64_t n)
{
    return (uint64_t)((random_wide)simuv_random_of(stream) * n >> 64);
}

bool simuv_chance_of(enum simuv_stream stream, double probability)
{
    if (probability <= 0)
        return false;
    return (double)(simuv_random_of(stream) >> 11) * 0x1p-53 < probability;
}

uint64_t simuv_random(void)
{
    return simuv_random_of(SIMUV_FAULTS);
}

uint64_t simuv_random_below(uint64_t n)
{
    return simuv_random_of_below(SIMUV_FAULTS, n);
}

bool simuv_chance(double probability)
{
    return simuv_chance_of(SIMUV_FAULTS, probability);
}
