/* SPDX-License-Identifier: Apache-2.0 */
/* definition_actions.c - pre_start_actions of model-definition.yaml */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_values.h"
#include "serving/command.h"
#include "serving/definition_internal.h"

#define ACTION_MODE_DEFAULT 0755 /* as in Backend.AI */

static const struct {
    const char *name;
    const char *const args[5]; /* known ones; ends with NULL */
} action_kinds[] = {
    [MODEL_ACTION_WRITE_FILE] = { "write_file", { "filename", "body", "mode", "append" } },
    [MODEL_ACTION_WRITE_TEMPFILE] = { "write_tempfile", { "body", "mode" } },
    [MODEL_ACTION_RUN_COMMAND] = { "run_command", { "command", "echo" } },
    [MODEL_ACTION_MKDIR] = { "mkdir", { "path" } },
    [MODEL_ACTION_LOG] = { "log", { "message", "debug" } },
};

static const char *action_expand(struct arena *arena, const char *text,
                                 const struct pair_list *variables)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    command_expand(text, variables, &out);
    return arena_strdup(arena, out.data);
}

static int action_read_kind(const struct definition_reader *in, const json_t *object,
                            const char *path, enum model_action_kind *ret)
{
    const char *name = NULL;
    int r = definition_read_text(in, object, path, "action", DEFINITION_NAME_MAX, &name);

    if (r < 0)
        return r;
    for (size_t i = 0; name && i < AQ_COUNT(action_kinds); i++)
        if (strcmp(name, action_kinds[i].name) == 0) {
            *ret = (enum model_action_kind)i;
            return 0;
        }
    return definition_refuse(in, definition_path(in, path, "action"),
                             "expected write_file, write_tempfile, run_command, mkdir or log, "
                             "got '%.40s'",
                             name ? name : "");
}

/* Octal digits, with or without a leading 0. */
static int action_read_mode(const struct definition_reader *in, const json_t *args,
                            const char *path, unsigned *ret)
{
    const char *text = NULL;
    int r = definition_read_text(in, args, path, "mode", DEFINITION_NAME_MAX, &text);

    if (r < 0 || !text)
        return r;
    if (strncmp(text, "0o", 2) == 0)
        text += 2;
    if (!*text || strlen(text) > 5 || text[strspn(text, "01234567")]
        || strtoul(text, NULL, 8) > 07777)
        return definition_refuse(in, definition_path(in, path, "mode"),
                                 "expected octal digits such as \"644\", got '%.40s'", text);
    *ret = (unsigned)strtoul(text, NULL, 8);
    return 0;
}

/* The argument that names a file or folder. */
static int action_read_path(const struct definition_reader *in, const json_t *args,
                            const char *path, const char *key, const struct pair_list *variables,
                            struct model_action *ret)
{
    int r = definition_read_text(in, args, path, key, DEFINITION_PATH_MAX, &ret->path);

    if (r < 0)
        return r;
    path = definition_path(in, path, key);
    if (!ret->path)
        return definition_refuse(in, path, "is missing");
    ret->path = action_expand(&in->d->arena, ret->path, variables);
    return definition_check_path(in, path, ret->path);
}

/* The list or text of a required argument. */
static int action_read_words(const struct definition_reader *in, const json_t *args,
                             const char *path, const char *key, const struct pair_list *variables,
                             struct str_list *ret)
{
    int r = definition_read_texts(in, args, path, key, ret);

    if (r == 0 && !ret->items)
        r = definition_refuse(in, definition_path(in, path, key), "is missing");
    for (size_t i = 0; r == 0 && i < ret->count; i++)
        ret->items[i] = action_expand(&in->d->arena, ret->items[i], variables);
    return r;
}

static int action_read_file(const struct definition_reader *in, const json_t *args,
                            const char *path, const struct pair_list *variables,
                            struct model_action *a)
{
    int r = 0;

    if (a->kind == MODEL_ACTION_WRITE_FILE) {
        r = action_read_path(in, args, path, "filename", variables, a);
        if (r == 0 && a->path[strlen(a->path) - 1] == '/')
            r = definition_refuse(in, definition_path(in, path, "filename"),
                                  "expected a file, got the folder '%.100s'", a->path);
        if (r == 0)
            r = definition_read_flag(in, args, path, "append", &a->appends);
    }
    if (r < 0 || (r = action_read_words(in, args, path, "body", variables, &a->words)) < 0)
        return r;
    return action_read_mode(in, args, path, &a->mode);
}

