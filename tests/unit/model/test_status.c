/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "model/agent.h"
#include "model/event.h"
#include "model/accounts.h"
#include "model/session.h"
#include "model/status.h"

/* Every row: what must be allowed, and what must not. */
static const struct {
    enum session_status from, to;
    bool want;
} session_rows[] = {
    { SESSION_PENDING, SESSION_SCHEDULED, true },
    { SESSION_PENDING, SESSION_CANCELLED, true },
    { SESSION_PENDING, SESSION_RUNNING, false },
    { SESSION_PENDING, SESSION_TERMINATED, false },
    { SESSION_SCHEDULED, SESSION_RUNNING, true },
    { SESSION_SCHEDULED, SESSION_PENDING, false }, /* only by way of RESCHEDULING */
    { SESSION_PREPARING, SESSION_PULLING, true },
    { SESSION_PULLING, SESSION_PREPARING, true },
    { SESSION_CREATING, SESSION_PREPARING, false },
    { SESSION_RUNNING, SESSION_TERMINATED, true },
    { SESSION_RUNNING, SESSION_CREATING, false },
    { SESSION_RUNNING, SESSION_RESCHEDULING, true },
    { SESSION_RESCHEDULING, SESSION_PENDING, true },
    { SESSION_RESTARTING, SESSION_RUNNING, true },
    { SESSION_TERMINATING, SESSION_TERMINATED, true },
    { SESSION_TERMINATING, SESSION_RUNNING, false },
    { SESSION_TERMINATING, SESSION_PENDING, false },
};

static const struct {
    enum kernel_status from, to;
    bool want;
} kernel_rows[] = {
    { KERNEL_PENDING, KERNEL_SCHEDULED, true },    { KERNEL_PENDING, KERNEL_CANCELLED, true },
    { KERNEL_PENDING, KERNEL_RUNNING, false },     { KERNEL_SCHEDULED, KERNEL_RUNNING, true },
    { KERNEL_SCHEDULED, KERNEL_PENDING, true },    { KERNEL_RUNNING, KERNEL_RESTARTING, true },
    { KERNEL_RUNNING, KERNEL_PENDING, true }, /* given to another agent */
    { KERNEL_RUNNING, KERNEL_SCHEDULED, false },   { KERNEL_TERMINATING, KERNEL_TERMINATED, true },
    { KERNEL_TERMINATING, KERNEL_RUNNING, false }, { KERNEL_TERMINATING, KERNEL_PENDING, false },
};

static void test_may_follow(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(session_rows); i++)
        assert_row(session_status_may_follow(session_rows[i].from, session_rows[i].to)
                       == session_rows[i].want,
                   "%s -> %s", session_status_name(session_rows[i].from),
                   session_status_name(session_rows[i].to));
    for (size_t i = 0; i < AQ_COUNT(kernel_rows); i++)
        assert_row(kernel_status_may_follow(kernel_rows[i].from, kernel_rows[i].to)
                       == kernel_rows[i].want,
                   "%s -> %s", kernel_status_name(kernel_rows[i].from),
                   kernel_status_name(kernel_rows[i].to));
}

/* A terminal state is never left, no state follows itself, and every other
 * state has a way to a terminal one.
 */
static void test_terminal(void **state)
{
    (void)state;
    for (int s = 0; s < SESSION_STATUS_COUNT; s++) {
        int ways = 0;

        for (int t = 0; t < SESSION_STATUS_COUNT; t++)
            ways += session_status_may_follow(s, t);
        assert_row(session_is_terminal(s) == (ways == 0), "%s", session_status_name(s));
        assert_row(!session_status_may_follow(s, s), "%s to itself", session_status_name(s));
    }
    assert_true(session_is_terminal(SESSION_TERMINATED));
    assert_true(session_is_terminal(SESSION_ERROR));
    assert_true(session_is_terminal(SESSION_CANCELLED));
    assert_false(session_is_terminal(SESSION_TERMINATING));
    assert_true(kernel_is_terminal(KERNEL_CANCELLED));
    assert_false(kernel_is_terminal(KERNEL_PENDING));
}

/* Every state that is not terminal and does not last by nature has a
 * deadline, and the deadline leads where the table allows.
 */
static void test_deadlines(void **state)
{
    (void)state;
    for (int s = 0; s < SESSION_STATUS_COUNT; s++) {
        struct status_deadline d = session_deadline(s);
        bool lasting = s == SESSION_PENDING || s == SESSION_RUNNING || s == SESSION_RUNNING_DEGRADED
                       || session_is_terminal(s);

        assert_row((d.after_usec == 0) == lasting, "%s", session_status_name(s));
        if (d.after_usec) {
            assert_row(session_status_may_follow(s, d.next), "%s", session_status_name(s));
            assert_row(d.reason != NULL, "%s", session_status_name(s));
        }
    }
}

static void test_holding(void **state)
{
    static const enum kernel_status not_holding[] = { KERNEL_PENDING, KERNEL_TERMINATED,
                                                      KERNEL_ERROR, KERNEL_CANCELLED };
    int count = 0;

    (void)state;
    for (int s = 0; s < KERNEL_STATUS_COUNT; s++)
        count += !kernel_is_holding(s);
    assert_int_equal(count, AQ_COUNT(not_holding));
    for (size_t i = 0; i < AQ_COUNT(not_holding); i++)
        assert_false(kernel_is_holding(not_holding[i]));
}

