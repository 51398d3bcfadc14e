/* SPDX-License-Identifier: Apache-2.0 */
/* log_budget.c - see log_budget.h */
#include "base/log_budget.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"

static bool log_budget_take(struct log_budget *budget)
{
    int64_t now = clock_monotonic_usec();

    if (!budget->begun_usec || now - budget->begun_usec >= 60 * USEC_PER_SEC) {
        budget->begun_usec = now;
        budget->lines = 0;
    }
    if (budget->lines == LOG_BUDGET_LINES) {
        budget->left_out++;
        return false;
    }
    budget->lines++;
    return true;
}

void log_limited(struct log_budget *budget, enum log_level level, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    if (!log_budget_take(budget))
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (budget->left_out)
        log_write(level, "%" PRIu64 " lines like the next were too many and are left out",
                  budget->left_out);
    budget->left_out = 0;
    log_write(level, "%s", text);
}
