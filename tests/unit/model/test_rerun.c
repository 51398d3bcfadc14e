/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a batch session that did not succeed is run again, and when */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "model/session.h"

static void causes_of_ends(void **state)
{
    static const struct {
        const char *reason;
        int exit_code; /* -1 = none */
        enum rerun_cause want;
    } rows[] = {
        { "task-failed", 3, RERUN_FAILURE },      { "self-terminated", 3, RERUN_FAILURE },
        { "self-terminated", 0, RERUN_OTHER },    { "task-finished", 0, RERUN_OTHER },
        { "out-of-memory", 137, RERUN_OOM },      { "gpu-out-of-memory", 1, RERUN_GPU_OOM },
        { "agent-lost", -1, RERUN_NODE_LOST },    { "monitor-lost", -1, RERUN_NODE_LOST },
        { "task-timeout", 143, RERUN_TIMEOUT },   { "preempted", 143, RERUN_PREEMPTED },
        { "failed-to-create", -1, RERUN_START },  { "bootstrap-failed", 2, RERUN_START },
        { "user-requested", 143, RERUN_OTHER },   { "gpu-misuse", 137, RERUN_OTHER },
        { "dependency-failed", -1, RERUN_OTHER }, { NULL, 1, RERUN_OTHER },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(rerun_cause_of(rows[i].reason, rows[i].exit_code >= 0, rows[i].exit_code)
                       == rows[i].want,
                   "%s %d", rows[i].reason ? rows[i].reason : "none", rows[i].exit_code);
}

static void words_that_are_refused(void **state)
{
    static const char *const rows[] = {
        "",         "failed",    "failure,",      ",oom",    "oom:",
        "oom:0",    "oom:101",   "oom:1:2",       "exit=",   "exit=0",
        "exit=256", "exit=9-1",  "exit=1-",       "exit=-1", "oom node-lost",
        "OOM",      "exit=1 -2", "start:1,start", "other",   "exit=99999999999",
    };
    struct rerun_policy policy;
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int r = rerun_policy_parse(rows[i], &policy, &err);

        if (strcmp(rows[i], "start:1,start") == 0) { /* the first counts */
            assert_int_equal(r, 0);
            continue;
        }
        assert_row(r == -EINVAL, "'%s'", rows[i]);
        assert_string_equal(err.field, "retry_on");
    }
    assert_int_equal(rerun_policy_parse("a,oom", &policy, &err), -EINVAL);
    assert_non_null(strstr(err.text, "does not take 'a'; it takes failure"));
    assert_int_equal(rerun_policy_parse("exit=1,exit=2,exit=3,exit=4,exit=5,exit=6,exit=7,exit=8,"
                                        "exit=9,exit=10,exit=11,exit=12,exit=13,exit=14,exit=15,"
                                        "exit=16,exit=17",
                                        &policy, &err),
                     -EINVAL);
}

static void bounds(void **state)
{
    static const struct {
        struct session_spec spec;
        const char *field; /* NULL = fine */
    } rows[] = {
        { { .retry = 0 }, NULL },
        { { .retry = 100, .retry_delay_usec = RERUN_DELAY_MAX_USEC, .retry_factor = 10 }, NULL },
        { { .retry = 101 }, "retry" },
        { { .retry_on = "oom" }, "retry" },
        { { .retry_delay_usec = 1 }, "retry" },
        { { .retry_factor = 1 }, "retry" },
        { { .retry = 1, .retry_on = "ooom" }, "retry_on" },
        { { .retry = 1, .retry_delay_usec = RERUN_DELAY_MAX_USEC + 1 }, "retry_delay" },
        { { .retry = 1, .retry_factor = 11 }, "retry_factor" },
    };
    struct aq_error err;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int r = rerun_check(&rows[i].spec, &err);

        assert_row(r == (rows[i].field ? -EINVAL : 0), "row %zu", i);
        if (rows[i].field)
            assert_string_equal(err.field, rows[i].field);
    }
}

/* How many ends like these in a row lead to another attempt. */
static unsigned count_retries(const struct session_spec *spec, const struct rerun_end *end)
{
    struct rerun_record record = { .attempts = 0 };
    unsigned count = 0;

    while (count <= 200 && rerun_decide(spec, count ? &record : NULL, end, 0, &record))
        count++;
    assert_int_equal(record.retries, count);
    return count;
}

