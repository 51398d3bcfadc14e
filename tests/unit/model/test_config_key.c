/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the configuration tree: one spelling for each; the tree as JSON and back. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json_load.h"
#include "model/config_key.h"

#define NAMES_8 "a/b/c/d/e/f/g/h"
#define NAMES_32 NAMES_8 "/" NAMES_8 "/" NAMES_8 "/" NAMES_8

static const struct {
    const char *text, *key; /* NULL = refused */
} keys[] = {
    { "", "" },
    { "/", "" },
    { "a", "a" },
    { "/a", "a" },
    { "a/", "a" },
    { "a/b/c", "a/b/c" },
    { "/a/b/", "a/b" },
    { "//", NULL },
    { "//a", NULL },
    { "a//b", NULL },
    { "a//", NULL },
    { "x%2Fy", "x%2Fy" },
    { "x%2fy", "x%2Fy" },
    { "a.example:5000", "a.example%3A5000" },
    { "a.example%3A5000", "a.example%3A5000" },
    { "%61", "a" },
    { "-._~aZ09", "-._~aZ09" },
    { "%", "%25" },
    { "%2", "%252" },
    { "%zz", "%25zz" },
    { "%25", "%25" },
    { "%252F", "%252F" },
    { "a+b c", "a%2Bb%20c" },
    { "..", ".." },
    { "a\nb", "a%0Ab" },
    { "\xea\xb0\x80", "%EA%B0%80" },
    { "%EA%B0%80", "%EA%B0%80" },
    { "\xff", NULL },
    { "%ff", NULL },
    { "%C0%80", NULL },
    { "a%00b", NULL },
    { NAMES_32, NAMES_32 },
    { NAMES_32 "/i", NULL },
};

static void test_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(keys); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, again = STRBUF_INIT;
        struct aq_error err = { 0 };
        int r = config_key_add(&out, "field", keys[i].text, &err);

        assert_row(r == (keys[i].key ? 0 : -EINVAL), "'%s': %d %s", keys[i].text, r, err.text);
        if (r < 0) {
            assert_row(strcmp(err.field, "field") == 0 && err.text[0], "'%s'", keys[i].text);
            continue;
        }
        assert_row(strcmp(out.data, keys[i].key) == 0, "'%s': %s", keys[i].text, out.data);
        assert_int_equal(config_key_add(&again, "field", out.data, &err), 0);
        assert_string_equal(again.data, out.data);
    }
}

static void test_lengths(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char text[CONFIG_KEY_MAX + 2];
    struct aq_error err = { 0 };

    (void)state;
    memset(text, 'a', sizeof(text));
    text[CONFIG_KEY_MAX + 1] = '\0';
    assert_int_equal(config_key_add(&out, "key", text, &err), -EINVAL);
    strbuf_clear(&out);
    assert_int_equal(config_key_add(&out, "key", text + 1, &err), 0);
    assert_int_equal(out.len, CONFIG_KEY_MAX);
    assert_int_equal(config_key_add(&out, "key", "b", &err), -EINVAL); /* what is there counts */
    strbuf_clear(&out);
    strbuf_adds(&out, NAMES_32);
    assert_int_equal(config_key_add(&out, "key", "b", &err), -EINVAL);
}

