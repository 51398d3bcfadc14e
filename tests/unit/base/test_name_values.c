/* SPDX-License-Identifier: Apache-2.0 */
/* Files of values by name: what is read, and which line and rule a refusal names. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/values_file.h"

static const struct {
    const char *text, *json, *error; /* one of both */
} cases[] = {
    { "", "{}", NULL },
    { "\n\n", "{}", NULL },
    { "a=1\nb=two words\n", "{\"a\":\"1\",\"b\":\"two words\"}", NULL },
    { "a=1", "{\"a\":\"1\"}", NULL },
    { "empty=\n", "{\"empty\":\"\"}", NULL },
    { "a= b =c<<d \n", "{\"a\":\" b =c<<d \"}", NULL },
    { "a=1\nb=2\na=3\n", "{\"a\":\"3\",\"b\":\"2\"}", NULL },
    { "a<<END\none\n\nEND two\nEND\nb=1\n", "{\"a\":\"one\\n\\nEND two\",\"b\":\"1\"}", NULL },
    { "a<<END\nEND", "{\"a\":\"\"}", NULL },
    { "a<<END\n\nEND\n", "{\"a\":\"\"}", NULL },
    { "a<<X Y\nb=1\nX Y\n", "{\"a\":\"b=1\"}", NULL },
    { "_a-1=\tü\n", "{\"_a-1\":\"\\tü\"}", NULL },
    { "a=1\nwords\n", NULL, "line 2: expected NAME=VALUE or NAME<<MARKER, not 'words'" },
    { "a<1\n", NULL, "line 1: expected NAME=VALUE or NAME<<MARKER, not 'a<1'" },
    { "\na.b=1\n", NULL, "line 2: name 'a.b' must have" },
    { "=1\n", NULL, "line 1: name '' must have" },
    { "1a=1\n", NULL, "line 1: name '1a' must have" },
    { "a b=1\n", NULL, "line 1: name 'a b' must have" },
    { "a<<\n", NULL, "line 1: 'a<<' is not followed by a marker" },
    { "x=1\na<<END\nb=1\n", NULL, "line 2: no later line is the marker 'END' of 'a'" },
    { "x=1\r\n", NULL, "line 1: byte 4 is the control character 0x0d" },
    { "a<<E\nx\033[2J\nE\n", NULL, "line 2: byte 2 is the control character 0x1b" },
    { "a=\xc3\x28\n", NULL, "line 1: the text is not valid UTF-8" },
    { "a=\xed\xa0\x80\n", NULL, "line 1: the text is not valid UTF-8" },
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct aq_error err = { 0 };
        int r = name_values_read(cases[i].text, strlen(cases[i].text), &out, &err);

        assert_int_equal(r, cases[i].json ? 0 : -EINVAL);
        if (cases[i].json)
            assert_string_equal(out.data, cases[i].json);
        else
            assert_non_null(strstr(err.text, cases[i].error));
        assert_true(cases[i].json || out.len == 0);
    }
}

static void test_nul(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(name_values_read("a=1\nb=\0x\n", 9, &out, &err), -EINVAL);
    assert_string_equal(err.text, "line 2: byte 3 is NUL; values are text");
}

static void test_limits(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 0; i < NAME_VALUES_MAX; i++)
        strbuf_addf(&text, "n%d=\n", i);
    assert_int_equal(name_values_read(text.data, text.len, &out, &err), 0);
    strbuf_adds(&text, "n0=again\nmore=1\n");
    assert_int_equal(name_values_read(text.data, text.len, &out, &err), -EINVAL);
    assert_string_equal(err.text, "line 66: 'more' is value 65; at most 64 are allowed");

    strbuf_clear(&text);
    strbuf_adds(&text, "a=");
    while (text.len < NAME_VALUES_BYTES_MAX)
        strbuf_addc(&text, '"');
    strbuf_clear(&out);
    assert_int_equal(name_values_read(text.data, text.len, &out, &err), 0);
    assert_true(out.len <= NAME_VALUES_JSON_MAX);
    strbuf_addc(&text, '"');
    assert_int_equal(name_values_read(text.data, text.len, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "more than 65536 bytes"));

    strbuf_clear(&text);
    for (int i = 0; i <= NAME_VALUES_NAME_MAX; i++)
        strbuf_addc(&text, 'n');
    assert_true(name_values_is_name(text.data, NAME_VALUES_NAME_MAX));
    assert_false(name_values_is_name(text.data, text.len));
}

/* ---- the file ---- */

struct place {
    char folder[64], path[80];
};

static int place_setup(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    (void)snprintf(place->folder, sizeof(place->folder), "/tmp/aliquot-values-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof(place->path), "%s/values", place->folder);
    *state = place;
    return 0;
}

static int place_teardown(void **state)
{
    struct place *place = *state;

    (void)unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0);
    free(place);
    return 0;
}

static char bytes[VALUES_FILE_READ_MAX];

static void test_what_is_in_place_is_replaced(void **state)
{
    const struct place *place = *state;
    struct stat st;
    int fd;

    assert_int_equal(symlink("/etc/passwd", place->path), 0);
    fd = values_file_create(place->path, (uid_t)-1, (gid_t)-1, NULL);
    assert_true(fd >= 0);
    assert_int_equal(lstat(place->path, &st), 0);
    assert_true(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
    assert_int_equal(write(fd, "a=1\n", 4), 4);
    assert_int_equal(values_file_read(fd, place->path, bytes), 4);
    assert_memory_equal(bytes, "a=1\n", 4);
    (void)close(fd);
}

static void test_no_other_file_is_read(void **state)
{
    const struct place *place = *state;
    int fd = values_file_create(place->path, (uid_t)-1, (gid_t)-1, NULL);

    assert_true(fd >= 0);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(values_file_read(fd, place->path, bytes), -ESTALE);
    assert_int_equal(symlink("/dev/zero", place->path), 0);
    assert_int_equal(values_file_read(fd, place->path, bytes), -ESTALE);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(values_file_read(fd, place->path, bytes), -ESTALE);
    (void)close(fd);
}

static void test_so_much_of_a_large_file_is_read(void **state)
{
    const struct place *place = *state;
    int fd = values_file_create(place->path, (uid_t)-1, (gid_t)-1, NULL);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    assert_int_equal(values_file_read(fd, place->path, bytes), VALUES_FILE_READ_MAX);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup_teardown(test_what_is_in_place_is_replaced, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_no_other_file_is_read, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(test_so_much_of_a_large_file_is_read, place_setup,
                                        place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
