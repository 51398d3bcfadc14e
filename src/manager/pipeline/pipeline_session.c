/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_session.c - the session of a task: its request, and the transaction that makes it */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/folder/folder.h"
#include "manager/image/image.h"
#include "manager/pipeline/pipeline_identity.h"
#include "manager/pipeline/pipeline_step.h"
#include "manager/rules/folder_mount.h"
#include "manager/session/session.h"

#define SESSION_FOLDER "/pipeline"             /* where a run's folder is */
#define PIPELINE_SESSION_BYTES_MAX (256 << 10) /* more than command and variables may have */

/* What the request of a session is made of, while it is made. */
struct pipeline_order {
    const struct pipeline_context *context;
    const json_t *definition;
    struct arena *arena;
    size_t bytes; /* of its texts so far */
    struct aq_error *err;
};

/* A member with all values; NULL if it is missing, or with the error. */
static const char *pipeline_session_fill(struct pipeline_order *order, const json_t *value)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (json_is_integer(value))
        strbuf_addi(&out, json_integer_value(value));
    else if (json_is_boolean(value))
        strbuf_adds(&out, json_is_true(value) ? "true" : "false");
    else if (!json_is_string(value)
             || pipeline_fill(order->context, json_string_value(value), &out, order->err) < 0)
        return NULL;
    order->bytes += out.len;
    if (order->bytes > PIPELINE_SESSION_BYTES_MAX) {
        (void)aq_fail(order->err, E2BIG,
                      "the texts of the task have more than %d KiB with all values; hand on large "
                      "values by a folder",
                      PIPELINE_SESSION_BYTES_MAX >> 10);
        return NULL;
    }
    return arena_strdup(order->arena, out.data);
}

static const char *pipeline_session_text(struct pipeline_order *order, const char *key)
{
    return pipeline_session_fill(order, json_object_get(order->definition, key));
}

static int pipeline_session_resources(const struct api *api, struct pipeline_order *order,
                                      struct slots *ret)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_ref(
        core_slot_types(api->core));
    json_auto_t *filled = json_object();
    const json_t *value;
    const char *name, *text;

    json_object_foreach(json_object_get(order->definition, "resources"), name, value) {
        if (!(text = pipeline_session_fill(order, value)))
            return -EINVAL;
        (void)json_object_set_new(filled, name, json_string(text));
    }
    return slots_from_json(filled, types, ret, order->err);
}

/* Variables of the task, and those that say which task it is. */
static int pipeline_session_environ(const struct pipeline_run *run, struct pipeline_order *order,
                                    const struct pipeline_start *start, struct pair_list *ret)
{
    const json_t *env = json_object_get(order->definition, "env"), *value;
    struct text_pair *items = arena_array(order->arena, json_object_size(env) + 4, sizeof(*items));
    AQ_CLEANUP(aq_freep) char *attempt = aq_format("%lld", (long long)start->attempt);
    AQ_CLEANUP(aq_freep) char *folder = aq_format(SESSION_FOLDER "/%s", start->task->name);
    const char *name, *text;
    size_t count = 0;

    items[count++] = (struct text_pair){ "ALIQUOT_PIPELINE_RUN", run->name };
    items[count++] = (struct text_pair){ "ALIQUOT_PIPELINE_TASK", start->task->name };
    items[count++] = (struct text_pair){ "ALIQUOT_PIPELINE_ATTEMPT",
                                         arena_strdup(order->arena, attempt) };
    if (run->file->folder)
        items[count++] = (struct text_pair){ "ALIQUOT_PIPELINE_FOLDER",
                                             arena_strdup(order->arena, folder) };
    json_object_foreach((json_t *)(uintptr_t)env, name, value) {
        if (!(text = pipeline_session_fill(order, value)))
            return -EINVAL;
        items[count++] = (struct text_pair){ name, text };
    }
    *ret = (struct pair_list){ items, count };
    return 0;
}

/* "FOLDER" and "FOLDER:TARGET", and the folder of the run. */
static int pipeline_session_mounts(struct api *api, const struct pipeline_run *run,
                                   struct pipeline_order *order, struct session_mounts *ret)
{
    const json_t *list = json_object_get(order->definition, "mounts"), *item;
    struct named_mount *named = arena_array(order->arena, json_array_size(list) + 1,
                                            sizeof(*named));
    size_t count = 0, i;

    if (run->file->folder)
        named[count++] = (struct named_mount){ .folder = run->file->folder,
                                               .target = SESSION_FOLDER };
    json_array_foreach(list, i, item) {
        const char *text = pipeline_session_fill(order, item);
        const char *colon = text ? strchr(text, ':') : NULL;

        if (!text)
            return -EINVAL;
        named[count++] = (struct named_mount){
            .folder = colon ? arena_strndup(order->arena, text, (size_t)(colon - text)) : text,
            .target = colon ? colon + 1 : NULL,
        };
    }
    *ret = (struct session_mounts){ .named = named,
                                    .count = count,
                                    .is_automatic = folder_mounts_automatic(api),
                                    .may_mount = session_may_mount,
                                    .data = api };
    return 0;
}

