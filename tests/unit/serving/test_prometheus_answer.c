/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the answers of a Prometheus server. */
#include "testing.h"

#include <errno.h>
#include <math.h>

#include "serving/prometheus_answer.h"

#define DATA(type, result) \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" result "}}"
#define SERIES(value) "{\"metric\":{\"a\":\"b\"},\"value\":[1700000000.1,\"" value "\"]}"

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        { DATA("scalar", "[1700000000,\"3\"]"), 3 },
        { DATA("vector", "[" SERIES("-2.5e3") "]"), -2500 },
        { DATA("vector", "[" SERIES("+Inf") "]"), (double)INFINITY },
    };
    double value = 0;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        assert_row(prometheus_answer_read(200, cases[i].text, strlen(cases[i].text), &value, NULL)
                           == 0
                       && value == cases[i].value,
                   "%s: %g", cases[i].text, value);
    assert_int_equal(prometheus_answer_read(200, DATA("scalar", "[1,\"NaN\"]"),
                                            strlen(DATA("scalar", "[1,\"NaN\"]")), &value, NULL),
                     0);
    assert_true(isnan(value));
}

static void test_what_is_none(void **state)
{
    static const struct {
        int status;
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        { 200, DATA("vector", "[]"), -ENODATA, "no series matches" },
        { 200, DATA("vector", "[" SERIES("1") "," SERIES("2") "]"), -E2BIG, "results in 2 series" },
        { 200, DATA("matrix", "[]"), -EINVAL, "results in a matrix" },
        { 200, DATA("string", "[1,\"3\"]"), -EINVAL, "results in a string" },
        { 200, DATA("scalar", "[1,\"3x\"]"), -EINVAL, "'3x' in place of a number" },
        { 200, DATA("scalar", "[1,3]"), -EINVAL, "'nothing' in place of a number" },
        { 200, DATA("vector", "[7]"), -EINVAL, "'nothing' in place of a number" },
        { 200, DATA("vector", "{}"), -ENODATA, "no series matches" },
        { 200, "{\"status\":\"success\"}", -EINVAL, "not that of a Prometheus server" },
        { 200, "{}", -EINVAL, "not that of a Prometheus server" },
        { 200, "<html>", -EINVAL, "not that of a Prometheus server" },
        { 200, "", -EINVAL, "not that of a Prometheus server" },
        { 502, "<html>", -EINVAL, "answers 502" },
        { 400, "{\"status\":\"error\",\"error\":\"parse error: unexpected\"}", -EINVAL,
          "answers 400: parse error: unexpected" },
        { 500, DATA("scalar", "[1,\"3\"]"), -EINVAL, "answers 500" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct aq_error err = { 0 };
        double value = 0;
        int r = prometheus_answer_read(cases[i].status, cases[i].text, strlen(cases[i].text),
                                       &value, &err);

        assert_row(r == cases[i].code && strstr(err.text, cases[i].words), "%s: %d %s",
                   cases[i].text, r, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
