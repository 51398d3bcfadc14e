/* SPDX-License-Identifier: Apache-2.0 */
/* Token counts of answers, however the answers are cut into pieces. */
#include "testing.h"

#include "serving/usage_scan.h"

static void check(const char *type, const char *body, size_t piece, int64_t prompt,
                  int64_t completion)
{
    struct usage_scan scan;

    usage_scan_begin(&scan, type);
    for (size_t at = 0, len = strlen(body); at < len; at += piece)
        usage_scan_take(&scan, body + at, AQ_MIN(piece, len - at));
    usage_scan_finish(&scan);
    assert_row(scan.prompt_tokens == prompt && scan.completion_tokens == completion,
               "%s in pieces of %zu", body, piece);
    usage_scan_done(&scan);
}

static void test_usage(void **state)
{
    static const struct {
        const char *type, *body;
        int64_t prompt, completion;
    } cases[] = {
        { "application/json",
          "{\"choices\":[],\"usage\":{\"prompt_tokens\":12,"
          "\"completion_tokens\":34,\"total_tokens\":46}}",
          12, 34 },
        { "application/json; charset=utf-8",
          "{\"usage\": {\"input_tokens\": 5, \"output_tokens\": 6}}", 5, 6 },
        { "application/json", "{\"text\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":9}\"}", 0, 0 },
        { "application/json", "{\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":\"7\"}}", 0,
          0 },
        { "application/json", "{\"usage\":{\"prompt_tokens\":3}}", 3, 0 },
        { "application/json", "{\"usage\":null}", 0, 0 },
        { "text/plain", "{\"usage\":{\"prompt_tokens\":3}}", 0, 0 },
        { "text/event-stream",
          "data: {\"choices\":[{}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":"
          "{\"prompt_tokens\":7,\"completion_tokens\":8}}\n\ndata: [DONE]\n\n",
          7, 8 },
        { "text/event-stream",
          "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\r\n\r\n"
          "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\r\n\r\n",
          7, 2 },
        { "text/event-stream",
          "data: {\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n"
          "data: {\"usage\":{\"output_tokens\":9}}\n\n",
          7, 9 },
        /* parts of a request that are repeated behind it */
        { "application/json",
          "{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":8},\"metadata\":"
          "{\"usage\":\"x\"}}",
          7, 8 },
        { "application/json",
          "{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":8},\"tools\":"
          "[{\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}},{\"usage\":{}}]}",
          7, 8 },
        { "application/json", "{\"usage\":{\"prompt_tokens\":1e300,\"completion_tokens\":NaN}}", 0,
          0 },
        { "application/json", "{\"usage\":{\"prompt_tokens\":99999999999999999999}}", 1000000000,
          0 },
    };
    static const size_t pieces[] = { 1, 2, 7, 50, 10000 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        for (size_t k = 0; k < AQ_COUNT(pieces); k++)
            check(cases[i].type, cases[i].body, pieces[k], cases[i].prompt, cases[i].completion);
    check(NULL, "{\"usage\":{\"prompt_tokens\":3}}", 5, 0, 0);
}

static void test_cached_tokens(void **state)
{
    static const struct {
        const char *body;
        int64_t cached;
    } cases[] = {
        { "{\"usage\":{\"prompt_tokens\":12,\"prompt_tokens_details\":{\"audio_tokens\":1,"
          "\"cached_tokens\":8},\"completion_tokens\":3}}",
          8 },
        { "{\"usage\":{\"input_tokens\":12,\"input_tokens_details\":{\"cached_tokens\":4},"
          "\"output_tokens\":3}}",
          4 },
        { "{\"usage\":{\"prompt_tokens\":12,\"prompt_tokens_details\":null}}", 0 },
        { "{\"usage\":{\"prompt_tokens\":12,\"prompt_tokens_details\":{\"cached_tokens\":-8}}}",
          0 },
        { "{\"usage\":{\"prompt_tokens\":12,\"prompt_tokens_details\":{\"cached_tokens\":99}}}",
          12 },
        { "{\"usage\":{\"prompt_tokens\":12,\"cached_tokens\":9}}", 0 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct usage_scan scan;

        usage_scan_begin(&scan, "application/json");
        usage_scan_take(&scan, cases[i].body, strlen(cases[i].body));
        usage_scan_finish(&scan);
        assert_row(scan.cached_tokens == cases[i].cached, "%s", cases[i].body);
        usage_scan_done(&scan);
    }
}

static void test_long_answers_are_not_kept(void **state)
{
    struct usage_scan json, events;
    char block[3000];

    (void)state;
    memset(block, 'a', sizeof(block));
    usage_scan_begin(&json, "application/json");
    usage_scan_begin(&events, "text/event-stream");
    for (int i = 0; i < 100; i++) {
        usage_scan_take(&json, block, sizeof(block));
        usage_scan_take(&events, block, sizeof(block));
        assert_true(json.held.len <= (size_t)3 * USAGE_TAIL_MAX);
        assert_true(events.held.len <= USAGE_EVENT_MAX);
    }
    usage_scan_take(&json, "\"usage\":{\"prompt_tokens\":3}}", 29);
    usage_scan_take(&events, "\ndata: {\"usage\":{\"prompt_tokens\":4}}\n", 37);
    usage_scan_finish(&json);
    assert_int_equal(json.prompt_tokens, 3);
    assert_int_equal(events.prompt_tokens, 4);
    usage_scan_done(&json);
    usage_scan_done(&events);
}

/* Counts farther from the end than USAGE_TAIL_MAX are not read, however the answer comes. */
static void test_counts_before_the_tail(void **state)
{
    static const size_t pieces[] = { 1, 63, USAGE_TAIL_MAX, 20000 };
    static const char usage[] = "\"usage\":{\"prompt_tokens\":3}}";
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT, within = STRBUF_INIT;

    (void)state;
    strbuf_adds(&before, "{\"usage\":{\"prompt_tokens\":3},\"text\":\"");
    while (before.len < USAGE_TAIL_MAX + 500)
        strbuf_adds(&before, "word ");
    strbuf_add(&within, before.data, before.len);
    strbuf_adds(&before, "\"}");
    strbuf_addf(&within, "\",%s", usage);
    for (size_t i = 0; i < AQ_COUNT(pieces); i++) {
        check("application/json", before.data, pieces[i], 0, 0);
        check("application/json", within.data, pieces[i], 3, 0);
    }
}

/* A text that is read again from each object within would take minutes. */
static void test_objects_without_an_end(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    struct usage_scan scan;

    (void)state;
    strbuf_adds(&line, "data: ");
    while (line.len < USAGE_EVENT_MAX - 100)
        strbuf_adds(&line, "{\"usage\":");
    strbuf_adds(&line, "\n\ndata: {\"usage\":{\"prompt_tokens\":4}}\n\n");
    usage_scan_begin(&scan, "text/event-stream");
    for (int i = 0; i < 2000; i++)
        usage_scan_take(&scan, line.data, line.len);
    usage_scan_finish(&scan);
    assert_int_equal(scan.prompt_tokens, 4);
    usage_scan_done(&scan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_counts_before_the_tail),
        cmocka_unit_test(test_cached_tokens),
        cmocka_unit_test(test_long_answers_are_not_kept),
        cmocka_unit_test(test_objects_without_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
