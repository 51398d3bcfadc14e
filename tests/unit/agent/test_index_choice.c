/* SPDX-License-Identifier: Apache-2.0 */
/* Which image of an index is taken, for which processor and by which name. */
#include "testing.h"

#include <errno.h>

#include "agent/image/index_choice.h"
#include "agent/image/platform.h"

#define V2 "cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2"
#define V3 V2 " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
#define V4 V3 " avx512f avx512bw avx512cd avx512dq avx512vl"

static void test_levels(void **state)
{
    (void)state;
    assert_int_equal(platform_amd64_level("flags\t\t: fpu sse sse2"), 1);
    assert_int_equal(platform_amd64_level("flags\t\t: fpu " V2 "\n"), 2);
    assert_int_equal(platform_amd64_level("flags\t\t: " V3), 3);
    assert_int_equal(platform_amd64_level("flags\t\t: " V4 " amx"), 4);
    assert_int_equal(platform_amd64_level("flags\t\t: " V2 " avx avx512f"), 2);
    assert_in_range(platform_level(), 1, PLATFORM_LEVEL_MAX);
}

static void test_scores(void **state)
{
    (void)state;
    assert_true(platform_score("amd64", "v3", 3) > platform_score("amd64", "v2", 3));
    assert_true(platform_score("amd64", "v2", 3) > platform_score("amd64", "", 3));
    assert_int_equal(platform_score("amd64", "v4", 3), -1);
    assert_int_equal(platform_score("amd64", "v1", 1), platform_score("amd64", "", 1));
    assert_true(platform_score("arm64", "v8", 1) > 0);
}

/* ---- choices ---- */

struct row {
    const char *os, *architecture, *variant, *name;
    bool is_index, is_artifact;
};

/* An index whose digests end in the letters of 'letters'. */
static struct manifest make(const char *letters, const struct row *rows)
{
    struct manifest manifest = { .is_index = true, .item_count = strlen(letters) };

    manifest.items = calloc(manifest.item_count, sizeof(*manifest.items));
    for (size_t i = 0; i < manifest.item_count; i++) {
        struct manifest_item *item = &manifest.items[i];

        (void)snprintf(item->digest, sizeof(item->digest), "sha256:%063d%c", 0, letters[i]);
        (void)snprintf(item->os, sizeof(item->os), "%s", rows[i].os ? rows[i].os : "");
        (void)snprintf(item->architecture, sizeof(item->architecture), "%s",
                       rows[i].architecture ? rows[i].architecture : "");
        (void)snprintf(item->variant, sizeof(item->variant), "%s",
                       rows[i].variant ? rows[i].variant : "");
        item->has_platform = rows[i].os != NULL;
        item->name = rows[i].name ? strdup(rows[i].name) : NULL;
        item->is_index = rows[i].is_index;
        item->is_artifact = rows[i].is_artifact;
    }
    return manifest;
}

static void add(struct index_choice *choice, const char *letters, const struct row *rows)
{
    struct manifest manifest = make(letters, rows);

    assert_int_equal(index_choice_add(choice, &manifest, NULL), 0);
    manifest_done(&manifest);
}

/* The letter of what is asked for next; 0 = nothing, and the error has the words. */
static char next(struct index_choice *choice, const char *words)
{
    struct aq_error err = { 0 };
    char digest[DIGEST_TEXT_MAX];

    if (index_choice_next(choice, digest, &err) == 0)
        return digest[70];
    if (words && !strstr(err.text, words))
        fail_msg("'%s' is not in '%s'", words, err.text);
    return 0;
}

static void test_best_variant(void **state)
{
    static const struct row rows[] = { { "linux", "arm64" },         { "linux", "amd64", "v4" },
                                       { "linux", "amd64" },         { "linux", "amd64", "v3" },
                                       { "windows", "amd64", "v3" }, { "linux", "amd64", "v2" } };
    static const char *const expected[] = { NULL, "c", "fc", "dfc", "bdfc" };
    struct index_choice choice;

    (void)state;
    for (int level = 1; level <= 4; level++) {
        index_choice_init(&choice, "amd64", NULL, level);
        add(&choice, "abcdef", rows);
        for (const char *at = expected[level]; *at; at++)
            assert_int_equal(next(&choice, NULL), *at);
        assert_int_equal(next(&choice, "linux/arm64"), 0);
        index_choice_done(&choice);
    }
}

