/* SPDX-License-Identifier: Apache-2.0 */
/* Which outcomes of probes make a program ready or unhealthy, and when the next probe follows. */
#include "testing.h"

#include "agent/probe/probe_state.h"
#include "base/clock.h"

#define MSEC USEC_PER_MSEC
#define SEC USEC_PER_SEC

static const struct probe_rule rule = { .interval_usec = 10 * SEC, .retries = 4 };

struct step {
    enum probe_outcome outcome;
    int64_t at_usec; /* when it is known; probing began at 0 */
    enum probe_health health;
    int64_t delay_usec;
};

static void take_steps(struct probe_state *state, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t delay = probe_state_take(state, &rule, steps[i].outcome, steps[i].at_usec, 1);

        assert_row(state->health == steps[i].health && delay == steps[i].delay_usec,
                   "step %zu: %s, next after %lld us", i, probe_health_name(state->health),
                   (long long)delay);
    }
}

static void starting_is_probed_often_then_rarely(void **data)
{
    static const struct step steps[] = {
        { PROBE_REFUSED, 0, PROBE_STARTING, 10 * MSEC },
        { PROBE_REFUSED, 2 * SEC - 1, PROBE_STARTING, 10 * MSEC },
        { PROBE_REFUSED, 2 * SEC, PROBE_STARTING, 100 * MSEC },
        { PROBE_REFUSED, 30 * SEC, PROBE_STARTING, SEC },
        { PROBE_REFUSED, 3000 * SEC, PROBE_STARTING, SEC },
        { PROBE_LATE, SEC, PROBE_STARTING, 10 * MSEC },
        { PROBE_WRONG, SEC, PROBE_STARTING, 100 * MSEC },
        { PROBE_WRONG, 31 * SEC, PROBE_STARTING, SEC },
        { PROBE_UNKNOWN, 0, PROBE_STARTING, SEC },
    };
    struct probe_state state = { .begun_usec = 0 };

    (void)data;
    take_steps(&state, steps, AQ_COUNT(steps));
}

static void many_that_start_share_a_thousand_probes_a_second(void **data)
{
    struct probe_state state = { .begun_usec = 0 };

    (void)data;
    assert_int_equal(probe_state_take(&state, &rule, PROBE_REFUSED, 0, 10), 10 * MSEC);
    assert_int_equal(probe_state_take(&state, &rule, PROBE_REFUSED, 0, 50), 50 * MSEC);
    assert_int_equal(probe_state_take(&state, &rule, PROBE_REFUSED, 31 * SEC, 50), SEC);
    assert_int_equal(probe_state_take(&state, &rule, PROBE_REFUSED, 31 * SEC, 5000), 5 * SEC);
}

static void the_first_good_answer_makes_ready(void **data)
{
    static const struct step steps[] = {
        { PROBE_REFUSED, 0, PROBE_STARTING, 10 * MSEC },
        { PROBE_GOOD, 1, PROBE_READY, 10 * SEC },
        { PROBE_GOOD, 2, PROBE_READY, 10 * SEC },
    };
    struct probe_state state = { .begun_usec = 0 };

    (void)data;
    take_steps(&state, steps, AQ_COUNT(steps));
}

static void failures_in_a_row_make_unhealthy(void **data)
{
    static const struct step steps[] = {
        { PROBE_GOOD, 0, PROBE_READY, 10 * SEC },
        { PROBE_LATE, 1, PROBE_READY, 10 * SEC },
        { PROBE_WRONG, 2, PROBE_READY, 10 * SEC },
        { PROBE_LATE, 3, PROBE_READY, 10 * SEC },
        { PROBE_GOOD, 4, PROBE_READY, 10 * SEC }, /* the row is broken */
        { PROBE_LATE, 5, PROBE_READY, 10 * SEC },
        { PROBE_WRONG, 6, PROBE_READY, 10 * SEC },
        { PROBE_UNKNOWN, 7, PROBE_READY, 10 * SEC }, /* does not count */
        { PROBE_LATE, 8, PROBE_READY, 10 * SEC },
        { PROBE_WRONG, 9, PROBE_UNHEALTHY, 10 * SEC },
        { PROBE_UNKNOWN, 10, PROBE_UNHEALTHY, 10 * SEC },
        { PROBE_GOOD, 11, PROBE_READY, 10 * SEC },
        { PROBE_LATE, 12, PROBE_READY, 10 * SEC },
    };
    struct probe_state state = { .begun_usec = 0 };

    (void)data;
    take_steps(&state, steps, AQ_COUNT(steps));
}

static void three_refusals_in_a_row_make_unhealthy_at_once(void **data)
{
    static const struct step steps[] = {
        { PROBE_GOOD, 0, PROBE_READY, 10 * SEC },
        { PROBE_REFUSED, 1, PROBE_READY, 100 * MSEC },
        { PROBE_REFUSED, 2, PROBE_READY, 100 * MSEC },
        { PROBE_LATE, 3, PROBE_READY, 10 * SEC }, /* the row is broken, not that of failures */
        { PROBE_GOOD, 4, PROBE_READY, 10 * SEC },
        { PROBE_REFUSED, 5, PROBE_READY, 100 * MSEC },
        { PROBE_REFUSED, 6, PROBE_READY, 100 * MSEC },
        { PROBE_REFUSED, 7, PROBE_UNHEALTHY, SEC },
        { PROBE_REFUSED, 8, PROBE_UNHEALTHY, SEC },
        { PROBE_WRONG, 9, PROBE_UNHEALTHY, 10 * SEC },
        { PROBE_GOOD, 10, PROBE_READY, 10 * SEC },
    };
    struct probe_state state = { .begun_usec = 0 };

    (void)data;
    take_steps(&state, steps, AQ_COUNT(steps));
}

static void a_short_interval_is_never_exceeded(void **data)
{
    const struct probe_rule often = { .interval_usec = 50 * MSEC, .retries = 1 };
    struct probe_state state = { .health = PROBE_READY };

    (void)data;
    assert_int_equal(probe_state_take(&state, &often, PROBE_REFUSED, 0, 0), 50 * MSEC);
    assert_int_equal(state.health, PROBE_UNHEALTHY);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(starting_is_probed_often_then_rarely),
        cmocka_unit_test(many_that_start_share_a_thousand_probes_a_second),
        cmocka_unit_test(the_first_good_answer_makes_ready),
        cmocka_unit_test(failures_in_a_row_make_unhealthy),
        cmocka_unit_test(three_refusals_in_a_row_make_unhealthy_at_once),
        cmocka_unit_test(a_short_interval_is_never_exceeded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
