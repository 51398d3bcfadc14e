/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_task.c - what a task may say: keys, forms and bounds */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/name_values.h"
#include "pipeline/pipeline_internal.h"

#define TASK_MEMBERS_MAX 256 /* of env, resources and mounts each */

/* clang-format off */
#define TASK_INHERITED "image", "resources", "env", "mounts", "cluster_size", "priority", \
                       "resource_group", "shmem", "timeout", "retry"
/* clang-format on */

static const char *const task_keys[] = { "needs",   "matrix",       "when", "command",
                                         "outputs", TASK_INHERITED, NULL };
static const char *const task_default_keys[] = { TASK_INHERITED, NULL };

/* ---- members of one kind ---- */

static int task_check_text(const struct pipeline_reader *in, const json_t *object, const char *path,
                           const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_string_length(value) > 0)
        return 0;
    return pipeline_refuse(in, pipeline_path(in, path, key),
                           "'%s' must be a text that is not empty", key);
}

static int task_check_integer(const struct pipeline_reader *in, const json_t *object,
                              const char *path, const char *key, int min, int max)
{
    const json_t *value = json_object_get(object, key);

    if (!value
        || (json_is_integer(value) && json_integer_value(value) >= min
            && json_integer_value(value) <= max))
        return 0;
    return pipeline_refuse(in, pipeline_path(in, path, key),
                           "'%s' must be an integer from %d to %d", key, min, max);
}

/* A mapping of names to texts or numbers. */
static int task_check_mapping(const struct pipeline_reader *in, const json_t *object,
                              const char *path, const char *key)
{
    const json_t *all = json_object_get(object, key), *value;
    const char *name;

    path = pipeline_path(in, path, key);
    if (all && (!json_is_object(all) || json_object_size(all) > TASK_MEMBERS_MAX))
        return pipeline_refuse(in, path, "'%s' must be a mapping of at most %d members", key,
                               TASK_MEMBERS_MAX);
    json_object_foreach((json_t *)(uintptr_t)all, name, value)
        if (!pipeline_scalar(&in->p->arena, value))
            return pipeline_refuse(in, pipeline_path(in, path, name),
                                   "'%.40s' must be a text or a number", name);
    return 0;
}

/* Amounts without an expression begin with a digit; the manager knows the slots and their units. */
static int task_check_resources(const struct pipeline_reader *in, const json_t *object,
                                const char *path)
{
    const json_t *value;
    const char *name;
    int r = task_check_mapping(in, object, path, "resources");

    json_object_foreach(json_object_get(object, "resources"), name, value) {
        const char *text = pipeline_scalar(&in->p->arena, value);

        if (r == 0 && text && !strstr(text, "${{") && !isdigit((unsigned char)*text)
            && *text != '.')
            r = pipeline_refuse(in, pipeline_path(in, pipeline_path(in, path, "resources"), name),
                                "'%.40s' is not an amount of %.40s; expected a number or a size, "
                                "such as 2, 0.5 or 512m",
                                text, name);
    }
    return r;
}

