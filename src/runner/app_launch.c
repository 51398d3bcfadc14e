/* SPDX-License-Identifier: Apache-2.0 */
/* From a process to an app's program. */
#include "runner/app_launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/device_variable.h"
#include "runner/app_actions.h"
#include "runner/app_definition.h"
#include "runner/app_text.h"
#include "runner/command.h"

#define WORDS_MAX 4096

/* All of it is the process's until it becomes the program, or ends. */
struct app_words {
    char *items[WORDS_MAX + 1];
    size_t count;
};

static int app_launch_add(struct app_words *words, const char *text, struct aq_error *err)
{
    if (words->count == WORDS_MAX)
        return aq_fail(err, E2BIG, "the command has more than %d words", WORDS_MAX);
    if (!(words->items[words->count] = strdup(text)))
        return aq_fail_oom(err);
    words->items[++words->count] = NULL;
    return 0;
}

static int app_launch_add_expanded(struct app_words *words, const char *text, const char *more,
                                   const json_t *variables, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = app_text_expand(text, variables, &out, err);

    strbuf_adds(&out, more);
    if (r == 0 && !strbuf_ok(&out))
        r = aq_fail_oom(err);
    return r < 0 ? r : app_launch_add(words, out.len ? out.data : "", err);
}

/* ---- its words ---- */

static int app_launch_add_argument(struct app_words *words, const char *name, const json_t *value,
                                   struct aq_error *err)
{
    int r = app_launch_add(words, name, err);
    const json_t *item;
    size_t i;

    if (r == 0 && json_is_string(value))
        r = app_launch_add(words, json_string_value(value), err);
    json_array_foreach(value, i, item)
        if (r == 0)
            r = app_launch_add(words, json_string_value(item), err);
    return r;
}

/* The client's take the place of the usual ones. */
static int app_launch_add_arguments(struct app_words *words, const struct app_launch *launch,
                                    struct aq_error *err)
{
    json_t *usual = json_object_get(launch->definition, "default_arguments"), *value;
    const char *name;
    int r = 0;

    json_object_foreach(usual, name, value)
        if (r == 0 && !json_object_get(launch->arguments, name))
            r = app_launch_add_argument(words, name, value, err);
    json_object_foreach((json_t *)(uintptr_t)launch->arguments, name, value)
        if (r == 0)
            r = app_launch_add_argument(words, name, value, err);
    return r;
}

static const char *app_launch_shell(const json_t *definition)
{
    const char *shell = json_string_value(json_object_get(definition, "shell"));
    bool has_bash = access("/bin/bash", X_OK) == 0 || access("/usr/bin/bash", X_OK) == 0;

    return shell && *shell ? shell : has_bash ? "bash" : "sh";
}

/* A line for a shell; arguments follow what it says. */
static int app_launch_add_line(struct app_words *words, const struct app_launch *launch,
                               const char *line, const json_t *variables, struct aq_error *err)
{
    const char *shell = app_launch_shell(launch->definition);
    bool has_arguments = json_object_size(launch->arguments)
                         || json_object_size(
                             json_object_get(launch->definition, "default_arguments"));
    int r = app_launch_add(words, shell, err);

    if (r == 0)
        r = app_launch_add(words, "-c", err);
    if (r == 0)
        r = app_launch_add_expanded(words, line, has_arguments ? " \"$@\"" : "", variables, err);
    return r < 0 ? r : app_launch_add(words, shell, err);
}

static int app_launch_make_words(struct app_words *words, const struct app_launch *launch,
                                 const json_t *variables, struct aq_error *err)
{
    const json_t *command = json_object_get(launch->definition, "command"), *word;
    size_t i;
    int r = 0;

    if (json_is_string(command))
        r = app_launch_add_line(words, launch, json_string_value(command), variables, err);
    json_array_foreach(command, i, word)
        if (r == 0)
            r = app_launch_add_expanded(words, json_string_value(word), "", variables, err);
    return r < 0 ? r : app_launch_add_arguments(words, launch, err);
}

/* ---- its environment ---- */

static int app_launch_set_env(const char *name, const struct strbuf *value, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *variable = aq_format("%s=%s", name, value->len ? value->data : "");

    if (!variable || !strbuf_ok(value))
        return aq_fail_oom(err);
    if (device_variable_exceeds(variable, command_count_devices()))
        return 0;
    return setenv(name, strchr(variable, '=') + 1, 1) < 0 ? aq_fail_oom(err) : 0;
}

static int app_launch_set_envs(const json_t *envs, const json_t *variables, struct aq_error *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)envs, name, value) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (r == 0 && variables)
            r = app_text_expand(json_string_value(value), variables, &text, err);
        else if (r == 0)
            strbuf_adds(&text, json_string_value(value));
        if (r == 0)
            r = app_launch_set_env(name, &text, err);
    }
    return r;
}

/* ---- all of it ---- */

static int app_launch_prepare(const struct app_launch *launch, json_t *variables,
                              struct app_words *words, struct aq_error *err)
{
    int r = setenv(APP_MARK, launch->name, 1) < 0 ? aq_fail_oom(err) : 0;

    if (r == 0)
        r = app_actions_run(json_object_get(launch->definition, "prestart"), variables, err);
    if (r == 0)
        r = app_launch_make_words(words, launch, variables, err);
    if (r == 0)
        r = app_launch_set_envs(json_object_get(launch->definition, "env"), variables, err);
    return r < 0 ? r : app_launch_set_envs(launch->envs, NULL, err);
}

int app_launch(const struct app_launch *launch, struct aq_error *err)
{
    const char *runtime = getenv("ALIQUOT_RUNTIME_PATH");
    json_auto_t *variables = json_pack("{s:O,s:s}", "ports", launch->ports, "runtime_path",
                                       runtime ? runtime : "python3");
    static struct app_words words;
    int r = variables ? app_launch_prepare(launch, variables, &words, err) : aq_fail_oom(err);

    if (r < 0 || json_is_true(json_object_get(launch->definition, "noop")))
        return r;
    (void)execvp(words.items[0], words.items);
    return aq_fail_errno(err, "execute '%s'", words.items[0]);
}
