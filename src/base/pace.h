/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - long work beside work that matters more
 *
 * A low priority is not enough: whatever runs delays the threads of others when they
 * wake. The work is done in short pieces with pauses of nine times their length, so it
 * runs a tenth of the time and takes at most ten times as long, however busy the machine is.
 */
#ifndef AQ_BASE_PACE_H
#define AQ_BASE_PACE_H

#include <stdint.h>

struct pace {
    int64_t since; /* monotonic; end of the last pause */
};

/* The work begins now. */
void pace_begin(struct pace *pace);

/* Between two small steps of it: pause if it is time. NULL = never. */
void pace_step(struct pace *pace);

#endif