static void test_within(void **state)
{
    static const struct {
        const char *key, *above;
        bool is;
    } rows[] = {
        { "a", "", true },
        { "", "", true },
        { "", "a", false },
        { "a", "a", true },
        { "a/b", "a", true },
        { "ab", "a", false },
        { "config/redis2", "config/redis", false },
        { "a", "a/b", false },
        { "config/redis/addr", "config/redis", true },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        assert_row(config_key_is_within(rows[i].key, rows[i].above) == rows[i].is, "%s in %s",
                   rows[i].key, rows[i].above);
}

/* ---- trees ---- */

static int note_leaf(void *data, const char *key, const char *value, struct aq_error *err)
{
    (void)err;
    strbuf_addf(data, "%s=%s ", key, value);
    return 0;
}

static const struct {
    const char *above, *tree;
    bool names_are_keys;
    const char *leaves; /* NULL = refused */
    const char *names;  /* what the refusal names */
} trees[] = {
    { "", "{}", false, "", NULL },
    { "", "{\"a\":{\"b\":{\"\":\"1\",\"c\":\"2\"}},\"x/y\":\"3\"}", false, "a/b=1 a/b/c=2 x%2Fy=3 ",
      NULL },
    { "p/q", "{\"\":\"1\",\"b\":\"2\"}", false, "p/q=1 p/q/b=2 ", NULL },
    { "", "{\"\":\"1\"}", false, "=1 ", NULL },
    { "", "{\"a/b\":\"1\",\"c%2Fd\":\"2\"}", true, "a/b=1 c%2Fd=2 ", NULL },
    { "", "{\"a/b\":\"1\",\"c%2Fd\":\"2\"}", false, "a%2Fb=1 c%252Fd=2 ", NULL },
    { "", "{\"a\":true,\"b\":3,\"c\":1.5,\"d\":null,\"e\":\"\"}", false,
      "a=true b=3 c=1.5 e= ", NULL },
    { "", "{\"a\":{\"\":{\"\":\"1\"}}}", false, "a=1 ", NULL },
    { "", "{\"a\":{\"b\":[1]}}", false, NULL, "a/b" },
    { "", "{\"a//b\":\"1\"}", true, NULL, "key" },
    { NAMES_32, "{\"a\":\"1\"}", false, NULL, "key" },
};

static void test_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(trees); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        json_t *tree = json_load_string(trees[i].tree, 0);
        struct aq_error err = { 0 };
        int r = config_tree_walk(tree, trees[i].above, trees[i].names_are_keys, note_leaf, &out,
                                 &err);

        assert_row(r == (trees[i].leaves ? 0 : -EINVAL), "%s: %s", trees[i].tree, err.text);
        if (r == 0)
            assert_row(strcmp(out.data, trees[i].leaves) == 0, "%s: %s", trees[i].tree, out.data);
        else
            assert_row(strcmp(err.field, trees[i].names) == 0, "%s: %s", trees[i].tree, err.field);
        json_decref(tree);
    }
}

/* Members "" nest without making a key longer; that ends somewhere. */
static void test_depth(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *tree = json_pack("{s:s}", "", "1");
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        tree = json_pack("{s:o}", "", tree);
    assert_int_equal(config_tree_walk(tree, "", false, note_leaf, &out, &err), -EINVAL);
    json_decref(tree);
}

/* In whatever order the keys come. */
static void test_nesting(void **state)
{
    static const char *const orders[][3] = {
        { "a/b", "a/b/c", "x%2Fy" },
        { "a/b/c", "a/b", "x%2Fy" },
        { "x%2Fy", "a/b/c", "a/b" },
    };
    json_t *wanted = json_load_string(
        "{\"a\":{\"b\":{\"\":\"a/b\",\"c\":\"a/b/c\"}},\"x/y\":\"x%2Fy\"}", 0);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(orders); i++) {
        json_t *tree = json_object();

        for (size_t j = 0; j < 3; j++)
            config_tree_add(tree, orders[i][j], orders[i][j]);
        assert_row(json_equal(tree, wanted), "order %zu", i);
        config_tree_add(tree, "x%2Fy", "again");
        assert_string_equal(json_string_value(json_object_get(tree, "x/y")), "again");
        config_tree_add(tree, "", "own");
        assert_string_equal(json_string_value(json_object_get(tree, "")), "own");
        json_decref(tree);
    }
    json_decref(wanted);
}

static void test_long_value(void **state)
{
    AQ_CLEANUP(aq_freep) char *text = malloc(CONFIG_VALUE_MAX + 2), *value = NULL;
    struct aq_error err = { 0 };
    json_t *json;

    (void)state;
    assert_non_null(text);
    memset(text, 'v', CONFIG_VALUE_MAX + 1);
    text[CONFIG_VALUE_MAX + 1] = '\0';
    json = json_string(text);
    assert_int_equal(config_value_read(json, "a/b", &value, &err), -EINVAL);
    assert_string_equal(err.field, "a/b");
    json_decref(json);
    json = json_string(text + 1);
    assert_int_equal(config_value_read(json, "a/b", &value, &err), 0);
    assert_string_equal(value, text + 1);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_within),     cmocka_unit_test(test_trees),
        cmocka_unit_test(test_depth),      cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_long_value),
    };

    return cmocka_run_group_tests_name("model/config_key", tests, NULL, NULL);
}