static void limits(void **state)
{
    static const struct {
        const char *on;
        enum rerun_cause cause;
        int exit_code;
        unsigned want; /* of at most 3 */
    } rows[] = {
        { NULL, RERUN_FAILURE, 1, 3 },
        { NULL, RERUN_OOM, 137, 3 },
        { NULL, RERUN_START, 0, 3 },
        { NULL, RERUN_NODE_LOST, 0, 3 },
        { NULL, RERUN_TIMEOUT, 143, 0 },
        { NULL, RERUN_PREEMPTED, 143, 0 },
        { NULL, RERUN_OTHER, 1, 0 },
        { "timeout,preempted", RERUN_TIMEOUT, 143, 3 },
        { "oom:1,failure", RERUN_OOM, 137, 1 },
        { "failure,oom:1", RERUN_OOM, 137, 1 },
        { "failure", RERUN_OOM, 137, 3 },
        { "failure:2", RERUN_GPU_OOM, 1, 2 },
        { "oom", RERUN_FAILURE, 137, 0 },
        { "exit=137", RERUN_OOM, 137, 3 },
        { "exit=1-9:2,failure:1", RERUN_FAILURE, 9, 2 },
        { "failure:1,exit=1-9:2", RERUN_FAILURE, 1, 2 },
        { "failure:1,exit=1-9:2", RERUN_FAILURE, 10, 1 },
        { "exit=1", RERUN_FAILURE, 2, 0 },
        { "exit=143", RERUN_TIMEOUT, 143, 0 },
        { "oom:100", RERUN_OOM, 137, 3 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct session_spec spec = { .retry = 3, .retry_on = rows[i].on };
        const struct rerun_end end = { rows[i].cause, true, rows[i].exit_code };

        assert_row(count_retries(&spec, &end) == rows[i].want, "%s after %s",
                   rows[i].on ? rows[i].on : "default", rerun_cause_name(rows[i].cause));
    }
}

/* All causes count together, each also alone. */
static void causes_count_together(void **state)
{
    const struct session_spec spec = { .retry = 2, .retry_on = "oom:1,failure" };
    const struct rerun_end oom = { RERUN_OOM, true, 137 }, failure = { RERUN_FAILURE, true, 1 };
    struct rerun_record record;

    (void)state;
    assert_true(rerun_decide(&spec, NULL, &oom, 0, &record));
    assert_false(rerun_decide(&spec, &record, &oom, 0, &record));
    assert_true(rerun_decide(&spec, &record, &failure, 0, &record));
    assert_false(rerun_decide(&spec, &record, &failure, 0, &record));
    assert_int_equal(record.attempts, 2);
    record.attempts += 3; /* preempted as often */
    assert_int_equal(rerun_attempts_max(&spec, &record), 6);
}

static void delays(void **state)
{
    static const struct {
        int64_t delay, factor;
        uint32_t retry;
        int64_t want; /* seconds */
    } rows[] = {
        { 0, 0, 1, 10 },    { 0, 0, 2, 20 },   { 0, 0, 6, 320 },        { 0, 0, 7, 600 },
        { 0, 0, 100, 600 }, { 30, 1, 50, 30 }, { 5, 3, 3, 45 },         { 900, 2, 1, 900 },
        { 900, 2, 9, 900 }, { 1, 10, 4, 600 }, { 86400, 10, 2, 86400 },
    };
    const struct rerun_end preempted = { RERUN_PREEMPTED, false, 0 };
    const struct session_spec spec = { .retry = 1, .retry_on = "preempted" };
    struct rerun_record record;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct session_spec with = { .retry = 100,
                                           .retry_delay_usec = rows[i].delay * USEC_PER_SEC,
                                           .retry_factor = rows[i].factor };

        assert_row(rerun_delay_usec(&with, rows[i].retry) == rows[i].want * USEC_PER_SEC,
                   "row %zu: %lld", i, (long long)rerun_delay_usec(&with, rows[i].retry));
    }
    assert_true(rerun_decide(&spec, NULL, &preempted, 5, &record));
    assert_true(record.next_usec > 0); /* at once: nothing is wrong with it */
}

static void text_and_back(void **state)
{
    static const char *const damaged[] = {
        "",
        "1",
        "1:1:0:oom:1",
        "1:2:0:oom:1:",
        "x:1:0:oom:1:",
        "1:1:0:ooom:1:",
        "1:1:0:oom::",
        "1:1:0:oom:1,:",
        "1:1:0:oom:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17:",
    };
    struct rerun_record record = { .attempts = 3,
                                   .retries = 2,
                                   .used = { 0, 2 },
                                   .next_usec = INT64_C(1790000000000000),
                                   .cause = RERUN_NODE_LOST,
                                   .agent = "gpu-3:a" };
    struct rerun_record read;
    char text[RERUN_TEXT_MAX], again[RERUN_TEXT_MAX];

    (void)state;
    assert_string_equal(rerun_format(&record, text), "3:2:1790000000000000:node-lost:0,2:gpu-3:a");
    assert_int_equal(rerun_parse(text, &read), 0);
    assert_string_equal(rerun_format(&read, again), text);
    for (size_t i = 0; i < RERUN_RULES_MAX; i++)
        record.used[i] = 100;
    memset(record.agent, 'a', AGENT_ID_MAX);
    assert_int_equal(rerun_parse(rerun_format(&record, text), &read), 0);
    assert_string_equal(rerun_format(&read, again), text);
    for (size_t i = 0; i < AQ_COUNT(damaged); i++)
        assert_row(rerun_parse(damaged[i], &read) == -EINVAL, "'%s'", damaged[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_of_ends),
        cmocka_unit_test(words_that_are_refused),
        cmocka_unit_test(bounds),
        cmocka_unit_test(limits),
        cmocka_unit_test(causes_count_together),
        cmocka_unit_test(delays),
        cmocka_unit_test(text_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
