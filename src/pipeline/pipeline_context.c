/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_context.c - what references in ${{ ... }} mean: when a file is checked, and in a run */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "pipeline/expression.h"
#include "pipeline/pipeline_internal.h"

/* ---- references ---- */

/* What follows "PREFIX." in a reference; NULL = it begins otherwise. */
static const char *context_behind(const char *reference, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(reference, prefix, len) == 0 && reference[len] == '.' ? reference + len + 1
                                                                         : NULL;
}

/* The end of "tasks.prepare.outputs.count". */
static int context_check_output(const struct pipeline_task *of, const char *name,
                                struct aq_error *err)
{
    struct suggest suggest = suggest_for(name, strlen(name));
    const json_t *item;
    size_t i;

    json_array_foreach(of->outputs, i, item) {
        if (strcmp(json_string_value(item), name) == 0)
            return 0;
        suggest_offer(&suggest, json_string_value(item));
    }
    return suggest.best ? aq_fail(err, EINVAL,
                                  "'outputs' of task '%s' does not list '%.60s'; did you mean "
                                  "'%s'?",
                                  of->name, name, suggest.best)
                        : aq_fail(err, EINVAL, "'outputs' of task '%s' does not list '%.60s'",
                                  of->name, name);
}

/* The task of "prepare.state" or "prepare.outputs.count", which 'task' needs. *ret_output = NULL for
 * the former.
 */
static int context_find_task(const struct pipeline *p, const struct pipeline_task *task,
                             const char *rest, size_t *ret, const char **ret_output,
                             struct aq_error *err)
{
    const char *dot = strchr(rest, '.');
    size_t len = dot ? (size_t)(dot - rest) : strlen(rest);

    *ret_output = dot ? context_behind(dot + 1, "outputs") : NULL;
    if (!dot || (strcmp(dot, ".state") != 0 && !*ret_output))
        return aq_fail(err, EINVAL, "'tasks.%.60s' must end in .state or .outputs.NAME", rest);
    for (size_t i = 0; i < task->need_count; i++) {
        const struct pipeline_task *needed = &p->tasks[task->needs[i]];

        if (strncmp(needed->name, rest, len) != 0 || needed->name[len])
            continue;
        *ret = task->needs[i];
        return *ret_output ? context_check_output(needed, *ret_output, err) : 0;
    }
    return aq_fail(err, EINVAL, "'tasks.%.60s' refers to a task that '%s' does not list in 'needs'",
                   rest, task->name);
}

/* struct expression_names.find of a run. */
static const char *context_find(void *data, const char *reference, struct aq_error *err)
{
    const struct pipeline_context *c = data;
    const struct pipeline_node *node = &c->pipeline->nodes[c->node];
    const struct pipeline_task *task = &c->pipeline->tasks[node->task];
    const char *rest, *output, *value = NULL;
    size_t needed = 0;

    if (strcmp(reference, "always") == 0)
        return "true";
    if (strcmp(reference, "success") == 0)
        return c->outcome == PIPELINE_SUCCESS ? "true" : "false";
    if (strcmp(reference, "failure") == 0)
        return c->outcome == PIPELINE_FAILURE ? "true" : "false";
    if (strcmp(reference, "run.name") == 0)
        return c->run;
    if (strcmp(reference, "task.name") == 0)
        return node->name;
    if ((rest = context_behind(reference, "parameters"))
        && (value = json_string_value(json_object_get(c->parameters, rest))))
        return value;
    if ((rest = context_behind(reference, "matrix"))
        && (value = json_string_value(json_object_get(node->matrix, rest))))
        return value;
    if ((rest = context_behind(reference, "tasks"))) {
        if (context_find_task(c->pipeline, task, rest, &needed, &output, err) < 0)
            return NULL;
        if (output)
            return c->find_output ? c->find_output(c->data, needed, output) : "";
        return c->find_state ? c->find_state(c->data, needed) : "";
    }
    (void)aq_fail(err, EINVAL,
                  "'%.60s' does not exist; there are parameters.NAME, matrix.NAME, "
                  "tasks.NAME.state, tasks.NAME.outputs.NAME, run.name, task.name, always, "
                  "success and failure",
                  reference);
    return NULL;
}