static void test_only_for_better_processors(void **state)
{
    static const struct row rows[] = { { "linux", "amd64", "v4" } };
    struct index_choice choice;

    (void)state;
    index_choice_init(&choice, "amd64", NULL, 3);
    add(&choice, "a", rows);
    assert_int_equal(next(&choice, "up to v3, and the image is there only for linux/amd64/v4"), 0);
    index_choice_done(&choice);
}

/* Nested ones of the platform or of none are read first, then what they have is compared. */
static void test_nested(void **state)
{
    static const struct row top[] = { { NULL, .is_index = true },
                                      { "linux", "arm64", .is_index = true },
                                      { "unknown", "unknown", .is_artifact = true },
                                      { NULL } };
    static const struct row below[] = { { "linux", "arm64" }, { "linux", "amd64", "v2" } };
    struct index_choice choice;

    (void)state;
    index_choice_init(&choice, "amd64", NULL, 2);
    add(&choice, "abcd", top);
    assert_int_equal(next(&choice, NULL), 'a');
    add(&choice, "ef", below);
    assert_int_equal(next(&choice, NULL), 'f');
    assert_true(index_choice_has_more(&choice));
    assert_int_equal(next(&choice, NULL), 'd');
    assert_false(index_choice_has_more(&choice));
    index_choice_done(&choice);
}

static void test_bounds(void **state)
{
    static const struct row rows[] = { { NULL, .is_index = true }, { NULL, .is_index = true } };
    struct manifest manifest = make("ab", rows);
    struct aq_error err = { 0 };
    struct index_choice choice;
    int r, count = 0;

    (void)state;
    index_choice_init(&choice, "amd64", NULL, 2);
    while ((r = index_choice_add(&choice, &manifest, &err)) == 0) {
        assert_true(next(&choice, NULL) != 0);
        assert_true(++count < 100);
    }
    assert_int_equal(r, -EBADMSG);
    assert_non_null(strstr(err.text, "nested"));
    index_choice_done(&choice);
    manifest_done(&manifest);
}

static void test_names(void **state)
{
    static const struct row top[] = { { NULL, .name = "one" },
                                      { NULL, .name = "two", .is_index = true },
                                      { NULL, .is_index = true } };
    static const struct row below[] = { { "linux", "amd64", .name = "three" },
                                        { "linux", "amd64" } };
    struct manifest manifest = make("abc", top);
    struct index_choice choice;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(index_choice_check_names(&manifest, &err), -EINVAL);
    assert_non_null(strstr(err.text, "one, two"));
    manifest_done(&manifest);

    index_choice_init(&choice, "amd64", "two", 1); /* all that it has is meant */
    add(&choice, "abc", top);
    assert_int_equal(next(&choice, NULL), 'b');
    add(&choice, "de", below);
    assert_int_equal(next(&choice, NULL), 'd');
    assert_int_equal(next(&choice, NULL), 'e');
    assert_int_equal(next(&choice, NULL), 0);
    index_choice_done(&choice);

    index_choice_init(&choice, "amd64", "three", 1); /* somewhere in the indexes */
    add(&choice, "abc", top);
    assert_int_equal(next(&choice, NULL), 'b');
    add(&choice, "de", below);
    assert_int_equal(next(&choice, NULL), 'd');
    assert_int_equal(next(&choice, NULL), 0);
    index_choice_done(&choice);

    index_choice_init(&choice, "amd64", "four", 1);
    add(&choice, "a", top);
    assert_int_equal(next(&choice, "it has: one"), 0);
    index_choice_done(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),       cmocka_unit_test(test_scores),
        cmocka_unit_test(test_best_variant), cmocka_unit_test(test_only_for_better_processors),
        cmocka_unit_test(test_nested),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("agent/index_choice", tests, NULL, NULL);
}
