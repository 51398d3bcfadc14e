/* SPDX-License-Identifier: Apache-2.0 */
/* A log whose stream breaks anywhere is gone on with, without a gap and with nothing twice. */
#include "testing.h"

#include "cli/session/log_position.h"

static const char log_text[] = "2026-01-01T00:00:00.000001Z one\n"
                               "2026-01-01T00:00:00.000002Z two\n"
                               "2026-01-01T00:00:00.000002Z \n"
                               "2026-01-01T00:00:00.000002Z three with blanks\n"
                               "2026-01-01T00:00:00.000003Z four\n";
static const char plain_text[] = "one\ntwo\n\nthree with blanks\nfour\n";

/* What the route sends of lines since then. */
static const char *log_since(const char *since)
{
    const char *line = log_text;

    while (*line && strncmp(line, since, strlen(since)) < 0)
        line = strchr(line, '\n') + 1;
    return line;
}

static void read_broken(size_t first, size_t second, size_t piece, bool has_times, const char *want)
{
    struct log_position p = { .after = 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const size_t parts[] = { first, second, sizeof(log_text) };

    for (size_t i = 0; i < AQ_COUNT(parts); i++) {
        const char *text = log_since(p.since);
        size_t len = AQ_MIN(parts[i], strlen(text));

        for (size_t at = 0; at < len; at += piece)
            log_position_take(&p, text + at, AQ_MIN(piece, len - at), has_times, &out);
        log_position_reopen(&p);
    }
    assert_row(strcmp(out.data, want) == 0, "broken after %zu and %zu: %s", first, second,
               out.data);
}

static void test_breaks(void **state)
{
    (void)state;
    for (size_t first = 0; first < sizeof(log_text); first++) {
        for (size_t second = 0; second < sizeof(log_text); second += 7) {
            read_broken(first, second, 1000, false, plain_text);
            read_broken(first, second, 3, true, log_text);
        }
    }
}

/* A manager that sends no times: nothing of the text is lost. */
static void test_no_times(void **state)
{
    static const char text[] = "a-line-without-any-blank-that-is-longer-than-a-time-could-be\n";
    struct log_position p = { .after = 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    log_position_take(&p, text, strlen(text), false, &out);
    assert_string_equal(out.data, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breaks),
        cmocka_unit_test(test_no_times),
    };

    return cmocka_run_group_tests_name("cli/log-position", tests, NULL, NULL);
}
