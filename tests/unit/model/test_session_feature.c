/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "model/session_feature.h"

static void test_the_table(void **state)
{
    static const bool has[][SESSION_FEATURE_COUNT] = {
        /*                          code   apps   ssh */
        [SESSION_INTERACTIVE] = { true, true, true },
        [SESSION_BATCH] = { false, true, true },
        [SESSION_INFERENCE] = { false, true, true },
        [SESSION_SYSTEM] = { false, false, true },
    };

    (void)state;
    for (size_t type = 0; type < AQ_COUNT(has); type++)
        for (size_t feature = 0; feature < SESSION_FEATURE_COUNT; feature++) {
            struct aq_error err = { 0 };

            assert_int_equal(
                session_feature_check((enum session_type)type, (enum session_feature)feature, &err),
                has[type][feature] ? 0 : -EPERM);
            if (!has[type][feature])
                assert_string_equal(err.kind, "session-type-lacks-feature");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_table) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
