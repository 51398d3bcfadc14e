/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>

#include "serving/command.h"

static struct text_pair pairs[] = { { "model_path", "/models/a" }, { "file", "/tmp/x.py" } };
static const struct pair_list variables = { pairs, 2 };

static void texts_are_expanded_as_by_format_or_literally(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "serve {model_path}", "serve /models/a" },
        { "{file}{model_path}", "/tmp/x.py/models/a" },
        { "{{\"path\": \"{model_path}\"}}", "{\"path\": \"/models/a\"}" },
        { "{{{model_path}}}", "{/models/a}" },
        { "{\"a\": {\"b\": \"{model_path}\"}}", "{\"a\": {\"b\": \"/models/a\"}}" },
        { "echo ${HOME} {{x}}", "echo ${HOME} {{x}}" },
        { "{unknown}", "{unknown}" },
        { "{", "{" },
        { "}", "}" },
        { "{model_path", "{model_path" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        command_expand(rows[i].text, &variables, &out);
        if (strcmp(out.data, rows[i].expected) != 0)
            fail_msg("%s: expected %s, got %s", rows[i].text, rows[i].expected, out.data);
    }
}

/* What a shell prints for a script; to be freed. */
static char *output_of(const char *script)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT, out = STRBUF_INIT;
    char bytes[4096];
    size_t got;
    FILE *pipe;

    strbuf_adds(&line, "/bin/sh -c ");
    command_quote(script, &line);
    strbuf_adds(&line, " 2>&1");
    pipe = popen(line.data, "r");
    assert_non_null(pipe);
    while ((got = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
        strbuf_add(&out, bytes, got);
    (void)pclose(pipe);
    strbuf_addc(&out, '\0');
    return strbuf_steal(&out);
}

static void a_quoted_word_is_one_word_of_a_shell(void **state)
{
    static const char *const words[] = {
        "",           "plain", "it's", "'; touch /tmp/no; '", "$(id) `id` $HOME", "a\nb", "\\'\"\\",
        "--help; id", "''",    "*",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(words); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf script = STRBUF_INIT;
        char *out;

        strbuf_adds(&script, "printf %s ");
        command_quote(words[i], &script);
        out = output_of(script.data);
        assert_string_equal(out, words[i]);
        free(out);
    }
}

static void a_command_starts_in_its_folder_by_its_shell(void **state)
{
    static const struct {
        const char *command, *shell, *folder, *expected;
    } rows[] = {
        { "pwd; echo $0", "/bin/sh", "/usr", "/usr\n/bin/sh\n" },
        { "cd /; pwd", "", NULL, "/\n" },
        { "'echo' 'a  b'", NULL, "/", "a  b\n" },
        { "echo \"it's\"", "", "/usr", "it's\n" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf start = STRBUF_INIT;
        char *out;

        command_start(rows[i].command, rows[i].shell, rows[i].folder, &start);
        out = output_of(start.data);
        assert_string_equal(out, rows[i].expected);
        free(out);
    }
}

static void a_command_does_not_start_in_another_folder(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf start = STRBUF_INIT;
    char *out;

    (void)state;
    command_start("echo started", "", "/no/such/folder", &start);
    out = output_of(start.data);
    assert_null(strstr(out, "started"));
    assert_non_null(strstr(out, "/no/such/folder"));
    free(out);
}

static void variables_are_set_once(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct pair_list list = { 0 };

    (void)state;
    command_set_variable(&list, &arena, "A", "1");
    command_set_variable(&list, &arena, "B", "2");
    command_set_variable(&list, &arena, "A", "3");
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].value, "1");
    assert_string_equal(list.items[1].value, "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_expanded_as_by_format_or_literally),
        cmocka_unit_test(a_quoted_word_is_one_word_of_a_shell),
        cmocka_unit_test(a_command_starts_in_its_folder_by_its_shell),
        cmocka_unit_test(a_command_does_not_start_in_another_folder),
        cmocka_unit_test(variables_are_set_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