static int action_read_args(const struct definition_reader *in, const json_t *args,
                            const char *path, const struct pair_list *variables,
                            struct model_action *a)
{
    bool ignored = false;
    int r = 0;

    a->mode = ACTION_MODE_DEFAULT;
    switch (a->kind) {
    case MODEL_ACTION_WRITE_FILE:
    case MODEL_ACTION_WRITE_TEMPFILE:
        return action_read_file(in, args, path, variables, a);
    case MODEL_ACTION_RUN_COMMAND:
        if ((r = action_read_words(in, args, path, "command", variables, &a->words)) < 0)
            return r;
        if (!json_is_array(definition_get(args, "command")) || a->words.count == 0
            || !*a->words.items[0])
            return definition_refuse(in, definition_path(in, path, "command"),
                                     "expected a list of a program and its arguments");
        return definition_read_flag(in, args, path, "echo", &ignored);
    case MODEL_ACTION_MKDIR:
        return action_read_path(in, args, path, "path", variables, a);
    case MODEL_ACTION_LOG:
        if ((r = action_read_words(in, args, path, "message", variables, &a->words)) < 0)
            return r;
        return definition_read_flag(in, args, path, "debug", &ignored);
    }
    return r;
}

/* The variable that later texts find the path of a write_tempfile by. */
static int action_read_ref(const struct definition_reader *in, const json_t *object,
                           const char *path, struct pair_list *variables, struct model_action *a)
{
    int r = definition_read_text(in, object, path, "ref", DEFINITION_NAME_MAX, &a->ref);

    if (r < 0 || !a->ref)
        return r;
    path = definition_path(in, path, "ref");
    if (a->kind != MODEL_ACTION_WRITE_TEMPFILE)
        return definition_refuse(in, path, "only the file of write_tempfile can be referred to");
    if (!name_values_is_name(a->ref, strlen(a->ref)))
        return definition_refuse(in, path,
                                 "expected a name of letters, digits and '_', got "
                                 "'%.40s'",
                                 a->ref);
    command_set_variable(variables, &in->d->arena, a->ref, a->path);
    return 0;
}

static int action_read(struct definition_reader *in, const json_t *object, const char *path,
                       size_t number, struct pair_list *variables, struct model_action *a)
{
    static const char *const known[] = { "action", "args", "ref", NULL };
    const json_t *args = definition_get(object, "args");
    char file[48];
    int r;

    if ((r = definition_check_keys(in, object, path, known)) < 0
        || (r = action_read_kind(in, object, path, &a->kind)) < 0)
        return r;
    if (a->kind == MODEL_ACTION_WRITE_TEMPFILE) {
        (void)snprintf(file, sizeof(file), "/tmp/aliquot-model-%zu.py", number);
        a->path = arena_strdup(&in->d->arena, file);
    }
    if (!args)
        return definition_refuse(in, definition_path(in, path, "args"), "is missing");
    if ((r = definition_check_keys(in, args, definition_path(in, path, "args"),
                                   action_kinds[a->kind].args))
            < 0
        || (r = action_read_args(in, args, definition_path(in, path, "args"), variables, a)) < 0)
        return r;
    return action_read_ref(in, object, path, variables, a);
}

int definition_read_actions(struct definition_reader *in, const json_t *list, const char *path,
                            struct pair_list *variables, struct model_entry *ret)
{
    size_t count = json_array_size(list);
    int r = 0;

    if (!json_is_array(list))
        return definition_refuse(in, path, "expected a list of actions");
    if (count > MODEL_DEFINITION_ACTIONS_MAX)
        return definition_refuse(in, path, "expected at most %d actions, got %zu",
                                 MODEL_DEFINITION_ACTIONS_MAX, count);
    ret->actions = arena_array(&in->d->arena, count + 1, sizeof(*ret->actions));
    for (size_t i = 0; r == 0 && i < count; i++)
        r = action_read(in, json_array_get(list, i), definition_item(in, path, i), i, variables,
                        &ret->actions[ret->action_count++]);
    return r;
}