static bool task_is_variable(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

static int task_check_env(const struct pipeline_reader *in, const json_t *object, const char *path)
{
    const json_t *value;
    const char *name;
    int r = task_check_mapping(in, object, path, "env");

    json_object_foreach(json_object_get(object, "env"), name, value)
        if (r == 0 && !task_is_variable(name))
            r = pipeline_refuse(in, pipeline_path(in, pipeline_path(in, path, "env"), name),
                                "'%.40s' is not a valid name of a variable; use letters, digits "
                                "and '_'",
                                name);
    return r;
}

/* A list of texts; 'path' is the list's. */
static int task_check_list(const struct pipeline_reader *in, const json_t *list, const char *path)
{
    const json_t *item;
    char number[24];
    size_t i;

    if (list && (!json_is_array(list) || json_array_size(list) > TASK_MEMBERS_MAX))
        return pipeline_refuse(in, path, "'%s' must be a list of at most %d texts", path,
                               TASK_MEMBERS_MAX);
    json_array_foreach(list, i, item)
        if (json_string_length(item) == 0) {
            (void)snprintf(number, sizeof(number), "%zu", i);
            return pipeline_refuse(in, pipeline_path(in, path, number),
                                   "'%s' must be a list of texts that are not empty", path);
        }
    return 0;
}

static int task_check_mounts(const struct pipeline_reader *in, const json_t *object,
                             const char *path)
{
    return task_check_list(in, json_object_get(object, "mounts"),
                           pipeline_path(in, path, "mounts"));
}

static int task_read_timeout(const struct pipeline_reader *in, const json_t *object,
                             const char *path, int64_t *ret_usec)
{
    const json_t *value = json_object_get(object, "timeout");
    const char *text = value ? pipeline_scalar(&in->p->arena, value) : NULL;

    if (!value || (text && clock_parse_duration(text, ret_usec) == 0 && *ret_usec >= USEC_PER_SEC))
        return 0;
    return pipeline_refuse(in, pipeline_path(in, path, "timeout"),
                           "'timeout' must be a duration of a second or more, such as 90s or 1h");
}

/* What tasks and the defaults have in common. */
static int task_read_inherited(const struct pipeline_reader *in, const json_t *object,
                               const char *path, int64_t *ret_timeout_usec)
{
    int r;

    if ((r = task_check_text(in, object, path, "image")) < 0
        || (r = task_check_text(in, object, path, "resource_group")) < 0
        || (r = task_check_resources(in, object, path)) < 0
        || (r = task_check_env(in, object, path)) < 0
        || (r = task_check_mounts(in, object, path)) < 0
        || (r = task_check_integer(in, object, path, "cluster_size", 1, 1000)) < 0
        || (r = task_check_integer(in, object, path, "priority", 0, 100)) < 0
        || (r = task_check_integer(in, object, path, "retry", 0, PIPELINE_RETRY_MAX)) < 0
        || (r = task_read_timeout(in, object, path, ret_timeout_usec)) < 0)
        return r;
    if (json_object_get(object, "shmem")
        && !pipeline_scalar(&in->p->arena, json_object_get(object, "shmem")))
        return pipeline_refuse(in, pipeline_path(in, path, "shmem"),
                               "'shmem' must be a size, such as 64m");
    return 0;
}

int pipeline_check_defaults(const struct pipeline_reader *in)
{
    const json_t *defaults = json_object_get(in->p->root, "defaults");
    int64_t timeout_usec;
    int r = pipeline_check_keys(in, defaults, "defaults", task_default_keys);

    return r < 0 || !defaults ? r : task_read_inherited(in, defaults, "defaults", &timeout_usec);
}

/* ---- those of tasks alone ---- */

static int task_check_matrix(const struct pipeline_reader *in, const json_t *matrix,
                             const char *path)
{
    const json_t *values, *value;
    const char *name, *values_path;
    char number[24];
    size_t i;
    int r;

    if (!json_is_object(matrix) || json_object_size(matrix) == 0)
        return pipeline_refuse(in, path, "'matrix' must be a mapping of names to lists of values");
    if (json_object_size(matrix) > PIPELINE_MATRIX_MAX)
        return pipeline_refuse(in, path, "'matrix' has %zu names; at most %d are allowed",
                               json_object_size(matrix), PIPELINE_MATRIX_MAX);
    json_object_foreach((json_t *)(uintptr_t)matrix, name, values) {
        values_path = pipeline_path(in, path, name);
        if ((r = pipeline_check_name(in, values_path, name, PIPELINE_TASK_NAME_MAX)) < 0)
            return r;
        if (!json_is_array(values) || json_array_size(values) == 0)
            return pipeline_refuse(in, values_path, "'%s' must be a list of values", name);
        json_array_foreach(values, i, value)
            if (!pipeline_scalar(&in->p->arena, value)) {
                (void)snprintf(number, sizeof(number), "%zu", i);
                return pipeline_refuse(in, pipeline_path(in, values_path, number),
                                       "a value of '%s' must be a text or a number", name);
            }
    }
    return 0;
}

static int task_check_outputs(const struct pipeline_reader *in, const json_t *list,
                              const char *path)
{
    const json_t *item;
    char number[24];
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > NAME_VALUES_MAX)
        return pipeline_refuse(in, path, "'outputs' must be a list of at most %d names",
                               NAME_VALUES_MAX);
    json_array_foreach(list, i, item) {
        const char *name = json_string_value(item);
        bool is_twice = false;

        (void)snprintf(number, sizeof(number), "%zu", i);
        if (!name || !name_values_is_name(name, strlen(name)))
            return pipeline_refuse(in, pipeline_path(in, path, number),
                                   "name '%.50s' of an output must have 1 to %d letters, digits, "
                                   "'_' and '-', and begin with a letter or '_'",
                                   name ? name : "", NAME_VALUES_NAME_MAX);
        for (size_t k = 0; k < i; k++)
            is_twice |= json_equal(item, json_array_get(list, k));
        if (is_twice)
            return pipeline_refuse(in, pipeline_path(in, path, number), "'outputs' has '%s' twice",
                                   name);
    }
    return 0;
}

int pipeline_read_task(const struct pipeline_reader *in, const json_t *object, const char *path,
                       struct pipeline_task *ret)
{
    const json_t *when = json_object_get(object, "when");
    int r;

    ret->definition = object;
    ret->matrix = json_object_get(object, "matrix");
    if ((r = pipeline_check_keys(in, object, path, task_keys)) < 0
        || (r = task_read_inherited(in, object, path, &ret->timeout_usec)) < 0
        || (r = task_check_text(in, object, path, "command")) < 0)
        return r;
    if (ret->matrix
        && (r = task_check_matrix(in, ret->matrix, pipeline_path(in, path, "matrix"))) < 0)
        return r;
    ret->outputs = json_object_get(object, "outputs");
    if (ret->outputs
        && (r = task_check_outputs(in, ret->outputs, pipeline_path(in, path, "outputs"))) < 0)
        return r;
    if (!json_object_get(object, "command"))
        return pipeline_refuse(in, path, "task '%s' has no command", ret->name);
    if (!json_object_get(object, "image"))
        return pipeline_refuse(in, path, "task '%s' has no image; set it here or under 'defaults'",
                               ret->name);
    ret->retry = (int)json_integer_value(json_object_get(object, "retry"));
    if (when && !(ret->when = pipeline_scalar(&in->p->arena, when)))
        return pipeline_refuse(in, pipeline_path(in, path, "when"), "'when' must be an expression");
    return 0;
}
