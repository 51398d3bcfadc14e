/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs, run to their end. */
#include "unit/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/program.h"

static char sh[] = "/bin/sh", c[] = "-c";

static int run(const char *script, const char *log_path, int msec, struct strbuf *out,
               struct aq_error *err)
{
    char *const argv[] = { sh, c, (char *)(uintptr_t)script, NULL };

    return program_run(argv, log_path, msec, out, err);
}

static void test_output(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    assert_int_equal(run("cat; echo said; echo complained >&2", NULL, 10000, &out, NULL), 0);
    assert_string_equal(out.data, "said\ncomplained\n");
}

static void test_failure_has_the_last_line(void **state)
{
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(run("echo first; echo no such thing >&2; exit 3", NULL, 10000, NULL, &err),
                     -ECHILD);
    assert_string_equal(err.text, "sh: no such thing");
    assert_int_equal(run("kill -9 $$", NULL, 10000, NULL, &err), -ECHILD);
    assert_string_equal(err.text, "sh: it failed without a word");
}

static void test_log(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, log = STRBUF_INIT;
    struct aq_error err = { 0 };
    char path[] = "/tmp/program-XXXXXX";

    (void)state;
    (void)close(mkstemp(path));
    assert_int_equal(run("echo said; echo complained >&2; exit 1", path, 10000, &out, &err),
                     -ECHILD);
    assert_string_equal(out.data, "said\n");
    assert_int_equal(fs_read(AT_FDCWD, path, 100, &log, NULL), 0);
    assert_string_equal(log.data, "complained\n");
    assert_non_null(strstr(err.text, path));
    (void)unlink(path);
}

static void test_time_limit(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(run("echo begun; exec sleep 600", NULL, 300, &out, &err), -ETIMEDOUT);
    assert_string_equal(err.text, "sh: it did not end in time");
}

static void test_no_program(void **state)
{
    char nowhere[] = "/nowhere/program", *const argv[] = { nowhere, NULL };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(program_run(argv, NULL, 10000, NULL, &err), -ENOENT);
    assert_non_null(strstr(err.text, nowhere));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output),     cmocka_unit_test(test_failure_has_the_last_line),
        cmocka_unit_test(test_log),        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_no_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
