/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a log, as messages show them. */
#include "testing.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/kernel/last_lines.h"
#include "base/fs.h"

static void texts(void **state)
{
    static const struct {
        const char *log, *lines;
    } rows[] = {
        { "", "" },
        { "\n\n \r\n", "" },
        { "one\n", "one" },
        { "one", "one" },
        { "one\n\ntwo\n\n\n", "one\n\ntwo" },
        { "a terminal's\r\nlines\r\n", "a terminal's\nlines" },
        { "a\tb", "a\tb" },
        { "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "3\n4\n5\n6\n7\n8\n9\n10\n11\n12" },
        { "start\n 10%\r 50%\r100%\r\nend", "start\n100%\nend" },
        { " 10%\r 50%\r", " 50%" },
        { "\033[1;31mred\033[0m \033]0;title\007x\033]8;;http://a\033\\y\033(B\033", "red xy" },
        { "bell\a, \001\002, del\177, c1\xc2\x9b.", "bell, , del, c1." },
        { "caf\xc3\xa9 \xff\xfe \xe2\x82", "caf\xc3\xa9 ?? ??" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        last_lines_write(rows[i].log, strlen(rows[i].log), &out);
        assert_row(strcmp(out.data ? out.data : "", rows[i].lines) == 0, "%zu: '%s'", i, out.data);
    }
}

static void long_lines_are_cut_at_their_beginning(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf log = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    for (int i = 0; i < 2000; i++)
        strbuf_adds(&log, "\xe2\x82\xac");
    strbuf_adds(&log, "the end");
    last_lines_write(log.data, log.len, &out);
    assert_true(out.len <= LAST_LINES_BYTES_MAX && out.len > LAST_LINES_BYTES_MAX - 3);
    assert_memory_equal(out.data, "\xe2\x82\xac", 3);
    assert_string_equal(out.data + out.len - 7, "the end");
}

static void both_halves_of_a_log_are_read(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char folder[] = "/tmp/aliquot-last-lines-XXXXXX";
    int directory;

    (void)state;
    assert_non_null(mkdtemp(folder));
    last_lines_read_log(folder, 100, &out);
    assert_int_equal(out.len, 0); /* there is none */
    directory = open(folder, O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fs_write_atomic(directory, "log.1", "older\n", 6, 0600, NULL), 0);
    assert_int_equal(fs_write_atomic(directory, "log", "newer\n", 6, 0600, NULL), 0);
    last_lines_read_log(folder, 9, &out);
    assert_string_equal(out.data, "er\nnewer\n");
    (void)close(directory);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(long_lines_are_cut_at_their_beginning),
        cmocka_unit_test(both_halves_of_a_log_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
