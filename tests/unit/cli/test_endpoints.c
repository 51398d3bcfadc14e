/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of managers: what is one, and which is asked next. */
#include "testing.h"

#include <errno.h>

#include "cli/endpoints.h"
#include "cli/opt.h"

static void test_lists(void **state)
{
    static const struct {
        const char *text;
        const char *urls[3]; /* NULL = refused */
        const char *says;
    } rows[] = {
        { "http://a:1", { "http://a:1" }, NULL },
        { "http://a:1/,https://b", { "http://a:1", "https://b" }, NULL },
        { " http://a:1 , http://[::1]:2,, ", { "http://a:1", "http://[::1]:2" }, NULL },
        { "", { NULL }, "is empty" },
        { " , ", { NULL }, "is empty" },
        { "http://a:1,b:2", { NULL }, "endpoint 'b:2'" },
        { "http://a:x", { NULL }, "endpoint 'http://a:x'" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct endpoints list;
        struct aq_error err = { 0 };
        int r = endpoints_read(rows[i].text, &list, &err);

        if (rows[i].says) {
            assert_row(r == -EINVAL && strstr(err.text, rows[i].says)
                           && strcmp(err.kind, CLI_KIND_USAGE) == 0,
                       "%s: %s", rows[i].text, err.text);
            continue;
        }
        assert_row(r == 0, "%s: %s", rows[i].text, err.text);
        for (size_t k = 0; k < list.count; k++)
            assert_string_equal(list.items[k].url, rows[i].urls[k]);
        assert_null(rows[i].urls[list.count]);
        endpoints_done(&list);
    }
}

static void test_too_many(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct endpoints list;
    struct aq_error err = { 0 };

    (void)state;
    for (int i = 1; i <= ENDPOINTS_MAX; i++)
        strbuf_addf(&text, "http://a:%d ", i);
    assert_int_equal(endpoints_read(text.data, &list, &err), 0);
    assert_int_equal(list.count, ENDPOINTS_MAX);
    endpoints_done(&list);
    strbuf_adds(&text, "http://b:1");
    assert_int_equal(endpoints_read(text.data, &list, &err), -EINVAL);
    assert_non_null(strstr(err.text, "more than 16 addresses"));
}

static void test_walk(void **state)
{
    struct endpoints list;

    (void)state;
    assert_int_equal(endpoints_read("http://a:1,http://b:2", &list, NULL), 0);
    assert_string_equal(endpoints_get(&list)->url, "http://a:1");
    assert_true(endpoints_is_current(&list, &list.items[0].address));
    assert_false(endpoints_is_current(&list, &list.items[1].address));
    endpoints_next(&list);
    assert_string_equal(endpoints_get(&list)->url, "http://b:2");
    endpoints_next(&list);
    assert_string_equal(endpoints_get(&list)->url, "http://a:1");
    endpoints_done(&list);
}

static void test_same_cluster(void **state)
{
    (void)state;
    assert_true(endpoints_overlap("http://a:1,http://b:2", "http://b:2/"));
    assert_true(endpoints_overlap("https://a", "https://a:443"));
    assert_false(endpoints_overlap("http://a:1,http://b:2", "http://b:1"));
    assert_false(endpoints_overlap("", "http://b:1"));
    assert_false(endpoints_overlap("http://b:1", "b:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_same_cluster),
    };

    return cmocka_run_group_tests_name("cli/endpoints", tests, NULL, NULL);
}
