/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies whose prompts begin alike have one key. */
#include "testing.h"

#include "base/strbuf.h"
#include "serving/prompt_scan.h"

static enum prompt_found scan(const char *text, uint64_t *key)
{
    return prompt_scan(text, strlen(text), true, key);
}

static void test_what_counts(void **state)
{
    static const char *const alike[] = {
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},"
        "{\"role\":\"user\",\"content\":\"hello\"}]}",
        "{\"messages\":[{\"content\":\"be brief\",\"role\":\"system\"},"
        " {\"content\":\"hello\",\"role\":\"user\"}, {\"role\":\"assistant\",\"content\":\"hi\"},"
        " {\"role\":\"user\",\"content\":\"and now?\"}],\"temperature\":0}",
        "{\"messages\":[{\"role\":\"developer\",\"content\":\"be brief\"},"
        "{\"role\":\"assistant\",\"content\":\"x\"},{\"role\":\"user\",\"content\":\"hello\"}]}",
        "{\"system\":\"be brief\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}",
    };
    static const char *const others[] = {
        "{\"messages\":[{\"role\":\"system\",\"content\":\"be long\"},"
        "{\"role\":\"user\",\"content\":\"hello\"}]}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},"
        "{\"role\":\"user\",\"content\":\"hello!\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}]}",
        "{\"prompt\":[\"a\",\"b\"]}",
    };
    uint64_t key = 0, keys[AQ_COUNT(others) + 1];

    (void)state;
    assert_int_equal(scan(alike[0], &keys[0]), PROMPT_KEY);
    for (size_t i = 1; i < AQ_COUNT(alike); i++) {
        assert_int_equal(scan(alike[i], &key), PROMPT_KEY);
        assert_row(key == keys[0], "%s", alike[i]);
    }
    for (size_t i = 0; i < AQ_COUNT(others); i++) {
        assert_int_equal(scan(others[i], &keys[i + 1]), PROMPT_KEY);
        for (size_t k = 0; k <= i; k++)
            assert_row(keys[k] != keys[i + 1], "%s", others[i]);
    }
}

static void test_bodies_without_a_prompt(void **state)
{
    static const char *const cases[] = {
        "",
        "{}",
        "[]",
        "null",
        "\x89PNG",
        "  [{\"role\":\"user\"}]",
        "{\"messages\":{}}",
        "{\"messages\":[]}",
        "{\"messages\":[1,\"user\",null]}",
        "{\"inputs\":[1,2,3]}",
        "{\"a\"",
    };
    uint64_t key = 0;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        assert_row(scan(cases[i], &key) == PROMPT_NONE, "%s", cases[i]);
    assert_int_equal(prompt_scan("\x89PNG", 4, false, &key), PROMPT_NONE);
}

/* The key comes with the end of the first message of a user, and not before. */
static void test_a_body_in_pieces(void **state)
{
    static const char text[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"},"
                               "{\"role\":\"assistant\"}]}";
    size_t end = (size_t)(strstr(text, "},{") + 1 - text);
    uint64_t key = 0, whole = 0;

    (void)state;
    assert_int_equal(scan(text, &whole), PROMPT_KEY);
    for (size_t len = 0; len < sizeof(text); len++) {
        enum prompt_found found = prompt_scan(text, len, false, &key);

        assert_row(found == (len < end ? PROMPT_MORE : PROMPT_KEY), "%zu bytes", len);
        assert_true(found == PROMPT_MORE || key == whole);
    }
}

/* Whatever is found before the end is what is found in the whole, also of text that is not JSON. */
static void test_cuts_do_not_change_the_key(void **state)
{
    static const char *const cases[] = {
        "{\"input\":12345,\"model\":\"m\"}",
        "{\"input\":12345",
        "{\"input\":tails\":12}",
        "{\"input\":true,\"input\":false}",
        "{\"system\":12,\"input\":[1,2]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":123}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":123]}",
        "{\"messages\":[{\"role\":\"user\"{\"content\":\"a\"}}]}",
        "{\"prompt\":\"a\"",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        uint64_t key = 0, whole = 0;
        enum prompt_found found = scan(cases[i], &whole);

        for (size_t len = 0; len < strlen(cases[i]); len++) {
            enum prompt_found now = prompt_scan(cases[i], len, false, &key);

            assert_row(now == PROMPT_MORE || (now == found && key == whole), "%zu bytes of %s", len,
                       cases[i]);
        }
    }
}

static void test_a_long_prompt_counts_as_far_as_it_is_read(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf one = STRBUF_INIT, other = STRBUF_INIT;
    uint64_t key = 0, same = 0;

    (void)state;
    strbuf_adds(&one, "{\"messages\":[{\"role\":\"user\",\"content\":\"");
    while (one.len < PROMPT_SCAN_MAX)
        strbuf_adds(&one, "word ");
    strbuf_add(&other, one.data, one.len);
    strbuf_adds(&one, "a\"}]}");
    strbuf_adds(&other, "b\"}]}");
    assert_int_equal(prompt_scan(one.data, one.len, false, &key), PROMPT_KEY);
    assert_int_equal(prompt_scan(other.data, other.len, false, &same), PROMPT_KEY);
    assert_true(key == same);
    other.data[60] = 'X';
    assert_int_equal(prompt_scan(other.data, other.len, false, &same), PROMPT_KEY);
    assert_true(key != same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_counts),
        cmocka_unit_test(test_bodies_without_a_prompt),
        cmocka_unit_test(test_a_body_in_pieces),
        cmocka_unit_test(test_cuts_do_not_change_the_key),
        cmocka_unit_test(test_a_long_prompt_counts_as_far_as_it_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
