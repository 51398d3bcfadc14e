/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "cli/opt.h"

struct target {
    bool flag, other;
    const char *text;
    struct cli_int number, duration;
    struct cli_list list;
    int choice;
};

static const struct cli_opt opts[] = {
    { 'f', "flag", CLI_FLAG, offsetof(struct target, flag), NULL, "a flag" },
    { 'x', "other", CLI_FLAG, offsetof(struct target, other), NULL, "another" },
    { 't', "text", CLI_STR, offsetof(struct target, text), "TEXT", "a text" },
    { 'n', "number", CLI_INT, offsetof(struct target, number), "N", "a number" },
    { 0, "after", CLI_DURATION, offsetof(struct target, duration), "TIME", "a duration" },
    { 'r', "resource", CLI_LIST, offsetof(struct target, list), "X", "a list" },
    { 'o', "output", CLI_CHOICE, offsetof(struct target, choice), "table|json", "a choice" },
    CLI_OPT_END,
};

#define WORDS_MAX 8

static int parse(struct target *t, bool stop, const char *const words[WORDS_MAX],
                 char *argv[WORDS_MAX], int *count, struct aq_error *err)
{
    struct cli_opt_set set = { opts, t };
    int argc = 0;

    for (; argc < WORDS_MAX && words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    return cli_opts_parse(&set, 1, stop, argc, argv, count, err);
}

static void test_accepted(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        bool stop;
        bool flag, other;
        const char *text;
        int64_t number, duration;
        size_t list;
        int choice;
        const char *rest[WORDS_MAX];
    } rows[] = {
        { { "-f", "a", "-x", "b" }, .flag = true, .other = true, .rest = { "a", "b" } },
        { { "-fx" }, .flag = true, .other = true },
        { { "-tvalue" }, .text = "value" },
        { { "-ft", "value" }, .flag = true, .text = "value" },
        { { "--text=a=b" }, .text = "a=b" },
        { { "--text", "--flag" }, .text = "--flag" },
        { { "--text=" }, .text = "" },
        { { "-n", "0" }, .number = 0 },
        { { "--number=12" }, .number = 12 },
        { { "--after", "1.5h" }, .duration = INT64_C(5400) * 1000000 },
        { { "-r", "a", "--resource=b", "-rc" }, .list = 3 },
        { { "-o", "json" }, .choice = 2 },
        { { "a", "--", "-f", "--" }, .rest = { "a", "-f", "--" } },
        { { "-", "-f" }, .flag = true, .rest = { "-" } },
        { { "-f", "cmd", "-x", "--" }, .stop = true, .flag = true, .rest = { "cmd", "-x", "--" } },
        { { "-f", "--", "-x" }, .stop = true, .flag = true, .rest = { "-x" } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct target t = { .flag = false };
        struct aq_error err = { 0 };
        char *argv[WORDS_MAX];
        int count = -1, want = 0;

        assert_row(parse(&t, rows[i].stop, rows[i].words, argv, &count, &err) == 0, "%zu: %s", i,
                   err.text);
        assert_row(t.flag == rows[i].flag && t.other == rows[i].other, "%zu", i);
        assert_row(!t.text == !rows[i].text && (!t.text || strcmp(t.text, rows[i].text) == 0),
                   "%zu", i);
        assert_row(t.number.value == rows[i].number, "%zu", i);
        assert_row(t.duration.value == rows[i].duration, "%zu", i);
        assert_row(t.list.count == rows[i].list && t.choice == rows[i].choice, "%zu", i);
        while (want < WORDS_MAX && rows[i].rest[want]) {
            assert_row(want < count && strcmp(argv[want], rows[i].rest[want]) == 0, "%zu", i);
            want++;
        }
        assert_row(count == want, "%zu: %d left", i, count);
        cli_opts_done(opts, &t);
        assert_null(t.list.items);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *says;
    } rows[] = {
        { { "--flga" }, "did you mean '--flag'" },
        { { "--zzzzzz" }, "unknown option '--zzzzzz'" },
        { { "-z" }, "unknown option '-z'" },
        { { "--flag=1" }, "takes no value" },
        { { "--text" }, "needs a value: --text TEXT" },
        { { "-ft" }, "needs a value" },
        { { "-n", "-1" }, "whole number" },
        { { "-n", "1x" }, "whole number" },
        { { "-n", "99999999999999999999" }, "whole number" },
        { { "--number=" }, "whole number" },
        { { "--after", "soon" }, "duration" },
        { { "-o", "xml" }, "table|json" },
        { { "-o", "tabl" }, "table|json" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct target t = { .flag = false };
        struct aq_error err = { 0 };
        char *argv[WORDS_MAX];
        int count;

        assert_row(parse(&t, false, rows[i].words, argv, &count, &err) == -EINVAL, "%zu", i);
        assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
        assert_row(err.kind && strcmp(err.kind, CLI_KIND_USAGE) == 0, "%zu", i);
        cli_opts_done(opts, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
