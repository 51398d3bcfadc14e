/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "manager/stream/log_quota.h"

static void test_so_many_of_a_user_and_agent(void **state)
{
    static const struct {
        unsigned char user;
        const char *agent;
    } rows[] = { { 1, "a" }, { 1, "b" }, { 2, "a" } };
    struct log_quota_readers *readers[AQ_COUNT(rows)][LOG_QUOTA_MAX], *more = NULL;
    struct log_quota *quota = log_quota_new();

    (void)state;
    assert_non_null(quota);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct uuid user = { .bytes = { rows[i].user } };
        struct aq_error err = { 0 };

        for (size_t n = 0; n < LOG_QUOTA_MAX; n++)
            assert_int_equal(log_quota_enter(quota, &user, rows[i].agent, &readers[i][n], &err), 0);
        assert_int_equal(log_quota_enter(quota, &user, rows[i].agent, &more, &err), -EAGAIN);
        assert_string_equal(err.kind, "rate-limit-exceeded");
        assert_non_null(strstr(err.text, "100 logs of agent"));
        assert_null(more);
        log_quota_leave(readers[i][0]);
        assert_int_equal(log_quota_enter(quota, &user, rows[i].agent, &readers[i][0], &err), 0);
    }
    log_quota_leave(NULL);
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t n = 0; n < LOG_QUOTA_MAX; n++)
            log_quota_leave(readers[i][n]);
    log_quota_free(quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_so_many_of_a_user_and_agent) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
