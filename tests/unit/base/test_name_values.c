/* SPDX-License-Identifier: Apache-2.0 */
/* Files of values by name: what is read, and which line and rule a refusal names. */
#include <errno.h>
#include <string.h>

#include "base/name_values.h"
#include "testing.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
