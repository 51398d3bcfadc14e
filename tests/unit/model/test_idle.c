/* SPDX-License-Identifier: Apache-2.0 */
/* Which session ends because nobody uses it, and when. */
#include "testing.h"

#include <string.h>

#include "base/clock.h"
#include "model/idle.h"

#define SEC USEC_PER_SEC
#define NOW (INT64_C(1000000) * SEC)

static struct idle_settings said(const char *const *pairs)
{
    struct idle_settings s;
    struct aq_error err = { 0 };

    idle_settings_defaults(&s);
    for (; pairs[0]; pairs += 2)
        if (idle_settings_put(&s, pairs[0], pairs[1], &err) != 1)
            fail_msg("%s = %s: %s", pairs[0], pairs[1], err.text);
    return s;
}

static const char *const enabled[] = { "enabled", "network_timeout,utilization", NULL };

static int64_t network_limit(const struct idle_settings *s, int64_t policy_sec, int64_t group_sec,
                             enum session_type type)
{
    struct idle_policy p = { .timeout_usec = policy_sec * SEC,
                             .group_timeout_usec = group_sec * SEC };

    return idle_limits_find(s, &p, type).network_usec / SEC;
}

static void limits_of_policies(void **state)
{
    struct idle_settings off = said(&enabled[2]), on = said(enabled);

    (void)state;
    assert_int_equal(network_limit(&on, -1, 0, SESSION_INTERACTIVE), 600);
    assert_int_equal(network_limit(&on, 0, 0, SESSION_INTERACTIVE), 0);
    assert_int_equal(network_limit(&on, 3600, 0, SESSION_INTERACTIVE), 3600);
    assert_int_equal(network_limit(&on, 3600, 60, SESSION_INTERACTIVE), 60);
    assert_int_equal(network_limit(&on, 0, 60, SESSION_SYSTEM), 60);
    assert_int_equal(network_limit(&on, 3600, 0, SESSION_BATCH), 0);
    assert_int_equal(network_limit(&on, 3600, 0, SESSION_INFERENCE), 0);
    /* Without "enabled" a policy's limit holds, and the default does not. */
    assert_int_equal(network_limit(&off, 3600, 0, SESSION_INTERACTIVE), 3600);
    assert_int_equal(network_limit(&off, -1, 0, SESSION_INTERACTIVE), 0);
}

static struct idle_report judge(const struct idle_settings *s, const struct idle_limits *limits,
                                struct idle_facts facts)
{
    struct idle_report report;

    facts.now_usec = NOW;
    idle_judge(s, limits, &facts, &report);
    return report;
}

static void nobody_works(void **state)
{
    struct idle_settings s = said(enabled);
    struct idle_limits l = { .network_usec = 3600 * SEC };
    struct idle_report r;

    (void)state;
    r = judge(&s, &l, (struct idle_facts){ .active_usec = NOW - 3601 * SEC });
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_EXPIRED);
    assert_int_equal(r.by, IDLE_NETWORK);
    assert_int_equal(r.checks[IDLE_LIFETIME].state, IDLE_OFF);
    r = judge(&s, &l, (struct idle_facts){ .active_usec = NOW - 3600 * SEC });
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_EXPIRED);
    r = judge(&s, &l, (struct idle_facts){ .active_usec = NOW - 100 * SEC });
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_EXPIRES);
    assert_int_equal(r.at_usec, NOW + 3500 * SEC);
    /* It began to run after that. */
    r = judge(&s, &l,
              (struct idle_facts){ .active_usec = NOW - 3601 * SEC, .began_usec = NOW - 10 * SEC });
    assert_int_equal(r.at_usec, NOW + 3590 * SEC);
    /* Kept by somebody, or because nothing is known. */
    r = judge(
        &s, &l,
        (struct idle_facts){ .active_usec = NOW - 3601 * SEC, .extended_usec = NOW + 60 * SEC });
    assert_int_equal(r.at_usec, NOW + 60 * SEC);
    r = judge(&s, &l, (struct idle_facts){ .active_usec = NOW - 3601 * SEC, .is_exempt = true });
    assert_int_equal(r.by, IDLE_CHECKS);
    r = judge(&s, &l,
              (struct idle_facts){ .active_usec = NOW - 3601 * SEC, .is_unmeasured = true });
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_KEPT);
}

