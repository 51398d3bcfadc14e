/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.h - allocation maps and what happens to them, in one line of text
 *
 * Devices: "A=1@0 B=1@1 cpu/0=1@0 cuda.device:1g-mig/m0=1": id=capacity@node,
 * before it the slot and '/' if it is not "x.shares"; without '@' node 0; "A=1~0.25"
 * has a quantum of its own.
 * Slots named *-mig are unique, *.all unified; cpu and the like are discrete,
 * mem is FILL.
 *
 * Steps, separated by ';':
 *   1.2 => A:0.6 B:0.6        ask for 1.2 x.shares; exactly this is granted
 *   cpu=4 x.shares=1 => ...   ask for several slots
 *   nofrag 0.4 => ...         forbid fragmentation
 *   at A:0.4 0.4 => ...       that it comes from A was decided elsewhere
 *   1 => !insufficient-resource cpu    refused with that kind and field; nothing changes
 *   free 2                    release the second grant of the row
 *   to 2 1.4 => A:0.7 B:0.7   the second grant becomes this; or a refusal, as above
 *   is A:0.4 B:1 C:0          what is allocated now (devices not named are not checked)
 */
#ifndef AQ_TESTS_UNIT_ALLOC_SCENARIO_H
#define AQ_TESTS_UNIT_ALLOC_SCENARIO_H

#include "testing.h"

#include "alloc/alloc_map.h"

struct scenario {
    const char *source;
    const char *devices;
    const char *quantum; /* of x.shares; NULL = discrete */
    enum alloc_strategy strategy;
    enum alloc_affinity affinity;
    const char *minimum; /* of x.shares; NULL = none */
    const char *held;    /* applied at the start, "A:0.5 cpu/0:1"; NULL = nothing */
    const char *steps;
};

void scenario_run(const struct scenario *s);

/* The map of a scenario, with 'held' applied. */
struct alloc_map *scenario_map(const struct scenario *s);

/* A decimal number (bytes for slots with mem). */
int64_t scenario_amount(const char *text, const char *slot_name);

#endif
