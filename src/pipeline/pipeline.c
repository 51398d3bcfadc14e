/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - the file as a whole, and its parameters */
#include "pipeline/pipeline.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "base/yaml_load.h"
#include "pipeline/pipeline_internal.h"

#define PIPELINE_DEPTH_MAX 8
#define PIPELINE_VALUES_MAX 50000

int pipeline_refuse(const struct pipeline_reader *in, const char *path, const char *fmt, ...)
{
    struct yaml_place place = yaml_find(in->text, in->len, path);
    char why[sizeof(in->err->text)];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (!place.line)
        return aq_fail_field(in->err, EINVAL, path, "%s", why);
    return aq_fail_field(in->err, EINVAL, path, "line %zu, column %zu: %s", place.line,
                         place.column, why);
}

const char *pipeline_path(const struct pipeline_reader *in, const char *path, const char *name)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s%s%s", path, *path ? "." : "", name);

    return arena_strdup(&in->p->arena, text);
}

int pipeline_check_keys(const struct pipeline_reader *in, const json_t *object, const char *path,
                        const char *const *known)
{
    const json_t *value;
    const char *name;

    if (object && !json_is_object(object))
        return pipeline_refuse(in, path, "'%s' must be a mapping", path);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        struct suggest suggest = suggest_for(name, strlen(name));
        bool is_known = false;

        for (size_t i = 0; known[i]; i++) {
            is_known |= strcmp(known[i], name) == 0;
            suggest_offer(&suggest, known[i]);
        }
        if (is_known)
            continue;
        return suggest.best
                   ? pipeline_refuse(in, pipeline_path(in, path, name),
                                     "unknown key '%.40s'; did you mean '%s'?", name, suggest.best)
                   : pipeline_refuse(in, pipeline_path(in, path, name), "unknown key '%.40s'",
                                     name);
    }
    return 0;
}

const char *pipeline_scalar(struct arena *arena, const json_t *value)
{
    char number[32];

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_number(value))
        return NULL;
    if (json_is_real(value))
        (void)snprintf(number, sizeof(number), "%.15g", json_real_value(value));
    else
        (void)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
    return arena_strdup(arena, number);
}

int pipeline_check_name(const struct pipeline_reader *in, const char *path, const char *name,
                        size_t max)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len && len <= max; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_'
            && (name[i] != '-' || i == 0 || i == len - 1))
            len = 0;
    if (len > 0 && len <= max)
        return 0;
    return pipeline_refuse(in, path,
                           "name '%.50s' must have 1 to %zu letters, digits and '_', and inside it "
                           "also '-'",
                           name, max);
}

/* ---- parameters ---- */

static const char *const pipeline_types[] = { "string", "integer", "number", "boolean" };

/* An index of pipeline_types; -1 = there is no such type. */
static int pipeline_find_type(const char *name)
{
    for (int i = 0; i < (int)AQ_COUNT(pipeline_types); i++)
        if (strcmp(pipeline_types[i], name) == 0)
            return i;
    return -1;
}

static bool pipeline_is_of_type(const char *value, const char *type)
{
    char *end;

    if (strcmp(type, "boolean") == 0)
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    if (strcmp(type, "string") == 0)
        return true;
    errno = 0;
    if (strcmp(type, "integer") == 0)
        (void)strtoll(value, &end, 10);
    else
        (void)strtod(value, &end);
    return *value && !*end && !errno && !isspace((unsigned char)*value);
}

/* The type of a parameter's definition, which is a mapping or just its default. */
static const char *pipeline_type_of(const json_t *definition)
{
    const char *type = json_string_value(json_object_get(definition, "type"));

    return type ? type : "string";
}

static const json_t *pipeline_default_of(const json_t *definition)
{
    return json_is_object(definition) ? json_object_get(definition, "default") : definition;
}

static int pipeline_check_parameter(const struct pipeline_reader *in, const char *path,
                                    const char *name, const json_t *definition)
{
    static const char *const known[] = { "default", "type", "description", NULL };
    const json_t *value = pipeline_default_of(definition);
    const char *type = pipeline_type_of(definition), *text;
    int r = pipeline_check_name(in, path, name, PIPELINE_TASK_NAME_MAX);

    if (r == 0 && json_is_object(definition))
        r = pipeline_check_keys(in, definition, path, known);
    if (r < 0)
        return r;
    if (pipeline_find_type(type) < 0)
        return pipeline_refuse(in, pipeline_path(in, path, "type"),
                               "type '%.40s' of parameter '%s' must be string, integer, number or "
                               "boolean",
                               type, name);
    if (!value)
        return 0;
    text = pipeline_scalar(&in->p->arena, value);
    if (!text || !pipeline_is_of_type(text, type))
        return pipeline_refuse(in, path, "default of parameter '%s' must be of type %s", name,
                               type);
    return 0;
}

