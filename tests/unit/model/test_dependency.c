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
                 { "corresponding:a", DEPENDENCY_CORRESPONDING, "a" },
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

/* Each condition against a session that waits, runs, has succeeded, has failed, was cancelled; and
 * against an array that goes on although an element of it has failed.
 */
static void test_states(void **state)
{
    static const struct session_dependency others[] = {
        { .ended = false },
        { .has_run = true },
        { .ended = true, .has_run = true, .result = RESULT_SUCCESS },
        { .ended = true, .has_run = true, .result = RESULT_FAILURE },
        { .ended = true, .result = RESULT_UNDEFINED },
        { .is_array = true, .element = DEPENDENCY_ALL, .has_failed = true }
    };
    static const char want[][7] = { [DEPENDENCY_SUCCESS] = "wwmuuu",
                                    [DEPENDENCY_FAILURE] = "wwummw",
                                    [DEPENDENCY_END] = "wwmmmw",
                                    [DEPENDENCY_START] = "wmmmmw",
                                    [DEPENDENCY_CORRESPONDING] = "wwmuuu" };
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

#define ID "01a22a67-67bc-7205-a1f5-6887fee0083d"

static void test_targets(void **state)
{
    static const struct {
        const char *text;
        int want;
        bool is_array;
        int64_t element;
    } rows[] = { { ID, 0, false, DEPENDENCY_ALL }, { ID "[*]", 0, true, DEPENDENCY_ALL },
                 { ID "[0]", 0, true, 0 },         { ID "[4000000]", 0, true, 4000000 },
                 { "", -EINVAL, false, 0 },        { "01a22a67", -EINVAL, false, 0 },
                 { ID "[", -EINVAL, false, 0 },    { ID "[]", -EINVAL, false, 0 },
                 { ID "[-1]", -EINVAL, false, 0 }, { ID "[7", -EINVAL, false, 0 },
                 { ID "[7]x", -EINVAL, false, 0 }, { ID ID, -EINVAL, false, 0 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct session_dependency d = { .ended = false }, other = { .ended = false };

        assert_row(dependency_parse_target(rows[i].text, &d) == rows[i].want, "%s", rows[i].text);
        if (rows[i].want < 0)
            continue;
        assert_row(d.is_array == rows[i].is_array && d.element == rows[i].element, "%s",
                   rows[i].text);
        dependency_write_target(&d, &out);
        assert_string_equal(out.data, rows[i].text);
        assert_int_equal(dependency_parse_target(ID, &other), 0);
        assert_row(dependency_is_same(&d, &other) == !rows[i].is_array, "%s", rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts), cmocka_unit_test(test_states),
                                        cmocka_unit_test(test_targets) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
