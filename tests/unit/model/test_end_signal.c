/* SPDX-License-Identifier: Apache-2.0 */
/* Signals before the end of a program: names, times, bounds */
#include "testing.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "model/end_signal.h"
#include "model/session_spec.h"

#define SEC USEC_PER_SEC

static void signals_before_the_limit(void **state)
{
    static const struct {
        const char *text;
        int signal; /* 0 = refused */
        int64_t seconds;
    } rows[] = {
        { "USR1", SIGUSR1, 60 },
        { "SIGUSR1@120", SIGUSR1, 120 },
        { "B:10@5", SIGUSR1, 5 },
        { "R:TERM", SIGTERM, 60 },
        { "RB:INT@1", SIGINT, 1 },
        { "2@86400", SIGINT, 86400 },
        { "", 0, 0 },
        { "USR3", 0, 0 },
        { "usr1", 0, 0 },
        { "KILL", 0, 0 },
        { "9", 0, 0 },
        { "STOP@5", 0, 0 },
        { "0", 0, 0 },
        { "64", 0, 0 },
        { "USR1@", 0, 0 },
        { "USR1@0", 0, 0 },
        { "USR1@-1", 0, 0 },
        { "USR1@5s", 0, 0 },
        { "USR1@86401", 0, 0 },
        { "USR1 @5", 0, 0 },
        { "X:USR1", 0, 0 },
        { "SIG", 0, 0 },
        { "100000000000", 0, 0 },
        { "USR1@99999999999999999999", 0, 0 },
    };
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t before = 0;
        int number = 0, r = end_signal_parse(rows[i].text, &number, &before, &err);

        assert_row(r == (rows[i].signal ? 0 : -EINVAL), "'%s'", rows[i].text);
        if (r == 0)
            assert_row(number == rows[i].signal && before == rows[i].seconds * SEC, "'%s': %d %lld",
                       rows[i].text, number, (long long)before);
        else
            assert_string_equal(err.field, "signal");
    }
}

static void bounds(void **state)
{
    static const struct {
        struct session_spec spec;
        const char *field; /* NULL = fine */
    } rows[] = {
        { { .signal = NULL }, NULL },
        { { .signal = "USR1", .batch_timeout_usec = SEC }, NULL },
        { { .signal = "USR1" }, "signal" },
        { { .signal = "KILL", .batch_timeout_usec = SEC }, "signal" },
        { { .checkpoint_signal = "TERM", .grace_usec = END_SIGNAL_TIME_MAX_USEC }, NULL },
        { { .checkpoint_signal = "KILL" }, "checkpoint_signal" },
        { { .checkpoint_signal = "USR1@5" }, "checkpoint_signal" },
        { { .grace_usec = END_SIGNAL_TIME_MAX_USEC + 1 }, "grace" },
    };
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int r = end_signal_check(&rows[i].spec, &err);

        assert_row(r == (rows[i].field ? -EINVAL : 0), "row %zu", i);
        if (rows[i].field)
            assert_string_equal(err.field, rows[i].field);
    }
}

static void times(void **state)
{
    static const struct {
        struct session_spec spec;
        int64_t max, notice, grace; /* seconds; the usual grace is 10 */
    } rows[] = {
        { { .grace_usec = 0 }, 300, 0, 10 },
        { { .grace_usec = 60 * SEC }, 300, 0, 60 },
        { { .grace_usec = 600 * SEC }, 300, 0, 300 },
        { { .checkpoint_signal = "USR1" }, 300, 30, 10 },
        { { .checkpoint_signal = "USR1", .grace_usec = 600 * SEC }, 300, 300, 10 },
        { { .checkpoint_signal = "USR1", .grace_usec = SEC }, 300, 1, 10 },
        { { .checkpoint_signal = "USR1" }, 5, 5, 10 },
        { { .checkpoint_signal = "USR1" }, 0, 0, 10 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_row(end_signal_notice_usec(&rows[i].spec, rows[i].max * SEC) == rows[i].notice * SEC,
                   "row %zu", i);
        assert_row(end_signal_grace_usec(&rows[i].spec, rows[i].max * SEC, 10 * SEC)
                       == rows[i].grace * SEC,
                   "row %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_before_the_limit),
        cmocka_unit_test(bounds),
        cmocka_unit_test(times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