static int pipeline_check_parameters(const struct pipeline_reader *in)
{
    const json_t *all = in->p->parameters, *definition;
    const char *name;
    int r = 0;

    if (all && !json_is_object(all))
        return pipeline_refuse(in, "parameters", "'parameters' must be a mapping");
    json_object_foreach((json_t *)(uintptr_t)all, name, definition)
        if ((r = pipeline_check_parameter(in, pipeline_path(in, "parameters", name), name,
                                          definition))
            < 0)
            return r;
    return 0;
}

static int pipeline_fail_parameter(const struct pipeline *p, const char *name, struct aq_error *err)
{
    struct suggest suggest = suggest_for(name, strlen(name));
    const json_t *definition;
    const char *known;

    json_object_foreach((json_t *)(uintptr_t)p->parameters, known, definition)
        suggest_offer(&suggest, known);
    return suggest.best
               ? aq_fail_field(err, EINVAL, name,
                               "pipeline '%s' has no parameter '%.40s'; did you mean '%s'?",
                               p->name, name, suggest.best)
               : aq_fail_field(err, EINVAL, name, "pipeline '%s' has no parameter '%.40s'", p->name,
                               name);
}

json_t *pipeline_bind(const struct pipeline *p, const json_t *given, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    json_auto_t *bound = json_object();
    const json_t *definition, *value;
    const char *name, *text;
    size_t bytes = 0;

    json_object_foreach((json_t *)(uintptr_t)given, name, value)
        if (!json_object_get(p->parameters, name)) {
            (void)pipeline_fail_parameter(p, name, err);
            return NULL;
        }
    json_object_foreach((json_t *)(uintptr_t)p->parameters, name, definition) {
        value = json_object_get(given, name);
        text = pipeline_scalar(&arena, value ? value : pipeline_default_of(definition));
        if (!text)
            (void)aq_fail_field(err, EINVAL, name,
                                "parameter '%s' has no default; give it by -p %s=VALUE", name,
                                name);
        else if (!pipeline_is_of_type(text, pipeline_type_of(definition)))
            (void)aq_fail_field(err, EINVAL, name,
                                "value '%.40s' of parameter '%s' is not of type %s", text, name,
                                pipeline_type_of(definition));
        else if (strlen(text) > PIPELINE_VALUE_MAX)
            (void)aq_fail_field(err, EINVAL, name, "value of parameter '%s' has more than %d KiB",
                                name, PIPELINE_VALUE_MAX >> 10);
        else if ((bytes += strlen(name) + strlen(text)) > PIPELINE_BYTES_MAX)
            (void)aq_fail_field(err, EINVAL, name,
                                "with parameter '%s' the parameters have more than %d KiB", name,
                                PIPELINE_BYTES_MAX >> 10);
        else {
            (void)json_object_set_new(bound, name, json_string(text));
            continue;
        }
        return NULL;
    }
    return AQ_TAKE(bound);
}

void pipeline_write_parameters(const struct pipeline *p, struct jsonw *w)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const json_t *definition;
    const char *name;

    jsonw_array_begin(w);
    json_object_foreach((json_t *)(uintptr_t)p->parameters, name, definition) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "name", name);
        jsonw_member_str(w, "type", pipeline_type_of(definition));
        jsonw_member_str(w, "default", pipeline_scalar(&arena, pipeline_default_of(definition)));
        jsonw_member_str(w, "description",
                         json_string_value(json_object_get(definition, "description")));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* ---- all ---- */

/* Texts that are too long, wherever they are. */
static int pipeline_check_sizes(const struct pipeline_reader *in, const json_t *value,
                                const char *path)
{
    const json_t *member;
    const char *name;
    char number[24];
    size_t i;
    int r = 0;

    if (json_string_length(value) > PIPELINE_VALUE_MAX)
        return pipeline_refuse(in, path, "'%.60s' has %zu bytes; at most %d are allowed", path,
                               json_string_length(value), PIPELINE_VALUE_MAX);
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
        if (r == 0 && (json_string_length(member) > PIPELINE_VALUE_MAX || !json_is_string(member)))
            r = pipeline_check_sizes(in, member, pipeline_path(in, path, name));
    json_array_foreach(value, i, member) {
        (void)snprintf(number, sizeof(number), "%zu", i);
        if (r == 0 && (json_string_length(member) > PIPELINE_VALUE_MAX || !json_is_string(member)))
            r = pipeline_check_sizes(in, member, pipeline_path(in, path, number));
    }
    return r;
}