int pipeline_fill(const struct pipeline_context *context, const char *text, struct strbuf *out,
                  struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct expression_names names = { context_find, (void *)(uintptr_t)context };

    return expression_substitute(text, &names, &arena, out, err);
}

int pipeline_decide(const struct pipeline_context *context, bool *ret, struct aq_error *err)
{
    const struct pipeline *p = context->pipeline;
    const struct pipeline_task *task = &p->tasks[p->nodes[context->node].task];
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct expression_names names = { context_find, (void *)(uintptr_t)context };
    const char *value, *text = task->when;
    size_t len = text ? strlen(text) : 0;
    int r;

    *ret = context->outcome == PIPELINE_SUCCESS;
    if (!text || (!task->waits && !*ret))
        return 0;
    expression_strip(&text, &len);
    r = expression_evaluate(text, len, &names, &arena, &value, err);
    *ret = r == 0 && expression_is_true(value);
    return r;
}

void pipeline_describe_inputs(const struct pipeline_context *context, struct strbuf *out)
{
    const struct pipeline *p = context->pipeline;
    const struct pipeline_task *task = &p->tasks[p->nodes[context->node].task];

    for (size_t i = 0; i < task->input_count; i++) {
        const struct pipeline_input *input = &task->inputs[i];
        const char *value = context->find_output(context->data, input->task, input->name);

        strbuf_addf(out, "%s.%s=%zu:%s\n", p->tasks[input->task].name, input->name, strlen(value),
                    value);
    }
}

/* ---- checking a file ---- */

struct context_check {
    struct pipeline_context context;
    struct pipeline *pipeline;
    struct pipeline_task *task;
    size_t references;
    bool is_when;
};

/* One that does not exist is refused later. */
static void context_note_input(struct context_check *check, const char *rest)
{
    struct pipeline *p = check->pipeline;
    struct pipeline_task *task = check->task;
    struct pipeline_input input = { 0 };
    const char *output;

    if (context_find_task(p, task, rest, &input.task, &output, NULL) < 0 || !output)
        return;
    for (size_t i = 0; i < task->input_count; i++)
        if (task->inputs[i].task == input.task && strcmp(task->inputs[i].name, output) == 0)
            return;
    input.name = arena_strdup(&p->arena, output);
    (void)arena_append(&p->arena, &task->inputs, &task->input_count, &input, sizeof(input));
}

/* struct expression_names.find of a file: of a run whose parameters are missing. */
static const char *context_check(void *data, const char *reference, struct aq_error *err)
{
    struct context_check *check = data;
    const char *rest;

    if (++check->references > PIPELINE_REFERENCES_MAX) {
        (void)aq_fail(err, EINVAL, "task '%s' has more than %d references in its expressions",
                      check->task->name, PIPELINE_REFERENCES_MAX);
        return NULL;
    }
    if ((rest = context_behind(reference, "parameters"))
        && json_object_get(check->context.pipeline->parameters, rest))
        return "";
    if (strcmp(reference, "always") == 0 || strcmp(reference, "failure") == 0
        || strcmp(reference, "success") == 0)
        check->task->waits |= check->is_when;
    if ((rest = context_behind(reference, "tasks")) && !check->is_when)
        context_note_input(check, rest);
    return context_find(&check->context, reference, err);
}

static int context_check_text(const struct pipeline_reader *in, struct context_check *check,
                              const char *text, const char *path)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf filled = STRBUF_INIT;
    struct expression_names names = { context_check, check };
    struct aq_error why = { 0 };
    const char *value;
    size_t len = strlen(text);
    int r;

    if (check->is_when) {
        expression_strip(&text, &len);
        r = expression_evaluate(text, len, &names, &arena, &value, &why);
    } else {
        r = expression_substitute(text, &names, &arena, &filled, &why);
    }
    return r < 0 ? pipeline_refuse(in, path, "%s", why.text) : 0;
}

/* Texts below a member, wherever they are. */
static int context_check_value(const struct pipeline_reader *in, struct context_check *check,
                               const json_t *value, const char *path)
{
    const json_t *member;
    const char *name;
    char number[24];
    size_t i;
    int r = 0;

    if (json_is_string(value))
        return strstr(json_string_value(value), "${{") || check->is_when
                   ? context_check_text(in, check, json_string_value(value), path)
                   : 0;
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
        if (r == 0)
            r = context_check_value(in, check, member, pipeline_path(in, path, name));
    json_array_foreach(value, i, member) {
        (void)snprintf(number, sizeof(number), "%zu", i);
        if (r == 0)
            r = context_check_value(in, check, member, pipeline_path(in, path, number));
    }
    return r;
}

