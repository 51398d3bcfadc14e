/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "runner/app_definition.h"
#include "runner/app_own.h"
#include "runner/app_text.h"

/* ---- definitions ---- */

static void test_definitions(void **state)
{
    static const struct {
        const char *text, *field; /* field: NULL = accepted */
    } cases[] = {
        { "{\"command\": [\"a\", \"b\"]}", NULL },
        { "{\"command\": \"a b\", \"shell\": \"sh\", \"unknown\": 1}", NULL },
        { "{\"noop\": true}", NULL },
        { "{\"command\": [\"a\"], \"env\": {\"A\": \"b\"}, \"allowed_envs\": [\"A\"]}", NULL },
        { "{\"command\": [\"a\"], \"default_arguments\": {\"-a\": null, \"-b\": [\"c\"]}}", NULL },
        { "{\"command\": [\"a\"], \"prestart\": null, \"start_timeout\": 600}", NULL },
        { "{\"command\": [\"a\"], \"prestart\": [{\"action\": \"mkdir\", \"args\": {\"path\": "
          "\"/a\"}}]}",
          NULL },
        { "", "definition" },
        { "[]", "definition" },
        { "{\"command\": [\"a\"], \"command\": [\"a\"]}", "definition" },
        { "{}", "command" },
        { "{\"command\": []}", "command" },
        { "{\"command\": null}", "command" },
        { "{\"command\": [1]}", "command" },
        { "{\"command\": [\"a\"], \"env\": {\"A=\": \"b\"}}", "env" },
        { "{\"command\": [\"a\"], \"env\": {\"A\": 1}}", "env" },
        { "{\"command\": [\"a\"], \"start_timeout\": 0}", "start_timeout" },
        { "{\"command\": [\"a\"], \"start_timeout\": 601}", "start_timeout" },
        { "{\"command\": [\"a\"], \"allowed_envs\": \"A\"}", "allowed_envs" },
        { "{\"command\": [\"a\"], \"prestart\": [5]}", "action" },
        { "{\"command\": [\"a\"], \"prestart\": [{\"action\": \"fly\"}]}", "action" },
        { "{\"command\": [\"a\"], \"prestart\": [{\"action\": \"mkdir\"}]}", "path" },
        { "{\"command\": [\"a\"], \"prestart\": [{\"action\": \"write_file\", \"args\": "
          "{\"filename\": \"a\", \"body\": [], \"mode\": \"999\"}}]}",
          "mode" },
        { "{\"command\": [\"a\"], \"prestart\": [{\"action\": \"mkdir\", \"ref\": 1, \"args\": "
          "{\"path\": \"/a\"}}]}",
          "ref" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        json_auto_t *definition = NULL;
        struct aq_error err = { 0 };
        int r = app_definition_read(cases[i].text, strlen(cases[i].text), &definition, &err);

        assert_int_equal(r, cases[i].field ? -EINVAL : 0);
        assert_string_equal(err.field, cases[i].field ? cases[i].field : "");
        assert_int_equal(definition != NULL, r == 0);
    }
}

static void test_a_large_one(void **state)
{
    static char text[APP_DEFINITION_MAX + 1];
    json_auto_t *definition = NULL;
    struct aq_error err = { 0 };

    (void)state;
    memset(text, '[', sizeof(text));
    assert_int_equal(app_definition_read(text, sizeof(text), &definition, &err), -E2BIG);
    err.code = 0;
    assert_int_equal(app_definition_read(text, sizeof(text) - 1, &definition, &err), -EINVAL);
}

static void test_what_it_allows(void **state)
{
    static const char text[] = "{\"noop\": true, \"allowed_envs\": [\"A\", \"B\"]}";
    json_auto_t *definition = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(app_definition_read(text, strlen(text), &definition, &err), 0);
    assert_true(app_definition_allows(definition, "allowed_envs", "B"));
    assert_false(app_definition_allows(definition, "allowed_envs", "C"));
    assert_false(app_definition_allows(definition, "allowed_arguments", "A"));
}

static void test_ours_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < app_own_count; i++) {
        json_auto_t *definition = NULL;
        struct aq_error err = { 0 };

        assert_int_equal(app_definition_read(app_own_table[i].definition,
                                             strlen(app_own_table[i].definition), &definition,
                                             &err),
                         0);
    }
}

/* ---- variables ---- */

static void test_variables(void **state)
{
    static const struct {
        const char *text, *want; /* want: NULL = refused */
    } cases[] = {
        { "", "" },
        { "--port={ports[0]}", "--port=8000" },
        { "{ports[1]}{path}", "8001/usr" },
        { "${{ ports[1] }} ${{path}}", "8001 /usr" },
        { "{said[out]}", "text" },
        { "{ path }", "/usr" },
        { "{{path}}", "{path}" },
        { "a } b", "a } b" },
        { "{ports[2]}", NULL },
        { "{ports[-1]}", NULL },
        { "{ports}", NULL },
        { "{said}", NULL },
        { "{said[out][x]}", NULL },
        { "{path[0]}", NULL },
        { "{nothing}", NULL },
        { "{path", NULL },
        { "{ports[0}", NULL },
        { "{ports[0]x}", NULL },
        { "${{ path }", NULL },
    };
    json_auto_t *variables = json_pack("{s:[i,i],s:s,s:{s:s}}", "ports", 8000, 8001, "path", "/usr",
                                       "said", "out", "text");

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct aq_error err = { 0 };
        int r = app_text_expand(cases[i].text, variables, &out, &err);

        assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
        if (cases[i].want)
            assert_string_equal(out.len ? out.data : "", cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definitions),    cmocka_unit_test(test_a_large_one),
        cmocka_unit_test(test_what_it_allows), cmocka_unit_test(test_ours_are_sound),
        cmocka_unit_test(test_variables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
