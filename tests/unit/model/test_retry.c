/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of steps: which of the three, and what follows */
#include "testing.h"

#include <errno.h>

#include "base/clock.h"
#include "model/retry.h"

#define SEC USEC_PER_SEC

static void test_classify(void **state)
{
    static const struct {
        const char *why;
        struct retry_limits limits;
        struct retry_record last;
        int64_t age_usec;
        enum retry_result want;
    } rows[] = {
        { "no limits", { 0, 0 }, { RETRY_START, 1000, false }, 1000 * SEC, RETRY_NEED_RETRY },
        { "the first failure", { 0, 5 }, { RETRY_NONE, 0, false }, 0, RETRY_NEED_RETRY },
        { "one attempt left", { 0, 5 }, { RETRY_START, 4, false }, 0, RETRY_NEED_RETRY },
        { "as many as allowed", { 0, 5 }, { RETRY_START, 5, false }, 0, RETRY_GIVE_UP },
        { "more than allowed", { 0, 5 }, { RETRY_START, 6, false }, 0, RETRY_GIVE_UP },
        { "enough, and too late: enough",
          { SEC, 5 },
          { RETRY_START, 5, false },
          2 * SEC,
          RETRY_GIVE_UP },
        { "the last was a skip", { 0, 5 }, { RETRY_START, 5, true }, 0, RETRY_NEED_RETRY },
        { "a skip, and too late", { SEC, 5 }, { RETRY_START, 5, true }, 2 * SEC, RETRY_EXPIRED },
        { "failures of another step",
          { 0, 5 },
          { RETRY_PRECONDITION, 5, false },
          0,
          RETRY_NEED_RETRY },
        { "to the microsecond", { SEC, 0 }, { RETRY_NONE, 0, false }, SEC, RETRY_NEED_RETRY },
        { "too late", { SEC, 0 }, { RETRY_NONE, 0, false }, SEC + 1, RETRY_EXPIRED },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(
            retry_classify(&rows[i].limits, RETRY_START, &rows[i].last, 7, 7 + rows[i].age_usec)
                == rows[i].want,
            "%s", rows[i].why);
}

/* Five fail; the sixth time is given up, and the count starts from zero behind another step. */
static void test_count(void **state)
{
    static const struct retry_limits limits = { 0, 5 };
    struct retry_record record = { RETRY_NONE, 0, false };

    (void)state;
    for (uint32_t i = 1; i <= 5; i++) {
        assert_int_equal(retry_classify(&limits, RETRY_SCHEDULE, &record, 0, 0), RETRY_NEED_RETRY);
        record = retry_count(&record, RETRY_SCHEDULE, false);
        assert_int_equal(record.attempts, i);
    }
    assert_int_equal(retry_classify(&limits, RETRY_SCHEDULE, &record, 0, 0), RETRY_GIVE_UP);
    record = retry_count(&record, RETRY_START, false);
    assert_int_equal(record.attempts, 1);
    record = retry_count(&record, RETRY_START, true); /* a skip is another run */
    assert_int_equal(record.attempts, 1);
    record = retry_count(&record, RETRY_START, true);
    assert_int_equal(record.attempts, 2);
}

static void test_status(void **state)
{
    static const struct {
        enum retry_step step;
        enum session_status again, expired, given_up;
    } rows[] = {
        { RETRY_SCHEDULE, SESSION_PENDING, SESSION_CANCELLED, SESSION_DEPRIORITIZING },
        { RETRY_PRECONDITION, SESSION_RESCHEDULING, SESSION_RESCHEDULING, SESSION_TERMINATING },
        { RETRY_START, SESSION_RESCHEDULING, SESSION_RESCHEDULING, SESSION_TERMINATING },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        assert_int_equal(retry_status(rows[i].step, RETRY_NEED_RETRY), rows[i].again);
        assert_int_equal(retry_status(rows[i].step, RETRY_EXPIRED), rows[i].expired);
        assert_int_equal(retry_status(rows[i].step, RETRY_GIVE_UP), rows[i].given_up);
    }
}

static void test_backoff(void **state)
{
    static const int seconds[] = { 0, 0, 1, 2, 4, 8, 16, 32, 60, 60 };

    (void)state;
    for (uint32_t i = 0; i < AQ_COUNT(seconds); i++)
        assert_int_equal(retry_backoff_usec(i), seconds[i] * SEC);
    assert_int_equal(retry_backoff_usec(UINT32_MAX), 60 * SEC);
}

static void test_text(void **state)
{
    static const struct {
        const char *text;
        int r;
        struct retry_record record;
    } rows[] = {
        { "", 0, { RETRY_NONE, 0, false } },
        { "start-sessions:3", 0, { RETRY_START, 3, false } },
        { "check-precondition:12", 0, { RETRY_PRECONDITION, 12, false } },
        { "schedule-sessions:999999999", 0, { RETRY_SCHEDULE, 999999999, false } },
        { "start-sessions:9999999999", -EINVAL, { 0 } },
        { "start-sessions", -EINVAL, { 0 } },
        { "start-sessions:", -EINVAL, { 0 } },
        { "start-sessions:-1", -EINVAL, { 0 } },
        { "start-sessions:1 ", -EINVAL, { 0 } },
        { "stop-sessions:1", -EINVAL, { 0 } },
        { ":1", -EINVAL, { 0 } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct retry_record record = { RETRY_START, 77, false };
        char text[RETRY_TEXT_MAX];

        assert_row(retry_parse(rows[i].text, &record) == rows[i].r, "%s", rows[i].text);
        if (rows[i].r < 0)
            assert_int_equal(record.attempts, 77); /* untouched */
        else
            assert_string_equal(retry_format(&record, text), rows[i].text);
        assert_row(rows[i].r < 0 || record.step == rows[i].record.step, "%s", rows[i].text);
        assert_row(rows[i].r < 0 || record.attempts == rows[i].record.attempts, "%s", rows[i].text);
    }
    assert_string_equal(retry_result_name(RETRY_GIVE_UP), "give-up");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classify), cmocka_unit_test(test_count),
        cmocka_unit_test(test_status),   cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