/* Members in which ${{ ... }} is replaced. */
static bool context_is_filled(const char *key)
{
    static const char *const keys[] = { "command", "image",          "resources", "env",
                                        "mounts",  "resource_group", "shmem",     "when" };

    for (size_t i = 0; i < AQ_COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

int pipeline_check_expressions(const struct pipeline_reader *in, struct pipeline_task *task)
{
    struct context_check check = {
        .context = { .pipeline = in->p, .node = task->node, .run = "" },
        .pipeline = in->p,
        .task = task,
    };
    const char *path = pipeline_path(in, "tasks", task->name), *key;
    const json_t *value;
    int r;

    json_object_foreach((json_t *)(uintptr_t)task->definition, key, value) {
        check.is_when = strcmp(key, "when") == 0;
        if (context_is_filled(key)
            && (r = context_check_value(in, &check, value, pipeline_path(in, path, key))) < 0)
            return r;
    }
    return 0;
}

/* ---- what a node does ---- */

/* struct expression_names.find that notes references whose values are known before a run. */
static const char *context_collect(void *data, const char *reference, struct aq_error *err)
{
    struct pipeline_identifier *of = data;

    (void)err;
    if (context_behind(reference, "tasks") || context_behind(reference, "run"))
        return "";
    reference = arena_strdup(&of->arena, reference);
    (void)arena_append(&of->arena, &of->references, &of->reference_count, &reference,
                       sizeof(reference));
    return "";
}

static void context_collect_value(struct pipeline_identifier *of, const json_t *value)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf filled = STRBUF_INIT;
    struct expression_names names = { context_collect, of };
    const json_t *member;
    const char *name;
    size_t i;

    if (json_is_string(value))
        (void)expression_substitute(json_string_value(value), &names, &arena, &filled, NULL);
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
        context_collect_value(of, member);
    json_array_foreach(value, i, member)
        context_collect_value(of, member);
}

/* What the nodes of a task have in common. */
static void context_begin_task(struct pipeline_identifier *of, const struct pipeline *p,
                               const struct pipeline_task *task)
{
    static const char *const left_out[] = { "needs", "matrix",  "when",
                                            "retry", "timeout", "priority" };
    json_auto_t *definition = json_copy((json_t *)(uintptr_t)task->definition);
    AQ_CLEANUP(aq_freep) char *text = NULL, *all = NULL;

    pipeline_identifier_done(of);
    of->task = task;
    for (size_t i = 0; i < AQ_COUNT(left_out); i++)
        (void)json_object_del(definition, left_out[i]);
    text = json_dumps(definition, JSON_COMPACT | JSON_SORT_KEYS);
    all = aq_format("%s %s %s\n", task->name, p->folder ? p->folder : "", text);
    of->text = arena_strdup(&of->arena, all);
    context_collect_value(of, definition);
}

void pipeline_identifier_done(struct pipeline_identifier *of)
{
    arena_done(&of->arena);
    *of = (struct pipeline_identifier){ .arena = ARENA_INIT };
}

void pipeline_identify(struct pipeline_identifier *of, const struct pipeline *p, size_t node,
                       const json_t *parameters, struct strbuf *out)
{
    const struct pipeline_task *task = &p->tasks[p->nodes[node].task];
    struct pipeline_context context = {
        .pipeline = p, .node = node, .parameters = parameters, .run = ""
    };
    AQ_CLEANUP(aq_freep) char *matrix = NULL;

    if (of->task != task)
        context_begin_task(of, p, task);
    strbuf_adds(out, of->text);
    for (size_t i = 0; i < of->reference_count && out->len <= PIPELINE_NODES_BYTES_MAX; i++) {
        const char *value = context_find(&context, of->references[i], NULL);

        if (value)
            strbuf_addf(out, "%s=%zu:%s\n", of->references[i], strlen(value), value);
    }
    if (!p->nodes[node].matrix)
        return;
    matrix = json_dumps(p->nodes[node].matrix, JSON_COMPACT | JSON_SORT_KEYS);
    strbuf_addf(out, "%s\n", matrix);
}
