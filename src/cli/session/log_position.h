/* SPDX-License-Identifier: Apache-2.0 */
/* log_position.h - how far a log was read, so that another stream of it goes on from there
 *
 * Each line of the log begins with its time (timestamps=true of the route). The position is the time
 * of the newest line and how many bytes of lines of this time have come. It holds where a count of
 * all bytes does not: in a log of which only the last lines were asked for, and in one whose oldest
 * lines are dropped meanwhile.
 */
#ifndef AQ_CLI_SESSION_LOG_POSITION_H
#define AQ_CLI_SESSION_LOG_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/strbuf.h"

struct log_position {
    char since[CLOCK_ISO_MAX]; /* of the newest line, for the route's parameter; "" = none came */
    uint64_t after;            /* bytes from the first line of this time on */
    uint64_t skip;             /* of these, still to be passed over */
    char time[CLOCK_ISO_MAX];  /* of the line that begins, as far as it has come */
    size_t time_len;
    bool is_inside; /* of a line: its time has come whole */
};

/* Append the text of what came next, with the times before its lines if 'has_times'. */
void log_position_take(struct log_position *p, const char *bytes, size_t len, bool has_times,
                       struct strbuf *out);

/* Another stream begins, which was asked for lines since 'since', or for the whole log. */
void log_position_reopen(struct log_position *p);

#endif