/* "digits.7.train.2": the pipeline's name is cut where the whole would be too long. */
static const char *pipeline_session_name(const struct pipeline_run *run,
                                         const struct pipeline_start *start, struct arena *arena)
{
    AQ_CLEANUP(aq_freep) char *end = aq_format(".%lld.%s", (long long)run->row.number,
                                               start->task->name);
    AQ_CLEANUP(aq_freep) char *name = aq_format("%.*s%s", (int)(SESSION_NAME_MAX - strlen(end)),
                                                run->row.name, end);

    return arena_strdup(arena, name);
}

static int pipeline_session_request(struct api *api, const struct pipeline_run *run,
                                    struct pipeline_start *start, struct pipeline_order *order,
                                    struct session_request *ret)
{
    const json_t *definition = order->definition;
    const json_t *priority = json_object_get(definition, "priority");
    const struct user *user = core_find_user(api->core, &run->row.user_id);
    const char *project = json_string_value(json_object_get(run->options, "group"));
    const char *group = pipeline_session_text(order, "resource_group");
    size_t node = order->context->node;

    *ret = (struct session_request){
        .name = pipeline_session_name(run, start, order->arena),
        .type = SESSION_BATCH,
        .access_key = run->row.access_key,
        .domain = user && user->domain ? arena_strdup(order->arena, user->domain) : NULL,
        .group = project,
        .resource_group = group
                              ? group
                              : json_string_value(json_object_get(run->options, "resource_group")),
        .cluster_size = (uint32_t)json_integer_value(json_object_get(definition, "cluster_size")),
        .priority = priority ? (int)json_integer_value(priority) : -1,
        .spec = { .command = pipeline_session_text(order, "command"),
                  .image = pipeline_session_text(order, "image"),
                  .shmem = pipeline_session_text(order, "shmem"),
                  .batch_timeout_usec =
                      run->file->tasks[run->file->nodes[node].task].timeout_usec },
    };
    if (!ret->spec.command || !ret->spec.image || order->err->code)
        return -EINVAL;
    ret->spec.image = image_aliases_resolve(api, ret->spec.image);
    if (run->file->folder) {
        AQ_CLEANUP(aq_freep) char *script = aq_format("mkdir -p " SESSION_FOLDER "/%s",
                                                      start->task->name);

        ret->spec.bootstrap = arena_strdup(order->arena, script);
    }
    if (pipeline_session_environ(run, order, start, &ret->spec.environ) < 0
        || pipeline_session_mounts(api, run, order, &ret->mounts) < 0)
        return -EINVAL;
    return pipeline_session_resources(api, order, &start->resources);
}

/* The hash of what the task is given, which its nodes have in common. */
static const char *pipeline_session_inputs(struct pipeline_step *step,
                                           const struct pipeline_context *context)
{
    const struct pipeline *p = context->pipeline;
    size_t task = p->nodes[context->node].task;

    if (!step->inputs)
        step->inputs = arena_array(&step->arena, p->task_count, sizeof(*step->inputs));
    if (!step->inputs[task])
        step->inputs[task] = pipeline_hash_inputs(context, &step->arena);
    return step->inputs[task];
}

/* session_rows.write */
static int pipeline_session_note(struct store_tx *tx, void *data, const struct uuid *session_id,
                                 struct aq_error *err)
{
    const struct pipeline_start *start = data;

    return pipeline_task_start(tx, &start->step->run->row.id, start->task->place, start->attempt,
                               session_id, start->inputs, clock_realtime_usec(), err);
}

/* core_create_fn */
static void pipeline_session_on_made(void *data, int r, const struct aq_error *err,
                                     const struct core_created *created)
{
    struct pipeline_start *start = data;

    start->result = r;
    if (r < 0)
        start->why = *err;
    else
        start->session_id = created->id;
    pipeline_step_answer(start);
}

void pipeline_session_make(struct pipeline_start *start)
{
    struct pipeline_step *step = start->step;
    struct pipeline_run *run = step->run;
    struct api *api = pipeline_runs_api(run->runs);
    size_t node = (size_t)start->task->place;
    struct pipeline_context context = { .pipeline = run->file,
                                        .node = node,
                                        .parameters = run->parameters,
                                        .run = run->name,
                                        .find_state = pipeline_step_find_state,
                                        .find_output = pipeline_step_find_output,
                                        .data = step };
    struct pipeline_order order = {
        .context = &context,
        .definition = run->file->tasks[run->file->nodes[node].task].definition,
        .arena = &step->arena,
        .err = &start->why,
    };
    struct session_request *request = arena_alloc(&step->arena, sizeof(*request));

    start->result = pipeline_session_request(api, run, start, &order, request);
    step->session_bytes += order.bytes;
    if (start->result < 0) {
        pipeline_step_answer(start);
        return;
    }
    start->inputs = pipeline_session_inputs(step, &context);
    request->resources = start->resources;
    request->rows = (struct session_rows){ pipeline_session_note, start };
    core_create_sessions(api->core, (const struct session_request *const *)&request, 1, NULL, NULL,
                         pipeline_session_on_made, start);
}
