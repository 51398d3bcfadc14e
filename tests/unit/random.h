/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - numbers for property tests that can be repeated
 *
 * ALIQUOT_TEST_SEED=N repeats a run (each prints its seed), ALIQUOT_TEST_SCALE=N
 * makes it N times as long.
 */
#ifndef AQ_TESTS_UNIT_RANDOM_H
#define AQ_TESTS_UNIT_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct test_random {
    uint64_t state;
};

/* From the environment or the clock; printed as a TAP comment. */
struct test_random random_begin(const char *name);

/* 'count' times ALIQUOT_TEST_SCALE. */
uint64_t random_scaled(uint64_t count);

/* splitmix64 */
uint64_t random_next(struct test_random *r);

/* 0 .. below - 1 */
int64_t random_below(struct test_random *r, int64_t below);

#endif
