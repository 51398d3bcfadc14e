/* SPDX-License-Identifier: Apache-2.0 */
/* play_check.h - the invariants of a run, checked while it runs and at its end
 *
 * What the manager announces and what programs do is checked as it happens; memory, database and
 * programs are compared each simulated minute. play.h has the invariants.
 */
#ifndef AQ_SIM_PLAY_PLAY_CHECK_H
#define AQ_SIM_PLAY_PLAY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct core;
struct play;

struct play_check {
    struct map seen; /* id of a session -> struct check_seen: what was announced of it */
    uint32_t boots;  /* of the manager whose events are followed */
    bool is_reading, is_auditing; /* of that manager */
    int64_t audit_usec;           /* simulated time: the next */
    int64_t idle_usec;            /* since when sessions wait and none runs; 0 = not */
};

void play_check_begin(struct play *play);

/* After each turn of a loop. */
void play_check_turn(struct play *play);

/* Compare everything that can be compared now. */
void play_check_sweep(struct play *play);

/* Everything has ended and all is well: nothing is held any more. */
void play_check_end(struct play *play);

#endif
