/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "runner/execution.h"

static struct execution *make(void)
{
    const struct execution_request request = { .verb = EXECUTION_RUN, .id = "a", .len = 0 };
    struct execution *run = execution_new(&request, "", 0);

    assert_non_null(run);
    return run;
}

static void add(struct execution *run, enum execution_kind kind, const char *text)
{
    execution_add(run, kind, text, strlen(text));
}

static void expect(struct execution *run, const char *json, bool is_over)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    assert_int_equal(execution_take(run, &out), is_over);
    assert_string_equal(out.data, json);
}

static void test_requests(void **state)
{
    static const char *const wrong[] = { "",
                                         "run",
                                         "run a 1 python",
                                         "fly a 1 python 0",
                                         "run a -1 python 0",
                                         "run a 1 python 99999999999",
                                         "run a x python 0",
                                         "run a 1 python 0 -5",
                                         "run a 1 python 0 soon" };
    char line[] = "run a1 200 python 12";
    struct execution_request request;

    (void)state;
    assert_true(execution_parse(line, &request));
    assert_int_equal(request.verb, EXECUTION_RUN);
    assert_string_equal(request.id, "a1");
    assert_string_equal(request.language, "python");
    assert_int_equal(request.wait_msec, 200);
    assert_int_equal(request.len, 12);
    for (size_t i = 0; i < AQ_COUNT(wrong); i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "%s", wrong[i]);
        assert_false(execution_parse(text, &request));
    }
}

static void test_neighbours_are_one_record(void **state)
{
    struct execution *run = make();

    (void)state;
    add(run, EXECUTION_STDOUT, "a");
    add(run, EXECUTION_STDOUT, "b");
    add(run, EXECUTION_STDERR, "c");
    add(run, EXECUTION_STDOUT, "d");
    expect(run,
           "{\"console\":[[\"stdout\",\"ab\"],[\"stderr\",\"c\"],[\"stdout\",\"d\"]],"
           "\"status\":\"continued\",\"exit_code\":null,\"is_password\":false}",
           false);
    execution_free(run);
}

static void test_characters_stay_whole(void **state)
{
    struct execution *run = make();

    (void)state;
    execution_add(run, EXECUTION_STDOUT, "x\xe2\x82", 3);
    expect(run,
           "{\"console\":[[\"stdout\",\"x\"]],\"status\":\"continued\","
           "\"exit_code\":null,\"is_password\":false}",
           false);
    execution_add(run, EXECUTION_STDOUT, "\xac", 1);
    execution_add_status(run, EXECUTION_FINISHED, 3);
    expect(run,
           "{\"console\":[[\"stdout\",\"\xe2\x82\xac\"]],\"status\":\"finished\","
           "\"exit_code\":3,\"is_password\":false}",
           true);
    execution_free(run);
}

static void test_steps_are_told_one_by_one(void **state)
{
    struct execution *run = make();

    (void)state;
    execution_add_status(run, EXECUTION_CLEAN_FINISHED, 0);
    add(run, EXECUTION_STDERR, "no");
    execution_add_status(run, EXECUTION_BUILD_FINISHED, 2);
    assert_true(execution_has_status(run));
    expect(run,
           "{\"console\":[],\"status\":\"clean-finished\",\"exit_code\":0,"
           "\"is_password\":false}",
           false);
    expect(run,
           "{\"console\":[[\"stderr\",\"no\"]],\"status\":\"build-finished\","
           "\"exit_code\":2,\"is_password\":false}",
           false);
    assert_false(execution_has_status(run));
    execution_free(run);
}

static void test_limits(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct execution *run = make();
    static char much[EXECUTION_REPLY_MAX];

    (void)state;
    memset(much, 'y', sizeof(much));
    for (size_t kept = 0; kept < EXECUTION_OUTPUT_MAX; kept += sizeof(much))
        execution_add(run, EXECUTION_STDOUT, much, sizeof(much));
    assert_true(execution_is_full(run));
    add(run, EXECUTION_STDOUT, "lost");
    add(run, EXECUTION_STDOUT, "lost");
    assert_false(execution_take(run, &out));
    assert_in_range(out.len, EXECUTION_REPLY_MAX, EXECUTION_REPLY_MAX + 200);
    for (int i = 0; i < EXECUTION_OUTPUT_MAX / EXECUTION_REPLY_MAX; i++) {
        strbuf_clear(&out);
        assert_false(execution_take(run, &out));
        assert_null(strstr(out.data, "lost"));
    }
    assert_non_null(strstr(out.data, "was dropped"));
    assert_int_equal(run->kept, 0);
    execution_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_neighbours_are_one_record),
        cmocka_unit_test(test_characters_stay_whole),
        cmocka_unit_test(test_steps_are_told_one_by_one),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
