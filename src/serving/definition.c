/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c - model-definition.yaml as a whole */
#include "serving/definition.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/shell_word.h"
#include "base/yaml_load.h"
#include "serving/command.h"
#include "serving/definition_internal.h"

#define DEFINITION_DEPTH_MAX 10
#define DEFINITION_VALUES_MAX 20000
#define DEFINITION_SECONDS_MAX (7 * 86400)
#define DEFINITION_RETRIES_MAX 1000

int definition_split_command(const char *command, struct strbuf *out, struct aq_error *err)
{
    const char *at = command + strspn(command, " \t\n");

    if (!*at)
        return aq_fail(err, EINVAL, "a command without a shell needs a program");
    while (*at) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;

        at = shell_word_take(at, &word);
        if (!at)
            return aq_fail(err, EINVAL,
                           "the command needs a shell, but 'shell' is null; remove 'shell' from "
                           "the model definition, or quote what a shell would interpret");
        if (out->len)
            strbuf_addc(out, ' ');
        command_quote(word.data, out);
    }
    return 0;
}

/* ---- service ---- */

/* Seconds, also "0.5" and "10s". */
static int definition_read_seconds(const struct definition_reader *in, const json_t *object,
                                   const char *path, const char *key, int64_t *ret_usec)
{
    const char *text = NULL;
    int64_t usec;
    int r = definition_read_text(in, object, path, key, DEFINITION_NAME_MAX, &text);

    if (r < 0 || !text)
        return r;
    if (clock_parse_duration(text, &usec) < 0 || usec > DEFINITION_SECONDS_MAX * USEC_PER_SEC)
        return definition_refuse(in, definition_path(in, path, key),
                                 "expected seconds from 0 to %d, got '%.40s'",
                                 DEFINITION_SECONDS_MAX, text);
    *ret_usec = usec;
    return 0;
}

static int definition_read_health(struct definition_reader *in, const json_t *object,
                                  const char *path, struct model_health *ret)
{
    static const char *const known[] = { "enable",        "path",
                                         "interval",      "max_retries",
                                         "max_wait_time", "expected_status_code",
                                         "initial_delay", NULL };
    bool is_enabled = true;
    int r;

    if ((r = definition_check_keys(in, object, path, known)) < 0)
        return r;
    ret->path = "/health";
    if ((r = definition_read_flag(in, object, path, "enable", &is_enabled)) < 0
        || (r = definition_read_text(in, object, path, "path", DEFINITION_PATH_MAX, &ret->path)) < 0
        || (r = definition_read_seconds(in, object, path, "interval", &ret->interval_usec)) < 0
        || (r = definition_read_seconds(in, object, path, "max_wait_time", &ret->timeout_usec)) < 0
        || (r = definition_read_seconds(in, object, path, "initial_delay",
                                        &ret->initial_delay_usec))
               < 0
        || (r = definition_read_integer(in, object, path, "max_retries", 1, DEFINITION_RETRIES_MAX,
                                        &ret->retries))
               < 0
        || (r = definition_read_integer(in, object, path, "expected_status_code", 101, 599,
                                        &ret->status))
               < 0)
        return r;
    path = definition_path(in, path, "path");
    for (const char *at = ret->path; *at; at++)
        if (iscntrl((unsigned char)*at) || *at == ' ' || (unsigned char)*at >= 0x80)
            return definition_refuse(in, path,
                                     "a path of a URL must be printable ASCII without "
                                     "blanks");
    if (*ret->path != '/')
        return definition_refuse(in, path, "expected a path that begins with '/', got '%.60s'",
                                 ret->path);
    if (!is_enabled)
        *ret = (struct model_health){ .initial_delay_usec = ret->initial_delay_usec };
    return 0;
}

/* start_command, a line or, in older files, a list of words. */
static int definition_read_command(struct definition_reader *in, const json_t *service,
                                   const char *path, const struct pair_list *variables,
                                   struct model_entry *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT, words = STRBUF_INIT;
    const json_t *value = definition_get(service, "start_command");
    struct str_list list = { 0 };
    struct aq_error why = { 0 };
    int r = definition_read_texts(in, service, path, "start_command", &list);

    path = definition_path(in, path, "start_command");
    if (r < 0 || !value)
        return r;
    if (list.count == 0 || !*list.items[0])
        return definition_refuse(in, path, "is empty; leave it out to run the image's own command");
    if (!json_is_array(value))
        command_expand(list.items[0], variables, &line);
    for (size_t i = 0; json_is_array(value) && i < list.count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;

        command_expand(list.items[i], variables, &word);
        if (line.len)
            strbuf_addc(&line, ' ');
        command_quote(word.data, &line);
    }
    if (!ret->shell && definition_split_command(line.data, &words, &why) < 0)
        return definition_refuse(in, path, "%s", why.text);
    ret->command = arena_strdup(&in->d->arena, line.data);
    return 0;
}

