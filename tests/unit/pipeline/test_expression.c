/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "pipeline/expression.h"

static const char *compared_value; /* of the reference "value" */

static const char *find(void *data, const char *reference, struct aq_error *err)
{
    (void)data;
    if (strcmp(reference, "tasks.prepare.values.rows") == 0)
        return "12";
    if (strcmp(reference, "matrix.name") == 0)
        return "red";
    if (strcmp(reference, "always") == 0)
        return "true";
    if (strcmp(reference, "long") == 0)
        return data;
    if (strcmp(reference, "value") == 0)
        return compared_value;
    (void)aq_fail(err, EINVAL, "no '%s'", reference);
    return NULL;
}

static const struct expression_names names = { find, NULL };

static void assert_value(const char *text, const char *expected)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    const char *value = NULL;

    assert_int_equal(expression_evaluate(text, strlen(text), &names, &arena, &value, &err), 0);
    assert_string_equal(value, expected);
}

static void assert_refused(const char *text, const char *part)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err = { 0 };
    const char *value = NULL;

    assert_int_equal(expression_evaluate(text, strlen(text), &names, &arena, &value, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, part));
}

static void numbers_are_compared_as_numbers(void **state)
{
    (void)state;
    assert_value("tasks.prepare.values.rows > 9", "true");
    assert_value("12 == 12.0", "true");
    assert_value("-1 < 0", "true");
    assert_value("1e3 >= 1000", "true");
    assert_value("tasks.prepare.values.rows", "12");
}

static void texts_are_compared_as_texts(void **state)
{
    (void)state;
    assert_value("matrix.name == 'red'", "true");
    assert_value("matrix.name != \"blue\"", "true");
    assert_value("'' == 0", "false");
}

static void two_long_values_are_not_compared(void **state)
{
    char longest[EXPRESSION_COMPARED_MAX + 1], longer[EXPRESSION_COMPARED_MAX + 2];

    (void)state;
    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memset(longer, '1', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    compared_value = longest;
    assert_value("value == value", "true");
    compared_value = longer;
    assert_value("value != ''", "true");
    assert_value("value and 1", "true");
    assert_refused("value == value", "both values have more than 4096 bytes");
}

static void operators_have_precedence(void **state)
{
    (void)state;
    assert_value("true or false and false", "true");
    assert_value("(true or false) and false", "false");
    assert_value("not false and always()", "true");
    assert_value("!always || matrix.name == 'red'", "true");
    assert_value("not not 1", "true");
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    assert_refused("1 +", "character 3");
    assert_refused("(1", "expected ')'");
    assert_refused("'x", "not closed");
    assert_refused("always(1)", "no arguments");
    assert_refused("other", "no 'other'");
    assert_refused("", "expected a value");
    assert_refused("1x", "malformed number");
}

static void depth_and_length_are_bounded(void **state)
{
    char text[EXPRESSION_BYTES_MAX + 2];

    (void)state;
    memset(text, '(', 100);
    text[100] = '\0';
    assert_refused(text, "too deeply");
    memset(text, '!', 100);
    assert_refused(text, "too deeply");
    memset(text, '1', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_refused(text, "at most");
}

static void texts_are_filled_in(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(
        expression_substitute("a ${{ matrix.name }}$b ${{1}}", &names, &arena, &out, &err), 0);
    assert_string_equal(out.data, "a red$b 1");
    assert_int_equal(expression_substitute("${{ x", &names, &arena, &out, &err), -EINVAL);
}

static void the_result_is_bounded(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, text = STRBUF_INIT,
                                           value = STRBUF_INIT;
    struct expression_names many;
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++) {
        strbuf_adds(&text, "${{long}}");
        strbuf_adds(&value, "0123456789");
    }
    many = (struct expression_names){ find, value.data };
    assert_int_equal(expression_substitute(text.data, &many, &arena, &out, &err), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_compared_as_numbers),
        cmocka_unit_test(two_long_values_are_not_compared),
        cmocka_unit_test(texts_are_compared_as_texts),
        cmocka_unit_test(operators_have_precedence),
        cmocka_unit_test(mistakes_have_a_place),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(texts_are_filled_in),
        cmocka_unit_test(the_result_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