static int pipeline_read_head(const struct pipeline_reader *in)
{
    static const char *const known[] = { "name",     "description",  "parameters",
                                         "defaults", "max_parallel", "folder",
                                         "triggers", "tasks",        NULL };
    struct pipeline *p = in->p;
    const json_t *max_parallel = json_object_get(p->root, "max_parallel");
    const json_t *folder = json_object_get(p->root, "folder");
    int r;

    if (!json_is_object(p->root))
        return pipeline_refuse(in, "", "a pipeline must be a mapping");
    if ((r = pipeline_check_sizes(in, p->root, "")) < 0
        || (r = pipeline_check_keys(in, p->root, "", known)) < 0)
        return r;
    if (!(p->name = json_string_value(json_object_get(p->root, "name"))))
        return pipeline_refuse(in, "name", "'name' is missing, or not a text");
    if ((r = pipeline_check_name(in, "name", p->name, PIPELINE_NAME_MAX)) < 0)
        return r;
    if (max_parallel && (!json_is_integer(max_parallel) || json_integer_value(max_parallel) < 1))
        return pipeline_refuse(in, "max_parallel", "'max_parallel' must be a positive integer");
    p->max_parallel = json_integer_value(max_parallel);
    if (folder && !(p->folder = json_string_value(folder)))
        return pipeline_refuse(in, "folder", "'folder' must be the name of a folder");
    p->parameters = json_object_get(p->root, "parameters");
    if ((r = pipeline_check_parameters(in)) < 0 || (r = pipeline_read_triggers(in)) < 0)
        return r;
    return pipeline_check_defaults(in);
}

/* Lay the task's members over the defaults; mappings member by member. */
static json_t *pipeline_inherit(const json_t *defaults, const json_t *task)
{
    json_t *all = defaults ? json_copy((json_t *)(uintptr_t)defaults) : json_object();
    const json_t *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)task, name, value) {
        json_t *inherited = json_object_get(all, name);
        json_t *merged = json_is_object(inherited) && json_is_object(value)
                             ? json_copy(inherited)
                             : json_incref((json_t *)(uintptr_t)value);

        if (merged != value)
            (void)json_object_update(merged, (json_t *)(uintptr_t)value);
        (void)json_object_set_new(all, name, merged);
    }
    return all;
}

static int pipeline_read_tasks(const struct pipeline_reader *in)
{
    struct pipeline *p = in->p;
    json_t *tasks = json_object_get(p->root, "tasks"), *task, *whole;
    const char *name;
    void *next;
    int r = 0;

    if (!json_is_object(tasks) || json_object_size(tasks) == 0)
        return pipeline_refuse(in, "tasks", "'tasks' must be a mapping of one task or more");
    if (json_object_size(tasks) > PIPELINE_TASKS_MAX)
        return pipeline_refuse(in, "tasks", "'tasks' has %zu tasks; at most %d are allowed",
                               json_object_size(tasks), PIPELINE_TASKS_MAX);
    p->tasks = arena_array(&p->arena, json_object_size(tasks), sizeof(*p->tasks));
    json_object_foreach_safe(tasks, next, name, task)
    {
        const char *path = pipeline_path(in, "tasks", name);

        if ((r = pipeline_check_name(in, path, name, PIPELINE_TASK_NAME_MAX)) < 0)
            return r;
        p->tasks[p->task_count].name = name;
        if (!json_is_object(task))
            return pipeline_refuse(in, path, "task '%s' must be a mapping", name);
        whole = pipeline_inherit(json_object_get(p->root, "defaults"), task);
        (void)json_object_set_new(tasks, name, whole); /* the key stays where it is */
        if ((r = pipeline_read_task(in, whole, path, &p->tasks[p->task_count++])) < 0)
            return r;
    }
    return 0;
}

int pipeline_parse(const char *text, size_t len, struct pipeline **ret, struct aq_error *err)
{
    static const struct yaml_rules rules = { PIPELINE_DEPTH_MAX, PIPELINE_VALUES_MAX, true };
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = aq_alloc(sizeof(*p));
    struct pipeline_reader in = { text, len, p, err };
    int r;

    if (len > PIPELINE_BYTES_MAX)
        return aq_fail(err, EINVAL, "the file has %zu bytes; at most %d are allowed", len,
                       PIPELINE_BYTES_MAX);
    if (!(p->root = yaml_load_text(text, len, &rules, err)))
        return -err->code;
    if ((r = pipeline_read_head(&in)) < 0 || (r = pipeline_read_tasks(&in)) < 0
        || (r = pipeline_expand(&in)) < 0)
        return r;
    for (size_t i = 0; i < p->task_count && r == 0; i++)
        r = pipeline_check_expressions(&in, &p->tasks[i]);
    if (r == 0)
        *ret = AQ_TAKE(p);
    return r;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    json_decref(p->root);
    arena_done(&p->arena);
    free(p);
}