static void test_names(void **state)
{
    (void)state;
    for (int s = 0; s < SESSION_STATUS_COUNT; s++) {
        enum session_status back;

        assert_int_equal(session_status_parse(session_status_name(s), &back), 0);
        assert_int_equal(back, s);
    }
    for (int s = 0; s < KERNEL_STATUS_COUNT; s++) {
        enum kernel_status back;

        assert_int_equal(kernel_status_parse(kernel_status_name(s), &back), 0);
        assert_int_equal(back, s);
    }
    enum session_status status = SESSION_ERROR;
    assert_int_equal(session_status_parse("running", &status), 0);
    assert_int_equal(status, SESSION_RUNNING);
    assert_int_equal(session_status_parse("", &status), -EINVAL);
    assert_int_equal(session_status_parse("RUN", &status), -EINVAL);
    assert_int_equal(status, SESSION_RUNNING);

    enum session_result result;
    assert_int_equal(session_result_parse("failed", &result), 0);
    assert_string_equal(session_result_name(result), "FAILURE");

    assert_string_equal(session_status_name_2203(SESSION_PREPARED), "PREPARING");
    assert_string_equal(session_status_name_2203(SESSION_CREATING), "PREPARING");
    assert_string_equal(session_status_name_2203(SESSION_RESERVED), "PENDING");
    assert_string_equal(session_status_name_2203(SESSION_DEPRIORITIZING), "PENDING");
    assert_string_equal(session_status_name_2203(SESSION_RUNNING_DEGRADED), "RUNNING");
    assert_string_equal(session_status_name_2203(SESSION_PREEMPTED), "RESTARTING");

    enum user_role role;
    assert_int_equal(user_role_parse("SuperAdmin", &role), 0);
    assert_int_equal(role, ROLE_SUPERADMIN);
    enum user_status user_status;
    assert_int_equal(user_status_parse("before-verification", &user_status), 0);
    assert_int_equal(user_status, USER_BEFORE_VERIFICATION);
    assert_int_equal(user_status_parse("gone", &user_status), -EINVAL);
}

static void test_checks(void **state)
{
    static const struct {
        const char *name;
        bool ok, is_id;
    } names[] = {
        { "test", true },
        { "a.b-c_d", true },
        { "__init__", true },
        { "1234", true },
        { "ab", true },
        { "a", false },
        { "", false },
        { "-abc", false },
        { "abc-", false },
        { ".abc", false },
        { "ab c", false },
        { "ab\nc", false },
        { "s\xc3\xa9"
          "ance",
          false },
        { "a/bc", false },
        { "0123456789012345678901234567890123456789012345678901234567890123", true },
        { "01234567890123456789012345678901234567890123456789012345678901234", false },
        { "01234567-89ab-cdef-0123-456789abcdef", true, .is_id = true },
        { "0123456789ABCDEF0123456789abcdef", true, .is_id = true },
        { "01234567-89ab-cdef-0123-456789abcde", true },
        { "0123456789abcdef0123456789abcdef-1", true },
    };
    static const struct {
        const char *id;
        bool ok;
    } ids[] = {
        { "i-001", true },
        { "n", true },
        { "node1.example.org", true },
        { "", false },
        { ".hidden", false },
        { "-x", false },
        { "a/b", false },
        { "a b", false },
        { "01234567890123456789012345678901234567890123456789012345678901234", false },
    };
    static const struct {
        const char *label;
        bool ok;
    } labels[] = {
        { "zone-a/rack_3/switch.1", true },
        { "a", true },
        { "1/2/3/4/5/6/7/8", true },
        { "1/2/3/4/5/6/7/8/9", false },
        { "", false },
        { "/a", false },
        { "a/", false },
        { "a//b", false },
        { "a b", false },
        { "a/\xc3\xa4", false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(labels); i++) {
        struct aq_error err = { 0 };

        assert_row(topology_check(labels[i].label, &err) == (labels[i].ok ? 0 : -EINVAL), "'%s'",
                   labels[i].label);
        assert_row(labels[i].ok || strcmp(err.field, "topology") == 0, "'%s'", labels[i].label);
    }
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct aq_error err = { 0 };
        int r = session_name_check(names[i].name, &err);

        assert_row(r == (names[i].ok ? 0 : -EINVAL), "'%s'", names[i].name);
        assert_row(names[i].ok || strcmp(err.field, "name") == 0, "'%s'", names[i].name);
        r = session_name_check_new(names[i].name, &err);
        assert_row(r == (names[i].ok && !names[i].is_id ? 0 : -EINVAL), "'%s'", names[i].name);
    }
    for (size_t i = 0; i < AQ_COUNT(ids); i++)
        assert_row(agent_id_check(ids[i].id, NULL) == (ids[i].ok ? 0 : -EINVAL), "'%s'", ids[i].id);
}

/* What apply took is zeroed; what it did not take, the batch frees (the
 * address sanitizer decides).
 */
static void test_batch(void **state)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    struct event *e;

    (void)state;
    assert_non_null(batch);
    for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
        e = event_batch_add(batch, kind, 5);
        assert_non_null(e);
        assert_int_equal(e->kind, kind);
    }
    batch->events[EVENT_SESSION_CREATED].session.reason = strdup("because");
    batch->events[EVENT_KERNEL_STATUS].kernel_status.agent_id = strdup("i-001");
    batch->events[EVENT_USER_SAVED].user.password_hash = strdup("$argon2id$");
    assert_int_equal(batch->count, EVENT_KIND_COUNT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_may_follow), cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_deadlines),  cmocka_unit_test(test_holding),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_checks),
        cmocka_unit_test(test_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
