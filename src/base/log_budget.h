/* SPDX-License-Identifier: Apache-2.0 */
/* log_budget.h - lines of the log that somebody else can cause: so many a minute and no more
 *
 * Each source of them has a budget of its own, so that none hides what another does. One thread
 * at a time.
 */
#ifndef AQ_BASE_LOG_BUDGET_H
#define AQ_BASE_LOG_BUDGET_H

#include <stdint.h>

#include "base/log.h"

#define LOG_BUDGET_LINES 60 /* a minute */

/* Zero-initialise. */
struct log_budget {
    int64_t begun_usec; /* monotonic: the minute of the lines below; 0 = none was written */
    unsigned lines;
    uint64_t left_out; /* since the last that was written */
};

/* log_write(), unless the lines of this minute are used up. The next one that is written says
 * before itself how many were left out.
 */
void log_limited(struct log_budget *budget, enum log_level level, const char *fmt, ...)
    AQ_PRINTF(3, 4);

#endif