/* Limits count from the end of the user's grace period, if that is later. */
static void users_are_new(void **state)
{
    static const char *const averages[] = {
        "enabled",
        "network_timeout,utilization",
        "checkers/utilization/resource-thresholds/cpu_util/average",
        "10",
        "checkers/utilization/initial-grace-period",
        "5m",
        NULL
    };
    struct idle_settings s = said(averages);
    struct idle_limits l = { .network_usec = 3600 * SEC,
                             .window_usec = 3600 * SEC,
                             .lifetime_usec = 7200 * SEC };
    struct idle_facts new = { .began_usec = NOW - 7300 * SEC,
                              .active_usec = NOW - 3601 * SEC,
                              .grace_usec = NOW + 100 * SEC };
    struct idle_facts since = new;
    struct idle_report r = judge(&s, &l, new);

    (void)state;
    assert_int_equal(r.base_usec, NOW + 100 * SEC);
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_EXPIRES);
    assert_int_equal(r.checks[IDLE_NETWORK].at_usec, NOW + 3700 * SEC);
    assert_int_equal(r.checks[IDLE_LIFETIME].at_usec, NOW + 7300 * SEC);
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_GRACE);
    since.grace_usec = NOW - 3601 * SEC; /* it ended as long ago as the session was in use */
    r = judge(&s, &l, since);
    assert_int_equal(r.checks[IDLE_NETWORK].state, IDLE_EXPIRED);
    assert_int_equal(r.checks[IDLE_LIFETIME].at_usec, NOW + 3599 * SEC);
    since.grace_usec = 0;
    assert_int_equal(judge(&s, &l, since).checks[IDLE_LIFETIME].state, IDLE_EXPIRED);
}

static void lifetimes_end(void **state)
{
    struct idle_settings s = said(enabled);
    struct idle_limits l = { .network_usec = 3600 * SEC, .lifetime_usec = 100 * SEC };
    struct idle_report r;

    (void)state;
    r = judge(&s, &l,
              (struct idle_facts){ .began_usec = NOW - 99 * SEC,
                                   .active_usec = NOW,
                                   .extended_usec = NOW + 999 * SEC });
    assert_int_equal(r.by, IDLE_LIFETIME);
    assert_int_equal(r.at_usec, NOW + SEC);
    r = judge(&s, &l, (struct idle_facts){ .began_usec = NOW - 100 * SEC, .active_usec = NOW });
    assert_int_equal(r.checks[IDLE_LIFETIME].state, IDLE_EXPIRED);
    assert_string_equal(idle_check_reason(r.by), "idle-session-lifetime");
}

/* 12 hours of samples each 15 s. */
static void fill(struct idle_window *w, size_t metric, double value, int64_t samples)
{
    int64_t from = w->first_usec ? w->first_usec : NOW - samples * 15 * SEC;

    for (int64_t i = 0; i < samples; i++)
        idle_window_add(w, from + i * 15 * SEC, metric, value);
}

static void little_is_used(void **state)
{
    static const char *const thresholds[] = {
        "enabled",
        "utilization",
        "checkers/utilization/time-window",
        "12h",
        "checkers/utilization/resource-thresholds/cpu_util/average",
        "30",
        "checkers/utilization/resource-thresholds/cuda_util/average",
        "30",
        "warnings",
        "",
        NULL
    };
    struct idle_settings s = said(thresholds);
    struct idle_limits l = { .window_usec = s.window_usec };
    static struct idle_window w;
    struct idle_facts f = { .window = &w, .has = 3, .began_usec = NOW - 13 * 3600 * SEC };
    struct idle_report r;

    (void)state;
    idle_window_begin(&w, l.window_usec);
    fill(&w, 0, 20, 2880);
    fill(&w, 1, 40, 2880);
    r = judge(&s, &l, f); /* one is used enough */
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_KEPT);
    s.ends_if_any_is_low = true;
    r = judge(&s, &l, f);
    assert_int_equal(r.by, IDLE_UTILIZATION);
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_EXPIRED);
    s.ends_if_any_is_low = false;
    f.has = 1; /* without GPUs */
    r = judge(&s, &l, f);
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_EXPIRED);
    s.notice_usec = 600 * SEC; /* it has just become so */
    r = judge(&s, &l, f);
    assert_int_equal(r.at_usec, NOW + 600 * SEC);
    f.low_usec = NOW - 601 * SEC;
    r = judge(&s, &l, f);
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_EXPIRED);
    idle_window_begin(&w, l.window_usec); /* what was measured is lost */
    r = judge(&s, &l, f);
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_GRACE);
    fill(&w, 0, 20, 100);
    r = judge(&s, &l, f); /* will be too little, once the window is full */
    assert_int_equal(r.checks[IDLE_UTILIZATION].state, IDLE_EXPIRES);
    assert_int_equal(r.at_usec, NOW + l.window_usec - 1500 * SEC);
}

