/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/strbuf.h"
#include "cli/session/log_merge.h"

#define T(second) "2026-11-29T10:00:0" #second ".000000Z "

struct merge_state {
    struct log_merge *merge;
    struct strbuf out; /* "0a1b": number of the log and text of each line */
};

static void on_line(void *data, const struct log_merge_line *line)
{
    struct merge_state *s = data;

    strbuf_addf(&s->out, "%zu%.*s", line->log, (int)AQ_MIN(line->text_len, (size_t)20), line->text);
}

static int setup(void **state)
{
    struct merge_state *s = calloc(1, sizeof(*s));

    strbuf_init(&s->out);
    s->merge = log_merge_new(on_line, s);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(log_merge_add(s->merge), i);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct merge_state *s = *state;

    log_merge_free(s->merge);
    strbuf_done(&s->out);
    free(s);
    return 0;
}

static void feed(struct merge_state *s, size_t log, const char *text)
{
    log_merge_feed(s->merge, log, text, strlen(text));
}

static void expect(struct merge_state *s, const char *want)
{
    assert_string_equal(s->out.len ? s->out.data : "", want);
    strbuf_clear(&s->out);
}

/* A line is given when the other log has a later one, or has ended. */
static void test_order(void **state)
{
    struct merge_state *s = *state;

    feed(s, 0, T(1) "a\n" T(3) "c\n");
    expect(s, "");
    assert_int_equal(log_merge_held(s->merge, 0), strlen(T(1) "a\n" T(3) "c\n"));
    feed(s, 1, T(2) "b\n");
    expect(s, "0a1b");
    feed(s, 1, T(3) "d\n");
    expect(s, "0c"); /* of one time: in the order of the logs */
    log_merge_end(s->merge, 0);
    expect(s, "1d");
    feed(s, 1, T(0) "earlier\n");
    expect(s, "1earlier");
}

static void test_pieces(void **state)
{
    static const char text[] = T(1) "one two\n" T(2) "\n" T(3) "end";
    struct merge_state *s = *state;

    log_merge_end(s->merge, 1);
    for (size_t i = 0; text[i]; i++)
        log_merge_feed(s->merge, 0, &text[i], 1);
    expect(s, "0one two0");
    log_merge_end(s->merge, 0);
    expect(s, "0end");
}

/* Followed, a log that says nothing holds up the others for one or two ticks. */
static void test_ticks(void **state)
{
    struct merge_state *s = *state;

    feed(s, 0, T(2) "b\n" T(3) "begun");
    log_merge_tick(s->merge);
    expect(s, "");
    feed(s, 1, T(1) "a\n");
    expect(s, "1a");
    log_merge_tick(s->merge);
    expect(s, "0b");
    log_merge_tick(s->merge);
    log_merge_tick(s->merge);
    expect(s, "");
    feed(s, 0, " and ended\n");
    log_merge_tick(s->merge);
    expect(s, "");
    log_merge_tick(s->merge);
    expect(s, "0begun and ended");
}

/* A log without times comes first; a line that never ends comes in pieces, of one time. */
static void test_odd_lines(void **state)
{
    struct merge_state *s = *state;
    char long_text[4096];

    feed(s, 0, "- unknown\n");
    feed(s, 1, T(1) "a\n");
    expect(s, "0unknown");
    memset(long_text, 'x', sizeof(long_text));
    feed(s, 0, T(1));
    for (size_t i = 0; i < 300; i++)
        log_merge_feed(s->merge, 0, long_text, sizeof(long_text));
    expect(s, "0xxxxxxxxxxxxxxxxxxxx");
    feed(s, 0, " rest\n");
    log_merge_end(s->merge, 0);
    expect(s, "0xxxxxxxxxxxxxxxxxxxx1a");
    assert_int_equal(log_merge_held(s->merge, 0), 0);
}

static void test_a_log_that_goes_on(void **state)
{
    struct merge_state *s = *state;

    feed(s, 0, T(1) "a");
    log_merge_end(s->merge, 0);
    expect(s, "");
    log_merge_end(s->merge, 1);
    expect(s, "0a");
    log_merge_go_on(s->merge, 0);
    feed(s, 1, T(3) "c\n");
    expect(s, "");
    feed(s, 0, T(2) "b\n" T(4) "d\n");
    expect(s, "0b1c0d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ticks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_log_that_goes_on, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
