/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.c - triggers in a file */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/pipeline_internal.h"

/* A text that is one of the words, by default the first; NULL = refused. */
static const char *trigger_choose(const struct pipeline_reader *in, const json_t *object,
                                  const char *path, const char *key, const char *const *words,
                                  const char *described)
{
    const json_t *value = json_object_get(object, key);
    const char *text = value ? json_string_value(value) : words[0];

    for (size_t i = 0; text && words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return words[i];
    (void)pipeline_refuse(in, pipeline_path(in, path, key), "'%s' must be %s", key, described);
    return NULL;
}

/* A run by the trigger has all parameters. */
static int trigger_check_parameters(const struct pipeline_reader *in, const json_t *parameters,
                                    const char *path)
{
    struct aq_error err = { 0 };
    json_auto_t *bound = NULL;

    path = pipeline_path(in, path, "parameters");
    if (parameters && !json_is_object(parameters))
        return pipeline_refuse(in, path, "'parameters' must be a mapping");
    if ((bound = pipeline_bind(in->p, parameters, &err)))
        return 0;
    if (json_object_get(in->p->parameters, err.field) && !json_object_get(parameters, err.field))
        return pipeline_refuse(in, path,
                               "parameter '%.40s' has no default; give it under 'parameters' of "
                               "the trigger",
                               err.field);
    return pipeline_refuse(in, pipeline_path(in, path, err.field), "%s", err.text);
}

static int trigger_read_schedule(const struct pipeline_reader *in, const json_t *object,
                                 const char *path, struct pipeline_trigger *ret)
{
    static const char *const known[] = { "cron", "zone", "parameters", NULL };
    const json_t *zone = json_object_get(object, "zone");
    struct aq_error err = { 0 };
    int r = pipeline_check_keys(in, object, path, known);

    if (r < 0)
        return r;
    if (!(ret->cron = json_string_value(json_object_get(object, "cron"))))
        return pipeline_refuse(in, pipeline_path(in, path, "cron"),
                               "'cron' must be a schedule such as \"30 2 * * mon-fri\"");
    if (cron_parse(ret->cron, &ret->schedule, &err) < 0)
        return pipeline_refuse(in, pipeline_path(in, path, "cron"), "%s", err.text);
    ret->zone = zone ? json_string_value(zone) : "UTC";
    if (!ret->zone || time_zone_check_name(ret->zone, &err) < 0)
        return pipeline_refuse(in, pipeline_path(in, path, "zone"), "%s",
                               ret->zone ? err.text : "'zone' must be the name of a time zone");
    ret->parameters = json_object_get(object, "parameters");
    return trigger_check_parameters(in, ret->parameters, path);
}

static int trigger_read_after(const struct pipeline_reader *in, const json_t *object,
                              const char *path, struct pipeline_trigger *ret)
{
    static const char *const known[] = { "pipeline", "ends", "parameters", NULL };
    static const char *const ends[] = { "success", "failure", "any", NULL };
    const char *at = pipeline_path(in, path, "pipeline");
    int r = pipeline_check_keys(in, object, path, known);

    if (r < 0)
        return r;
    if (!(ret->after = json_string_value(json_object_get(object, "pipeline"))))
        return pipeline_refuse(in, at, "'pipeline' must be the name of a pipeline");
    if ((r = pipeline_check_name(in, at, ret->after, PIPELINE_NAME_MAX)) < 0)
        return r;
    if (strcmp(ret->after, in->p->name) == 0)
        return pipeline_refuse(in, at, "pipeline '%s' cannot be started by its own end",
                               in->p->name);
    if (!(ret->ends = trigger_choose(in, object, path, "ends", ends, "success, failure or any")))
        return -EINVAL;
    ret->parameters = json_object_get(object, "parameters");
    return trigger_check_parameters(in, ret->parameters, path);
}

/* A mapping, or a list of mappings, each of which 'read' takes. */
static int trigger_read_all(const struct pipeline_reader *in, const json_t *all, const char *key,
                            int (*read)(const struct pipeline_reader *in, const json_t *object,
                                        const char *path, struct pipeline_trigger *ret))
{
    const char *path = pipeline_path(in, "triggers", key);
    const json_t *value = json_object_get(all, key);
    size_t count = json_is_array(value) ? json_array_size(value) : value != NULL;
    struct pipeline *p = in->p;
    int r = 0;

    if (p->trigger_count + count > PIPELINE_TRIGGERS_MAX)
        return pipeline_refuse(in, path, "a pipeline has at most %d triggers",
                               PIPELINE_TRIGGERS_MAX);
    for (size_t i = 0; i < count && r == 0; i++) {
        const json_t *object = json_is_array(value) ? json_array_get(value, i) : value;
        const char *at = path;
        char number[24];

        (void)snprintf(number, sizeof(number), "%zu", i);
        if (json_is_array(value))
            at = pipeline_path(in, path, number);
        if (!json_is_object(object))
            return pipeline_refuse(in, at, "'%s' must be a mapping, or a list of mappings", key);
        r = read(in, object, at, &p->triggers[p->trigger_count++]);
    }
    return r;
}

int pipeline_read_triggers(const struct pipeline_reader *in)
{
    static const char *const known[] = { "schedule", "after", "overlap", "missed", NULL };
    static const char *const overlaps[] = { "skip", "allow", "cancel", NULL };
    static const char *const missed[] = { "run-once", "skip", NULL };
    struct pipeline *p = in->p;
    const json_t *all = json_object_get(p->root, "triggers");
    int r = pipeline_check_keys(in, all, "triggers", known);

    if (r < 0)
        return r;
    p->triggers = arena_array(&p->arena, PIPELINE_TRIGGERS_MAX, sizeof(*p->triggers));
    if (!(p->overlap = trigger_choose(in, all, "triggers", "overlap", overlaps,
                                      "skip, allow or cancel"))
        || !(p->missed = trigger_choose(in, all, "triggers", "missed", missed, "run-once or skip")))
        return -EINVAL;
    if ((r = trigger_read_all(in, all, "schedule", trigger_read_schedule)) < 0
        || (r = trigger_read_all(in, all, "after", trigger_read_after)) < 0)
        return r;
    if (all && p->trigger_count == 0)
        return pipeline_refuse(in, "triggers", "'triggers' must have 'schedule' or 'after'");
    return 0;
}

int pipeline_check_zones(const struct pipeline *p, const char *text, size_t len,
                         struct aq_error *err)
{
    const json_t *schedules = json_object_get(json_object_get(p->root, "triggers"), "schedule");

    for (size_t i = 0; i < p->trigger_count; i++) {
        AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
        struct pipeline_reader in = { text, len, NULL, err };
        struct aq_error why = { 0 };
        char path[48] = "triggers.schedule.zone";

        if (!p->triggers[i].zone || time_zone_open(p->triggers[i].zone, &zone, &why) == 0)
            continue;
        if (json_is_array(schedules))
            (void)snprintf(path, sizeof(path), "triggers.schedule.%zu.zone", i);
        return pipeline_refuse(&in, path, "%s", why.text);
    }
    return 0;
}
