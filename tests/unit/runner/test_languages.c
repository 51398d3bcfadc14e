/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>

#include "runner/languages.h"

static const char *const variables[] = { "PATH=/bin",
                                         "ALIQUOT_INTERPRETER_perl=exec perl reader",
                                         "ALIQUOT_INTERPRETER_python=jupyter:python3",
                                         "ALIQUOT_INTERPRETER_empty=",
                                         "ALIQUOT_INTERPRETER_Upper=x",
                                         NULL };

static void test_variables(void **state)
{
    static const struct {
        const char *variable;
        bool is_good;
        enum language_kind kind;
        const char *command;
    } cases[] = {
        { "ALIQUOT_INTERPRETER_r=R --slave", true, LANGUAGE_READER, "R --slave" },
        { "ALIQUOT_INTERPRETER_r=jupyter:ir", true, LANGUAGE_JUPYTER, "ir" },
        { "ALIQUOT_INTERPRETER_r=jupyter:", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETER_r=", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETER_r", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETER_=x", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETER_c++=x", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETER_a234567890123456=x", true, LANGUAGE_READER, "x" },
        { "ALIQUOT_INTERPRETER_a2345678901234567=x", false, LANGUAGE_READER, NULL },
        { "ALIQUOT_INTERPRETE", false, LANGUAGE_READER, NULL },
        { "", false, LANGUAGE_READER, NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct language language;

        assert_int_equal(language_parse(cases[i].variable, &language), cases[i].is_good);
        if (!cases[i].is_good)
            continue;
        assert_int_equal(language.kind, cases[i].kind);
        assert_string_equal(language.command, cases[i].command);
    }
}

/* What an image says replaces ours, and its own language is the usual one. */
static void test_choice(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf why = STRBUF_INIT;
    struct language languages[LANGUAGES_MAX];
    const struct language *found;
    size_t count;

    (void)state;
    assert_int_equal(setenv("ALIQUOT_RUNTIME_TYPE", "perl", 1), 0);
    count = languages_find(variables, languages);
    assert_int_equal(count, 4);
    assert_string_equal(language_choose(languages, count, "-")->name, "perl");
    assert_int_equal(language_choose(languages, count, "python")->kind, LANGUAGE_JUPYTER);
    assert_null(language_choose(languages, count, "cobol"));
    language_refuse(languages, count, "cobol", &why);
    assert_string_equal(why.data,
                        "the language 'cobol' is none of this session's: python, shell, c, perl");
    assert_int_equal(setenv("ALIQUOT_RUNTIME_TYPE", "cobol", 1), 0);
    assert_null(language_choose(languages, count, "-"));
    assert_int_equal(setenv("ALIQUOT_RUNTIME_TYPE", "app", 1), 0);
    found = language_choose(languages, count, "-");
    assert_true(strcmp(found->name, "python") == 0 || strcmp(found->name, "shell") == 0);
}

static void test_too_many(void **state)
{
    const char *many[LANGUAGES_MAX + 2] = { NULL };
    struct language languages[LANGUAGES_MAX];
    char texts[LANGUAGES_MAX + 1][64];

    (void)state;
    for (size_t i = 0; i <= LANGUAGES_MAX; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "ALIQUOT_INTERPRETER_l%zu=x", i);
        many[i] = texts[i];
    }
    assert_int_equal(languages_find(many, languages), LANGUAGES_MAX);
}

static void test_commands(void **state)
{
    const struct language reader = { "r", LANGUAGE_READER, "R --reader" };
    const struct language kernel = { "r", LANGUAGE_JUPYTER, "ir" };
    const char *argv[LANGUAGE_ARGUMENTS_MAX];

    (void)state;
    language_command(&reader, "", argv);
    assert_string_equal(argv[0], "sh");
    assert_string_equal(argv[2], "R --reader");
    assert_null(argv[3]);
    assert_int_equal(setenv("ALIQUOT_RUNTIME_PATH", "/opt/python", 1), 0);
    assert_int_equal(setenv("ALIQUOT_RUNTIME_TYPE", "python", 1), 0);
    language_command(&kernel, "", argv);
    assert_string_equal(argv[0], "/opt/python");
    assert_string_equal(argv[3], "ir");
    assert_null(argv[4]);
    assert_int_equal(setenv("ALIQUOT_RUNTIME_TYPE", "r", 1), 0);
    language_command(&kernel, "", argv);
    assert_string_equal(argv[0], "python3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
