/* SPDX-License-Identifier: Apache-2.0 */
/* How an app of a container is started: reading it. */
#include "runner/app_definition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/json_load.h"

enum app_definition_type {
    APP_TEXT,
    APP_TEXTS,
    APP_COMMAND, /* a text or texts */
    APP_FLAG,
    APP_SECONDS,
    APP_MODE,
    APP_VARIABLES,
    APP_ARGUMENTS,
    APP_ACTIONS,
};

struct app_definition_member {
    const char *name;
    enum app_definition_type type;
    bool is_required;
};

static const struct app_definition_member app_definition_members[] = {
    { "prestart", APP_ACTIONS, false },
    { "command", APP_COMMAND, false },
    { "shell", APP_TEXT, false },
    { "noop", APP_FLAG, false },
    { "env", APP_VARIABLES, false },
    { "url_template", APP_TEXT, false },
    { "allowed_envs", APP_TEXTS, false },
    { "allowed_arguments", APP_TEXTS, false },
    { "default_arguments", APP_ARGUMENTS, false },
    { "start_timeout", APP_SECONDS, false },
    { NULL, APP_TEXT, false },
};

#define APP_ACTION_MEMBERS_MAX 4

static const struct {
    const char *name;
    struct app_definition_member members[APP_ACTION_MEMBERS_MAX + 1];
} app_definition_actions[] = {
    { "write_file",
      { { "filename", APP_TEXT, true },
        { "body", APP_TEXTS, true },
        { "mode", APP_MODE, false },
        { "append", APP_FLAG, false } } },
    { "write_tempfile", { { "body", APP_TEXTS, true }, { "mode", APP_MODE, false } } },
    { "mkdir", { { "path", APP_TEXT, true } } },
    { "run_command", { { "command", APP_TEXTS, true }, { "echo", APP_FLAG, false } } },
    { "log", { { "message", APP_TEXT, true }, { "debug", APP_FLAG, false } } },
};

static bool app_definition_is_texts(const json_t *value)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(value) || json_array_size(value) > APP_DEFINITION_ITEMS_MAX)
        return false;
    json_array_foreach(value, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

static bool app_definition_is_mode(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && *text && strlen(text) <= 4 && text[strspn(text, "01234567")] == '\0';
}

/* An object of texts; with 'may_vary' also of lists of texts and nulls. */
static bool app_definition_is_object(json_t *value, bool may_vary)
{
    const char *name;
    json_t *item;

    if (!json_is_object(value) || json_object_size(value) > APP_DEFINITION_ITEMS_MAX)
        return false;
    json_object_foreach(value, name, item)
        if (!*name || (!may_vary && strchr(name, '='))
            || !(json_is_string(item)
                 || (may_vary && (json_is_null(item) || app_definition_is_texts(item)))))
            return false;
    return true;
}

static int app_definition_check_actions(const json_t *list, struct aq_error *err);

static bool app_definition_fits(json_t *value, enum app_definition_type type)
{
    json_int_t number = json_integer_value(value);

    switch (type) {
    case APP_TEXT:
        return json_is_string(value);
    case APP_TEXTS:
        return app_definition_is_texts(value);
    case APP_COMMAND:
        return json_is_string(value) || (app_definition_is_texts(value) && json_array_size(value));
    case APP_FLAG:
        return json_is_boolean(value);
    case APP_SECONDS:
        return json_is_integer(value) && number >= 1 && number <= 600;
    case APP_MODE:
        return app_definition_is_mode(value);
    case APP_VARIABLES:
        return app_definition_is_object(value, false);
    case APP_ARGUMENTS:
        return app_definition_is_object(value, true);
    case APP_ACTIONS:
        return json_is_array(value) && json_array_size(value) <= APP_DEFINITION_ITEMS_MAX;
    }
    return false;
}

static int app_definition_check(const json_t *object, const struct app_definition_member *members,
                                struct aq_error *err)
{
    int r = 0;

    for (const struct app_definition_member *m = members; r == 0 && m->name; m++) {
        json_t *value = json_object_get(object, m->name);

        if (!value || json_is_null(value))
            r = m->is_required ? aq_fail_field(err, EINVAL, m->name, "'%s' is missing", m->name)
                               : 0;
        else if (!app_definition_fits(value, m->type))
            r = aq_fail_field(err, EINVAL, m->name, "'%s' is not what it has to be", m->name);
        else if (m->type == APP_ACTIONS)
            r = app_definition_check_actions(value, err);
    }
    return r;
}

static int app_definition_check_action(const json_t *action, struct aq_error *err)
{
    const char *name = json_string_value(json_object_get(action, "action"));
    const json_t *args = json_object_get(action, "args"), *ref = json_object_get(action, "ref");

    if (ref && !json_is_null(ref) && !json_is_string(ref))
        return aq_fail_field(err, EINVAL, "ref", "'ref' of an action is no text");
    for (size_t i = 0; name && i < AQ_COUNT(app_definition_actions); i++)
        if (strcmp(name, app_definition_actions[i].name) == 0)
            return app_definition_check(args, app_definition_actions[i].members, err);
    return aq_fail_field(err, EINVAL, "action", "there is no action '%.40s'", name ? name : "");
}

static int app_definition_check_actions(const json_t *list, struct aq_error *err)
{
    const json_t *action;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, action)
        if (r == 0)
            r = app_definition_check_action(action, err);
    return r;
}

int app_definition_read(const char *text, size_t len, json_t **ret, struct aq_error *err)
{
    json_auto_t *tree = NULL;
    const json_t *command;
    int r;

    if (len > APP_DEFINITION_MAX)
        return aq_fail(err, E2BIG, "it has more than %d bytes", APP_DEFINITION_MAX);
    errno = 0;
    tree = json_load_text(text, len, JSON_REJECT_DUPLICATES, NULL);
    if (!tree && errno == ENOMEM)
        return aq_fail_oom(err);
    if (!json_is_object(tree))
        return aq_fail_field(err, EINVAL, "definition", "it is no JSON object");
    r = app_definition_check(tree, app_definition_members, err);
    command = json_object_get(tree, "command");
    if (r == 0 && (!command || json_is_null(command))
        && !json_is_true(json_object_get(tree, "noop")))
        r = aq_fail_field(err, EINVAL, "command", "'command' is missing");
    if (r == 0)
        *ret = json_incref(tree);
    return r;
}

int app_definition_load(const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[PATH_MAX];
    int r;

    (void)snprintf(path, sizeof(path), APP_DEFINITION_FOLDER "/%s.json", name);
    r = fs_read(AT_FDCWD, path, APP_DEFINITION_MAX, &text, err);
    if (r == -ENOENT || r == -ENOTDIR) {
        *ret = NULL;
        return 0;
    }
    if (r == 0)
        r = app_definition_read(text.len ? text.data : "", text.len, ret, err);
    return r < 0 ? aq_error_wrap(err, "the image's definition '%s'", path) : 0;
}

bool app_definition_allows(const json_t *definition, const char *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(definition, list), i, item)
        if (strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}
