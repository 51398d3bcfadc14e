/* SPDX-License-Identifier: Apache-2.0 */
/* probe_state.h - whether a probed program is ready, and when it is probed next. Pure
 *
 * It starts until the first answer as expected, and is ready from then on. So many failures in a row
 * make it unhealthy, three refused connections at once; the next good answer makes it ready again.
 */
#ifndef AQ_AGENT_PROBE_PROBE_STATE_H
#define AQ_AGENT_PROBE_PROBE_STATE_H

#include <stddef.h>
#include <stdint.h>

enum probe_outcome {
    PROBE_GOOD,
    PROBE_REFUSED, /* nobody listens, or the connection was closed or reset without an answer */
    PROBE_WRONG,   /* another answer than expected */
    PROBE_LATE,    /* no answer in time */
    PROBE_UNKNOWN, /* the node could not probe: says nothing about the program */
};

enum probe_health { PROBE_STARTING, PROBE_READY, PROBE_UNHEALTHY };

const char *probe_health_name(enum probe_health health); /* "starting" ... */

struct probe_rule {
    int64_t interval_usec; /* between probes once it was ready */
    int64_t retries;       /* failures in a row that make it unhealthy */
};

struct probe_state {
    enum probe_health health;
    int64_t begun_usec;         /* when probing began; the caller's clock */
    int64_t failures, refusals; /* in a row */
};

/* Take the outcome of a probe. Returns after how many microseconds the next one follows. 'starting' is
 * how many programs of the node are starting: together they are probed a thousand times a second at
 * most.
 */
int64_t probe_state_take(struct probe_state *state, const struct probe_rule *rule,
                         enum probe_outcome outcome, int64_t now_usec, size_t starting);

#endif
