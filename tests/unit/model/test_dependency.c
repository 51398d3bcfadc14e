/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of dependencies: their texts, and when they are met. */
#include "testing.h"

#include <errno.h>

#include "model/dependency.h"

static void test_texts(void **state)
{
    static const struct {
        const char *text;
        int want; /* a condition, or -EINVAL */
        const char *session;
    } rows[] = { { "train", DEPENDENCY_SUCCESS, "train" },
                 { "success:a", DEPENDENCY_SUCCESS, "a" },
                 { "failure:a", DEPENDENCY_FAILURE, "a" },
                 { "end:a.b-c", DEPENDENCY_END, "a.b-c" },
                 { "start:a", DEPENDENCY_START, "a" },
                 { "", DEPENDENCY_SUCCESS, "" },
                 { "start:a:b", DEPENDENCY_START, "a:b" },
                 { ":a", -EINVAL, NULL },
                 { "Start:a", -EINVAL, NULL },
                 { "starting:a", -EINVAL, NULL },
                 { "success-of-the-other:a", -EINVAL, NULL } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        enum dependency_condition condition;
        const char *session;
        struct aq_error err = { .code = 0 };
        int r = dependency_parse(rows[i].text, &condition, &session, &err);

        assert_row((r < 0 ? r : (int)condition) == rows[i].want, "%s", rows[i].text);
        if (r < 0)
            assert_string_equal(err.field, "dependencies");
        else
            assert_string_equal(session, rows[i].session);
    }
}

/* Each condition against a session that waits, runs, has succeeded, has failed, was cancelled. */
static void test_states(void **state)
{
    static const struct session_dependency others[] = {
        { .ended = false },
        { .has_run = true },
        { .ended = true, .has_run = true, .result = RESULT_SUCCESS },
        { .ended = true, .has_run = true, .result = RESULT_FAILURE },
        { .ended = true, .result = RESULT_UNDEFINED }
    };
    static const char want[][6] = { [DEPENDENCY_SUCCESS] = "wwmuu",
                                    [DEPENDENCY_FAILURE] = "wwumm",
                                    [DEPENDENCY_END] = "wwmmm",
                                    [DEPENDENCY_START] = "wmmmm" };
    static const char letters[] = {
        [DEPENDENCY_WAITING] = 'w', [DEPENDENCY_MET] = 'm', [DEPENDENCY_UNMET] = 'u'
    };

    (void)state;
    for (size_t c = 0; c < AQ_COUNT(want); c++)
        for (size_t i = 0; i < AQ_COUNT(others); i++) {
            struct session_dependency d = others[i];

            d.condition = (enum dependency_condition)c;
            assert_row(letters[dependency_state(&d)] == want[c][i], "%s %zu",
                       dependency_condition_name(d.condition), i);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts),
                                        cmocka_unit_test(test_states) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
