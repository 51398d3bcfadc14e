/* SPDX-License-Identifier: Apache-2.0 */
/* definition_read.c - members of model-definition.yaml by kind, and errors that name them */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/yaml_load.h"
#include "serving/definition_internal.h"

/* The line of "models[0].service" in the file; 0 = not known. */
static size_t definition_line(const struct definition_reader *in, const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf dotted = STRBUF_INIT;

    for (; *path; path++)
        if (*path == '[')
            strbuf_addc(&dotted, '.');
        else if (*path != ']')
            strbuf_addc(&dotted, *path);
    return yaml_find(in->text, in->len, dotted.data).line;
}

int definition_refuse(const struct definition_reader *in, const char *path, const char *fmt, ...)
{
    char why[sizeof(in->err->text)];
    size_t line = definition_line(in, path);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (!line)
        return aq_fail_field(in->err, EINVAL, path, "%s: %s", path, why);
    return aq_fail_field(in->err, EINVAL, path, "%s: %s (line %zu)", path, why, line);
}

void definition_warn(struct definition_reader *in, const char *path, const char *fmt, ...)
{
    struct model_definition *d = in->d;
    char why[512];
    const char *text;
    va_list args;

    if (++in->warnings > MODEL_DEFINITION_WARNINGS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (in->warnings == MODEL_DEFINITION_WARNINGS_MAX)
        text = "further warnings are not listed";
    else {
        AQ_CLEANUP(aq_freep) char *all = aq_format("%s: %s", path, why);

        text = arena_strdup(&d->arena, all);
    }
    (void)arena_append(&d->arena, &d->warnings.items, &d->warnings.count, &text, sizeof(text));
}

const char *definition_path(const struct definition_reader *in, const char *path, const char *name)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s%s%.60s", path, *path ? "." : "", name);

    return arena_strdup(&in->d->arena, text);
}

const char *definition_item(const struct definition_reader *in, const char *path, size_t i)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s[%zu]", path, i);

    return arena_strdup(&in->d->arena, text);
}

const json_t *definition_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

int definition_check_keys(struct definition_reader *in, const json_t *object, const char *path,
                          const char *const *known)
{
    const json_t *value;
    const char *name;

    if (!json_is_object(object))
        return definition_refuse(in, *path ? path : "models", "expected a mapping");
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        struct suggest suggest = suggest_for(name, strlen(name));
        bool is_known = false;

        for (size_t i = 0; known[i]; i++) {
            is_known |= strcmp(known[i], name) == 0;
            suggest_offer(&suggest, known[i]);
        }
        if (is_known)
            continue;
        if (suggest.best)
            definition_warn(in, definition_path(in, path, name),
                            "unknown member; did you mean '%s'?", suggest.best);
        else
            definition_warn(in, definition_path(in, path, name), "unknown member");
    }
    return 0;
}

/* A text, number or truth value as text of the arena; NULL for a mapping or list. */
static const char *definition_scalar(const struct definition_reader *in, const json_t *value)
{
    char number[32];

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_integer(value))
        return NULL;
    (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return arena_strdup(&in->d->arena, number);
}

/* The words by which an error calls a value that is of the wrong kind. */
static const char *definition_describe(const struct definition_reader *in, const json_t *value)
{
    const char *text = definition_scalar(in, value);
    AQ_CLEANUP(aq_freep) char *quoted = NULL;

    if (!text)
        return json_is_array(value) ? "a list" : "a mapping";
    quoted = aq_format("'%.60s'", text);
    return arena_strdup(&in->d->arena, quoted);
}

int definition_read_text(const struct definition_reader *in, const json_t *object, const char *path,
                         const char *key, size_t max, const char **ret)
{
    const json_t *value = definition_get(object, key);
    const char *text = definition_scalar(in, value);

    path = definition_path(in, path, key);
    if (value && !text)
        return definition_refuse(in, path, "expected a text, got %s",
                                 definition_describe(in, value));
    if (text && (!*text || strlen(text) > max))
        return definition_refuse(in, path, "expected 1 to %zu bytes, got %zu", max, strlen(text));
    if (text)
        *ret = text;
    return 0;
}

int definition_read_integer(const struct definition_reader *in, const json_t *object,
                            const char *path, const char *key, int64_t min, int64_t max,
                            int64_t *ret)
{
    const json_t *value = definition_get(object, key);
    const char *text = definition_scalar(in, value);
    int64_t number;
    char *end;

    if (!value)
        return 0;
    errno = 0;
    number = text && isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : min - 1;
    if (number < min || number > max || errno || *end)
        return definition_refuse(in, definition_path(in, path, key),
                                 "expected an integer from %" PRId64 " to %" PRId64 ", got %s", min,
                                 max, definition_describe(in, value));
    *ret = number;
    return 0;
}

int definition_read_flag(const struct definition_reader *in, const json_t *object, const char *path,
                         const char *key, bool *ret)
{
    static const char *const words[][2] = { /* of YAML 1.1 */
                                            { "true", "false" },
                                            { "yes", "no" },
                                            { "on", "off" }
    };
    const json_t *value = definition_get(object, key);
    const char *text = definition_scalar(in, value);

    if (!value)
        return 0;
    for (size_t i = 0; text && i < AQ_COUNT(words); i++)
        for (int no = 0; no < 2; no++)
            if (strcasecmp(text, words[i][no]) == 0) {
                *ret = !no;
                return 0;
            }
    return definition_refuse(in, definition_path(in, path, key), "expected true or false, got %s",
                             definition_describe(in, value));
}

int definition_read_texts(const struct definition_reader *in, const json_t *object,
                          const char *path, const char *key, struct str_list *ret)
{
    const json_t *value = definition_get(object, key), *item;
    struct arena *arena = &in->d->arena;
    size_t i, count = json_is_array(value) ? json_array_size(value) : 1;
    struct str_list list = { 0 };

    if (!value)
        return 0;
    path = definition_path(in, path, key);
    if (count > MODEL_DEFINITION_ITEMS_MAX)
        return definition_refuse(in, path, "expected at most %d items, got %zu",
                                 MODEL_DEFINITION_ITEMS_MAX, count);
    list.items = arena_array(arena, count + 1, sizeof(*list.items));
    if (!json_is_array(value)) {
        if (!(list.items[list.count++] = definition_scalar(in, value)))
            return definition_refuse(in, path, "expected a list of texts, got a mapping");
    }
    json_array_foreach(value, i, item) {
        const char *text = json_is_null(item) ? "" : definition_scalar(in, item);

        if (!text)
            return definition_refuse(in, definition_item(in, path, i), "expected a text, got %s",
                                     definition_describe(in, item));
        list.items[list.count++] = text;
    }
    *ret = list;
    return 0;
}

int definition_check_path(const struct definition_reader *in, const char *path, const char *value)
{
    for (const char *at = value; *at; at++)
        if (iscntrl((unsigned char)*at))
            return definition_refuse(in, path, "a path must not contain control characters");
    if (!*value || strlen(value) > DEFINITION_PATH_MAX)
        return definition_refuse(in, path, "expected a path of 1 to %d bytes, got %zu",
                                 DEFINITION_PATH_MAX, strlen(value));
    return 0;
}
