/* SPDX-License-Identifier: Apache-2.0 */
/* Long work in pieces. */
#include "base/pace.h"

#include <unistd.h>

#include "base/clock.h"

#define PIECE_USEC (2 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (50 * USEC_PER_MSEC) /* a piece that took longer was kept waiting itself */

void pace_begin(struct pace *pace)
{
    pace->since = clock_monotonic_usec();
}

void pace_step(struct pace *pace)
{
    int64_t worked = pace ? clock_monotonic_usec() - pace->since : 0;

    if (worked < PIECE_USEC)
        return;
    (void)usleep((useconds_t)AQ_MIN(9 * worked, PAUSE_MAX_USEC));
    pace_begin(pace);
}