static void windows_with_holes(void **state)
{
    static struct idle_window w;
    double average;

    (void)state;
    idle_window_begin(&w, 64 * SEC);
    assert_false(idle_window_average(&w, NOW, 0, &average));
    for (int i = 0; i < 200; i++)
        idle_window_add(&w, NOW + i * SEC, 0, i < 136 ? 100 : 10);
    assert_true(idle_window_average(&w, NOW + 199 * SEC, 0, &average));
    assert_true(average == 10);
    assert_true(idle_window_average(&w, NOW + 214 * SEC, 0, &average));
    assert_false(idle_window_average(&w, NOW + 217 * SEC, 0, &average)); /* a quarter is missing */
    assert_false(idle_window_average(&w, NOW + 9999 * SEC, 0, &average));
    idle_window_add(&w, NOW + 9999 * SEC, 0, 50);
    assert_false(idle_window_average(&w, NOW + 9999 * SEC, 0, &average));
}

static void settings_that_cannot_be(void **state)
{
    static const char *const wrong[][2] = {
        { "enabled", "network" },
        { "app-streaming-packet-timeout", "soon" },
        { "checkers/network_timeout/session-types", "inference" },
        { "checkers/network_timeout/traffic", "1k" },
        { "checkers/utilization/thresholds-check-operator", "xor" },
        { "checkers/utilization/resource-thresholds/cpu_util/average", "much" },
        { "checkers/user_grace_period/user_initial_grace_period", "a week" },
        { "enabled", "none,utilization" },
        { "checkers/network_timeout/threshold", "-2" },
        { "warnings", "none,10m" },
        { "warnings", "1m,10m" },
        { "warnings", "5m,4m,3m,2m,1m" },
    };
    struct idle_settings s;
    struct aq_error err;

    (void)state;
    idle_settings_defaults(&s);
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        err = (struct aq_error){ 0 };
        if (idle_settings_put(&s, wrong[i][0], wrong[i][1], &err) >= 0 || !err.text[0])
            fail_msg("%s = %s is taken", wrong[i][0], wrong[i][1]);
    }
    assert_int_equal(idle_settings_put(&s, "checkers/other/threshold", "1", &err), 0);
    assert_int_equal(idle_settings_put(&s, "warnings", "", &err), 1);
    assert_int_equal(s.warnings_usec[0], 0);
    assert_int_equal(idle_settings_put(&s, "warnings", "5m", &err), 1);
    assert_int_equal(idle_settings_put(&s, "warnings", "none", &err), 1);
    assert_int_equal(s.warnings_usec[0], 0);
    assert_int_equal(
        idle_settings_put(&s, "checkers/utilization/resource-thresholds/mem/average", "null", &err),
        1);
    assert_int_equal(s.threshold_count, 0);
}

/* "none", and -1 of Backend.AI's threshold, switch off. */
static void limits_are_switched_off(void **state)
{
    static const char *const off[] = { "enabled", "none", NULL };
    static const char *const thresholds[][5] = {
        { "enabled", "network_timeout", "checkers/network_timeout/threshold", "none" },
        { "enabled", "network_timeout", "checkers/network_timeout/threshold", "-1" },
    };
    struct idle_settings s = said(off);

    (void)state;
    assert_int_equal(network_limit(&s, 3600, 0, SESSION_INTERACTIVE), 0);
    for (size_t i = 0; i < AQ_COUNT(thresholds); i++) {
        s = said(thresholds[i]);
        assert_int_equal(network_limit(&s, -1, 0, SESSION_INTERACTIVE), 0);
        assert_int_equal(network_limit(&s, 3600, 0, SESSION_INTERACTIVE), 3600);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_of_policies), cmocka_unit_test(nobody_works),
        cmocka_unit_test(lifetimes_end),      cmocka_unit_test(little_is_used),
        cmocka_unit_test(windows_with_holes), cmocka_unit_test(settings_that_cannot_be),
        cmocka_unit_test(users_are_new),      cmocka_unit_test(limits_are_switched_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