static int definition_read_shell(const struct definition_reader *in, const json_t *service,
                                 const char *path, struct model_entry *ret)
{
    int r;

    ret->shell = json_is_null(json_object_get(service, "shell")) ? NULL : "";
    r = definition_read_text(in, service, path, "shell", DEFINITION_PATH_MAX, &ret->shell);
    if (r < 0 || !ret->shell || !*ret->shell)
        return r;
    return definition_check_path(in, definition_path(in, path, "shell"), ret->shell);
}

static int definition_read_service(struct definition_reader *in, const json_t *service,
                                   const char *path, struct model_entry *ret)
{
    static const char *const known[] = {
        "pre_start_actions", "start_command", "shell", "port", "health_check", NULL
    };
    const json_t *actions, *health;
    struct pair_list variables = { 0 };
    int r = definition_check_keys(in, service, path, known);

    if (r < 0)
        return r;
    ret->is_served = true;
    if ((r = definition_read_integer(in, service, path, "port", 2, 65535, &ret->port)) < 0)
        return r;
    if (!ret->port)
        return definition_refuse(in, definition_path(in, path, "port"),
                                 "is missing; expected a port from 2 to 65535");
    command_set_variable(&variables, &in->d->arena, "model_path", ret->path);
    actions = definition_get(service, "pre_start_actions");
    if (actions
        && (r = definition_read_actions(in, actions, definition_path(in, path, "pre_start_actions"),
                                        &variables, ret))
               < 0)
        return r;
    ret->variables = variables;
    if ((r = definition_read_shell(in, service, path, ret)) < 0
        || (r = definition_read_command(in, service, path, &variables, ret)) < 0)
        return r;
    health = definition_get(service, "health_check");
    if (!health)
        return 0;
    return definition_read_health(in, health, definition_path(in, path, "health_check"),
                                  &ret->health);
}

/* ---- models ---- */

static int definition_check_metadata(struct definition_reader *in, const json_t *object,
                                     const char *path)
{
    static const char *const texts[] = { "author",        "title",       "version", "created",
                                         "last_modified", "description", "task",    "category",
                                         "architecture",  "license" };
    static const char *const known[] = { "author",        "title",       "version",   "created",
                                         "last_modified", "description", "task",      "category",
                                         "architecture",  "license",     "framework", "label",
                                         "min_resource",  NULL };
    const json_t *amounts = definition_get(object, "min_resource"), *value;
    const char *text = NULL, *name;
    struct str_list list;
    int r = definition_check_keys(in, object, path, known);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(texts); i++)
        if (json_string_length(definition_get(object, texts[i])) > 0
            || !json_is_string(definition_get(object, texts[i])))
            r = definition_read_text(in, object, path, texts[i], DEFINITION_TEXT_MAX, &text);
    if (r < 0 || (r = definition_read_texts(in, object, path, "framework", &list)) < 0
        || (r = definition_read_texts(in, object, path, "label", &list)) < 0 || !amounts)
        return r;
    path = definition_path(in, path, "min_resource");
    if (!json_is_object(amounts))
        return definition_refuse(in, path, "expected a mapping of slots to amounts");
    json_object_foreach((json_t *)(uintptr_t)amounts, name, value)
        if ((r = definition_read_text(in, amounts, path, name, DEFINITION_NAME_MAX, &text)) < 0)
            return r;
    return 0;
}

/* An absolute path without a slash at its end. Start commands have it within quotes of their own or
 * without, so it must mean the same to a shell in both.
 */
