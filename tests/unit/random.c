/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - numbers for property tests that can be repeated */
#include "random.h"

struct test_random random_begin(const char *name)
{
    const char *text = getenv("ALIQUOT_TEST_SEED");
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = text ? strtoull(text, NULL, 0) : (uint64_t)now.tv_sec * 1000003 ^ (uint64_t)now.tv_nsec;
    printf("# %s: ALIQUOT_TEST_SEED=%" PRIu64 "\n", name, seed);
    return (struct test_random){ seed };
}

uint64_t random_scaled(uint64_t count)
{
    const char *text = getenv("ALIQUOT_TEST_SCALE");
    uint64_t scale = text ? strtoull(text, NULL, 0) : 1;

    return count * (scale ? scale : 1);
}

uint64_t random_next(struct test_random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t random_below(struct test_random *r, int64_t below)
{
    return (int64_t)(random_next(r) % (uint64_t)below);
}
