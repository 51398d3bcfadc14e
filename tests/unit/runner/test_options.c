/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "runner/options.h"

static int parse(char *const *words, struct options *ret, struct aq_error *err)
{
    char *argv[24] = { (char *)"aliquot-runner" };
    int argc = 1;

    while (words[argc - 1]) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    return options_parse(argc, argv, ret, err);
}

static void test_all(void **state)
{
    char *words[] = { (char *)"--socket",
                      (char *)"3",
                      (char *)"--report",
                      (char *)"4",
                      (char *)"--uid",
                      (char *)"1000",
                      (char *)"--gid",
                      (char *)"1001",
                      (char *)"--groups",
                      (char *)"5,44",
                      (char *)"--tty",
                      (char *)"30x120",
                      NULL };
    struct options o;

    (void)state;
    assert_int_equal(parse(words, &o, NULL), 0);
    assert_true(o.socket == 3 && o.report == 4 && o.has_uid && o.uid == 1000 && o.gid == 1001);
    assert_true(o.group_count == 2 && o.groups[0] == 5 && o.groups[1] == 44);
    assert_true(o.tty && o.rows == 30 && o.cols == 120 && !o.cwd && !o.has_oom_score);
}

static void test_program(void **state)
{
    static const struct {
        char *words[6];
        const char *program; /* NULL = there is none */
    } rows[] = {
        { { (char *)"true" }, "true" },
        { { (char *)"--", (char *)"--socket", (char *)"3" }, "--socket" },
        { { (char *)"--cwd", (char *)"/tmp", (char *)"ls", (char *)"--all" }, "ls" },
        { { (char *)"--oom-score", (char *)"-5", (char *)"--" }, NULL },
        { { NULL }, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct options o;
        char *argv[8] = { (char *)"aliquot-runner" };
        int argc = 1;

        for (; rows[i].words[argc - 1]; argc++)
            argv[argc] = rows[i].words[argc - 1];
        assert_int_equal(options_parse(argc, argv, &o, NULL), 0);
        if (rows[i].program)
            assert_string_equal(o.argv[0], rows[i].program);
        else
            assert_null(o.argv[0]);
    }
}

static void test_refused(void **state)
{
    static char *const rows[][2] = {
        { (char *)"--socket", (char *)"2" },       { (char *)"--socket", (char *)"x" },
        { (char *)"--uid", (char *)"-1" },         { (char *)"--uid", (char *)"4294967295" },
        { (char *)"--gid", (char *)"1 " },         { (char *)"--tty", (char *)"24" },
        { (char *)"--tty", (char *)"0x80" },       { (char *)"--tty", (char *)"24x99999" },
        { (char *)"--groups", (char *)"1,,2" },    { (char *)"--cwd", (char *)"relative" },
        { (char *)"--oom-score", (char *)"1001" }, { (char *)"--colour", (char *)"red" },
        { (char *)"--check", (char *)"relative" }, { (char *)"--ssh", (char *)"relative" },
        { (char *)"--home", (char *)"/alone" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char *words[] = { rows[i][0], rows[i][1], NULL };
        struct aq_error err = { 0 };
        struct options o;

        assert_row(parse(words, &o, &err) == -EINVAL, "%s %s", words[0], words[1]);
        assert_string_equal(err.field, words[0]);
        words[1] = NULL;
        assert_row(parse(words, &o, &err) == -EINVAL, "%s without a value", words[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