static int definition_read_model_path(const struct definition_reader *in, const json_t *object,
                                      const char *path, struct model_entry *ret)
{
    const char *value = NULL;
    size_t len;
    int r = definition_read_text(in, object, path, "model_path", DEFINITION_PATH_MAX, &value);

    path = definition_path(in, path, "model_path");
    if (r < 0)
        return r;
    if (!value)
        return definition_refuse(in, path, "is missing; expected a path such as /models");
    if (value[0] != '/')
        return definition_refuse(in, path, "expected an absolute path such as /models, got '%.60s'",
                                 value);
    for (len = strlen(value); len > 1 && value[len - 1] == '/';)
        len--;
    ret->path = arena_strndup(&in->d->arena, value, len);
    for (const char *part = ret->path; (part = strstr(part, "/..")); part += 3)
        if (!part[3] || part[3] == '/')
            return definition_refuse(in, path, "must not contain '..'");
    if ((r = definition_check_path(in, path, ret->path)) < 0 || command_is_plain(ret->path))
        return r;
    return definition_refuse(in, path,
                             "'%.60s' must not contain blanks or characters with a meaning for "
                             "shells",
                             ret->path);
}

static int definition_read_model(struct definition_reader *in, const json_t *object,
                                 const char *path, struct model_entry *ret)
{
    static const char *const known[] = { "name", "model_path", "service", "metadata", NULL };
    const json_t *service;
    int r;

    if ((r = definition_check_keys(in, object, path, known)) < 0
        || (r = definition_read_text(in, object, path, "name", DEFINITION_NAME_MAX, &ret->name))
               < 0)
        return r;
    if (!ret->name)
        return definition_refuse(in, definition_path(in, path, "name"), "is missing");
    for (const char *at = ret->name; *at; at++)
        if (iscntrl((unsigned char)*at))
            return definition_refuse(in, definition_path(in, path, "name"),
                                     "a name must not contain control characters");
    if ((r = definition_read_model_path(in, object, path, ret)) < 0)
        return r;
    ret->metadata = definition_get(object, "metadata");
    if (ret->metadata
        && (r = definition_check_metadata(in, ret->metadata, definition_path(in, path, "metadata")))
               < 0)
        return r;
    service = definition_get(object, "service");
    return service ? definition_read_service(in, service, definition_path(in, path, "service"), ret)
                   : 0;
}

static int definition_read(struct definition_reader *in)
{
    static const char *const known[] = { "models", NULL };
    struct model_definition *d = in->d;
    const json_t *models = definition_get(d->root, "models");
    size_t count = json_array_size(models);
    int r = definition_check_keys(in, d->root, "", known);

    if (r < 0)
        return r;
    if (!json_is_array(models) || count == 0)
        return definition_refuse(in, "models", "expected a list of one model or more");
    if (count > MODEL_DEFINITION_MODELS_MAX)
        return definition_refuse(in, "models", "expected at most %d models, got %zu",
                                 MODEL_DEFINITION_MODELS_MAX, count);
    d->models = arena_array(&d->arena, count, sizeof(*d->models));
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct model_entry *served = model_definition_find_served(d);
        const char *path = definition_item(in, "models", i);

        r = definition_read_model(in, json_array_get(models, i), path,
                                  &d->models[d->model_count++]);
        if (r == 0 && served && d->models[i].is_served)
            definition_warn(in, path, "is not served: a service serves the first model, '%.60s'",
                            served->name);
    }
    return r;
}

/* ---- all ---- */

int model_definition_parse(const char *text, size_t len, struct model_definition **ret,
                           struct aq_error *err)
{
    static const struct yaml_rules rules = { DEFINITION_DEPTH_MAX, DEFINITION_VALUES_MAX, true };
    AQ_CLEANUP(model_definition_freep) struct model_definition *d = aq_alloc(sizeof(*d));
    struct definition_reader in = { text, len, d, err, 0 };
    int r;

    if (len > MODEL_DEFINITION_BYTES_MAX)
        return aq_fail(err, E2BIG, "the model definition has %zu bytes; at most %d are allowed",
                       len, MODEL_DEFINITION_BYTES_MAX);
    if (!(d->root = yaml_load_text(text, len, &rules, err)))
        return -EINVAL;
    if ((r = definition_read(&in)) < 0)
        return r;
    *ret = AQ_TAKE(d);
    return 0;
}

void model_definition_free(struct model_definition *d)
{
    if (!d)
        return;
    json_decref(d->root);
    arena_done(&d->arena);
    free(d);
}

const struct model_entry *model_definition_find_served(const struct model_definition *d)
{
    for (size_t i = 0; i < d->model_count; i++)
        if (d->models[i].is_served)
            return &d->models[i];
    return NULL;
}
