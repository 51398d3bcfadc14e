/* SPDX-License-Identifier: Apache-2.0 */
/* probe_state.c - see probe_state.h */
#include "agent/probe/probe_state.h"

#include "base/cleanup.h"
#include "base/clock.h"

#define START_USEC (10 * USEC_PER_MSEC)
#define START_ANSWERED_USEC (100 * USEC_PER_MSEC) /* each answer is a line in an access log */
#define START_SLOWER_USEC (100 * USEC_PER_MSEC)
#define START_SLOWER_AFTER_USEC (2 * USEC_PER_SEC)
#define START_SLOWEST_USEC USEC_PER_SEC
#define START_SLOWEST_AFTER_USEC (30 * USEC_PER_SEC)
#define START_SHARE_USEC USEC_PER_MSEC /* for each program that starts */
#define REFUSED_USEC (100 * USEC_PER_MSEC)
#define REFUSALS_MAX 3
#define RETURN_USEC USEC_PER_SEC /* until a refused connection is tried again of an unhealthy one */

const char *probe_health_name(enum probe_health health)
{
    static const char *const names[] = {
        [PROBE_STARTING] = "starting", [PROBE_READY] = "ready", [PROBE_UNHEALTHY] = "unhealthy"
    };

    return names[health];
}

static int64_t probe_state_start_delay(const struct probe_state *state, enum probe_outcome outcome,
                                       int64_t now_usec, size_t starting)
{
    int64_t age_usec = now_usec - state->begun_usec;
    int64_t delay_usec = age_usec >= START_SLOWEST_AFTER_USEC  ? START_SLOWEST_USEC
                         : age_usec >= START_SLOWER_AFTER_USEC ? START_SLOWER_USEC
                                                               : START_USEC;

    if (outcome == PROBE_WRONG)
        delay_usec = AQ_MAX(delay_usec, START_ANSWERED_USEC);
    else if (outcome == PROBE_UNKNOWN)
        delay_usec = START_SLOWEST_USEC;
    return AQ_MAX(delay_usec, (int64_t)starting * START_SHARE_USEC);
}

int64_t probe_state_take(struct probe_state *state, const struct probe_rule *rule,
                         enum probe_outcome outcome, int64_t now_usec, size_t starting)
{
    if (outcome == PROBE_GOOD) {
        state->health = PROBE_READY;
        state->failures = state->refusals = 0;
        return rule->interval_usec;
    }
    if (state->health == PROBE_STARTING)
        return probe_state_start_delay(state, outcome, now_usec, starting);
    if (outcome == PROBE_UNKNOWN)
        return rule->interval_usec;
    state->failures++;
    state->refusals = outcome == PROBE_REFUSED ? state->refusals + 1 : 0;
    if (state->failures >= rule->retries || state->refusals >= REFUSALS_MAX)
        state->health = PROBE_UNHEALTHY;
    if (outcome != PROBE_REFUSED)
        return rule->interval_usec;
    return AQ_MIN(rule->interval_usec, state->health == PROBE_READY ? REFUSED_USEC : RETURN_USEC);
}
