/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_call.c - transactions of requests on pipelines */
#include "manager/pipeline/pipeline_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/map.h"
#include "manager/pipeline/pipeline_identity.h"
#include "manager/pipeline/pipeline_outputs.h"
#include "manager/pipeline/pipeline_trigger.h"
#include "store/audit_log.h"
#include "store/request_answer.h"

/* ---- what several do ---- */

/* The mistake is in the file. */
static int pipeline_call_fail_payload(struct aq_error *err)
{
    err->kind = "invalid-api-params";
    (void)snprintf(err->field, sizeof(err->field), "payload");
    return -err->code;
}

int pipeline_call_parse(const char *text, struct pipeline **ret, struct aq_error *err)
{
    int r = pipeline_parse(text, strlen(text), ret, err);

    return r < 0 ? pipeline_call_fail_payload(err) : 0;
}

/* Parameters as texts; NULL with the member as field. */
static json_t *pipeline_call_bind(const struct pipeline *p, const json_t *given,
                                  struct aq_error *err)
{
    json_t *bound = pipeline_bind(p, given, err);
    char name[sizeof(err->field)];

    if (bound)
        return bound;
    memcpy(name, err->field, sizeof(name));
    (void)snprintf(err->field, sizeof(err->field), "parameters.%.60s", name);
    err->kind = "invalid-api-params";
    return NULL;
}

static int pipeline_call_audit(struct store_tx *tx, const struct pipeline_call *call,
                               const char *action, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s.%lld", call->run.name,
                                                (long long)call->run.number);
    char id[UUID_TEXT_MAX];

    if (!call->by)
        return 0;
    return audit_log_add_change(tx, call->by,
                                &(struct audit_change){
                                    .action = action,
                                    .object_kind = "pipeline-run",
                                    .object_id = uuid_format(&call->run.id, id),
                                    .object_name = name,
                                    .object_domain = call->run.domain,
                                },
                                err);
}

static int pipeline_call_find(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    return pipeline_run_find(tx, &call->who, request_get_param(call->req, "run"), call->arena,
                             &call->run, err);
}

/* The run as it is now, for the answer. */
static int pipeline_call_read(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    const struct folder_viewer any = { .is_superadmin = true };
    struct arena *arena = call->arena;
    char id[UUID_TEXT_MAX];
    int r = pipeline_run_find(tx, &any, uuid_format(&call->run.id, id), arena, &call->run, err);

    return r < 0 ? r
                 : pipeline_tasks_read(tx, &call->run.id, arena, &call->tasks, &call->task_count,
                                       err);
}

void pipeline_call_write_run(const struct pipeline_run_row *run, struct jsonw *w)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s.%lld", run->name, (long long)run->number);

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &run->id);
    jsonw_member_str(w, "name", name);
    jsonw_member_str(w, "pipeline", run->name);
    jsonw_member_int(w, "number", run->number);
    jsonw_member_int(w, "version", run->version);
    jsonw_member_str(w, "state", run->state);
    jsonw_member_bool(w, "is_cancelled", run->is_cancelled);
    api_write_raw(w, "parameters", run->parameters);
    jsonw_member_int(w, "task_count", run->task_count);
    jsonw_member_int(w, "succeeded", run->succeeded);
    jsonw_member_int(w, "failed", run->failed);
    jsonw_member_int(w, "running", run->running);
    jsonw_member_str(w, "user_email", run->user_email);
    jsonw_member_str(w, "started_by", run->started_by);
    api_write_time(w, "due_at", run->due_usec);
    api_write_time(w, "created_at", run->created_usec);
    api_write_time(w, "ended_at", run->ended_usec);
}

int pipeline_call_show(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    int r = pipeline_call_find(tx, call, err);

    if (r == 0)
        r = pipeline_call_read(tx, call, err);
    if (r == 0 && call->params.graph)
        pipeline_draw(call->run.text, request_get_arena(call->req), &call->drawing);
    return r;
}

/* ---- save ---- */

static int pipeline_call_keep(struct store_tx *tx, struct pipeline_call *call,
                              const struct uuid *owner, struct pipeline **ret, struct aq_error *err)
{
    struct arena *arena = call->arena;
    const char *text = call->params.payload;
    char *hash = arena_alloc(arena, PIPELINE_HASH_MAX);
    int r = pipeline_call_parse(text, ret, err);

    if (r < 0)
        return r;
    if ((r = pipeline_check_zones(*ret, text, strlen(text), err)) < 0)
        return pipeline_call_fail_payload(err);
    pipeline_hash(text, strlen(text), hash);
    call->pipeline = (struct pipeline_row){ .id = uuid_random(),
                                            .user_id = *owner,
                                            .name = arena_strdup(arena, (*ret)->name),
                                            .hash = hash,
                                            .text = text,
                                            .saved_usec = clock_realtime_usec() };
    if ((r = pipeline_save(tx, &call->pipeline, err)) < 0)
        return r;
    return pipeline_triggers_keep(tx, owner, *ret, call->pipeline.saved_usec, arena, err);
}

int pipeline_call_save(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;

    return pipeline_call_keep(tx, call, &call->who.user_id, &p, err);
}

/* ---- tasks of a new or resumed run ---- */

/* 1 if a task with this identity and these inputs has succeeded, in this run or with --cache in an
 * earlier one; 0 if it has to run.
 */
static int pipeline_call_find_kept(struct store_tx *tx, const struct pipeline_call *call,
                                   const struct pipeline_task_row *old, const char *identity,
                                   const char *inputs, struct pipeline_task_row *ret,
                                   struct aq_error *err)
{
    if (old && old->state == PIPELINE_SUCCEEDED && strcmp(old->identity, identity) == 0
        && strcmp(old->inputs ? old->inputs : "", inputs ? inputs : "") == 0) {
        *ret = *old;
        return 1;
    }
    if (!call->params.cache)
        return 0;
    return pipeline_task_find_same(tx, &call->run.user_id, identity, inputs, call->arena, ret, err);
}

/* struct pipeline_context.find_output, of tasks that are kept. */
static const char *pipeline_call_find_output(void *data, size_t task, const char *name)
{
    return pipeline_outputs_find(data, task, name);
}

/* The row of a task that has to run. */
static struct pipeline_task_row pipeline_call_begin_task(const struct pipeline_task_row *old,
                                                         int retry)
{
    bool has_run = old && (old->attempt > 1 || !uuid_is_nil(&old->session_id));
    int64_t attempt = has_run ? old->attempt + 1 : 1;

    return (struct pipeline_task_row){ .attempt = attempt, .attempt_max = attempt + retry };
}

/* Writes the tasks of the file; 'before' maps names to tasks of the resumed run. A task is kept
 * only if all tasks that it needs are kept.
 */
static int pipeline_call_write_tasks(struct store_tx *tx, struct pipeline_call *call,
                                     const struct pipeline *p, const char *const *identities,
                                     const struct map *before, struct aq_error *err)
{
    struct arena *arena = call->arena;
    bool *is_kept = arena_array(arena, p->task_count, sizeof(*is_kept));
    struct pipeline_task_row *rows = arena_array(arena, p->node_count, sizeof(*rows));
    AQ_CLEANUP(pipeline_outputs_done) struct pipeline_outputs outputs = { .file = p,
                                                                          .tasks = rows };
    const char *inputs = NULL;
    int r = 0;

    for (size_t i = 0; i < p->node_count && r >= 0; i++) {
        const struct pipeline_task *task = &p->tasks[p->nodes[i].task];
        const struct pipeline_context context = {
            .pipeline = p, .node = i, .find_output = pipeline_call_find_output, .data = &outputs
        };
        const struct pipeline_task_row *old = map_gets(before, p->nodes[i].name);
        bool may_keep = true;

        for (size_t k = 0; k < task->need_count; k++)
            may_keep &= is_kept[task->needs[k]];
        if (may_keep && i == task->node) /* all nodes of a task are given the same */
            inputs = pipeline_hash_inputs(&context, arena);
        r = may_keep ? pipeline_call_find_kept(tx, call, old, identities[i], inputs, &rows[i], err)
                     : 0;
        if (r < 0)
            return r;
        is_kept[p->nodes[i].task] = r > 0 && (i == task->node || is_kept[p->nodes[i].task]);
        if (r == 0)
            rows[i] = pipeline_call_begin_task(old, task->retry);
        rows[i].place = (int64_t)i;
        rows[i].name = p->nodes[i].name;
        rows[i].identity = identities[i];
        r = pipeline_task_write(tx, &call->run.id, &rows[i], err);
    }
    return r;
}

/* ---- run ---- */

/* Stores the reply in the transaction that creates or resumes the run. */
static int pipeline_call_answer(struct store_tx *tx, struct pipeline_call *call,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    pipeline_call_write_run(&call->run, &w);
    jsonw_object_end(&w);
    call->answered.at_usec = clock_realtime_usec();
    call->answered.answered.body = arena_strdup(call->arena, out.data);
    return request_answer_add(tx, &call->answered, err);
}

const char *pipeline_call_options(const struct pipeline_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    if (call->params.group)
        jsonw_member_str(&w, "group", call->params.group);
    if (call->params.resource_group)
        jsonw_member_str(&w, "resource_group", call->params.resource_group);
    jsonw_object_end(&w);
    return arena_strdup(call->arena, out.data);
}

static int pipeline_call_open(struct store_tx *tx, struct pipeline_call *call,
                              struct pipeline **ret, struct aq_error *err)
{
    int r;

    if (call->params.payload)
        return pipeline_call_keep(tx, call, &call->who.user_id, ret, err);
    if (!call->params.pipeline)
        return api_fail_param(err, "pipeline", "is missing; name a pipeline, or send a payload");
    r = pipeline_find(tx, &call->who.user_id, call->params.pipeline, 0, call->arena,
                      &call->pipeline, err);
    return r < 0 ? r : pipeline_call_parse(call->pipeline.text, ret, err);
}

int pipeline_call_begin(struct store_tx *tx, struct pipeline_call *call, const struct pipeline *p,
                        const json_t *parameters, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *bound_text = NULL;
    json_auto_t *bound = pipeline_call_bind(p, parameters, err);
    const struct map none = MAP_INIT;
    const char **identities;
    int r;

    if (!bound || !(identities = pipeline_identify_nodes(p, bound, call->arena, err)))
        return -EINVAL;
    bound_text = json_dump_text(bound, JSON_COMPACT);
    call->run.id = uuid_random();
    call->run.pipeline_id = call->pipeline.id;
    call->run.user_id = call->who.user_id;
    call->run.access_key = call->access_key;
    call->run.name = call->pipeline.name;
    call->run.parameters = bound_text;
    call->run.options = call->options;
    call->run.created_usec = clock_realtime_usec();
    r = pipeline_run_insert(tx, &call->run, err);
    if (r == 0)
        r = pipeline_call_write_tasks(tx, call, p, identities, &none, err);
    if (r < 0 || (r = pipeline_call_read(tx, call, err)) < 0)
        return r;
    return pipeline_call_audit(tx, call, "create-pipeline-run", err);
}

int pipeline_call_run(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    int r = pipeline_call_open(tx, call, &p, err);

    if (r < 0)
        return r;
    call->options = pipeline_call_options(call);
    r = pipeline_call_begin(tx, call, p, call->params.parameters, err);
    return r < 0 ? r : pipeline_call_answer(tx, call, err);
}

/* ---- cancel ---- */

int pipeline_call_cancel(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    int r = pipeline_call_find(tx, call, err);

    if (r < 0)
        return r;
    if (call->run.ended_usec)
        return aq_fail_kind(err, EBUSY, "conflict", "pipeline run %s.%lld has already ended: %s",
                            call->run.name, (long long)call->run.number, call->run.state);
    call->run.is_cancelled = true;
    if ((r = pipeline_run_update(tx, &call->run, err)) < 0
        || (r = pipeline_call_audit(tx, call, "cancel-pipeline-run", err)) < 0)
        return r;
    return pipeline_call_read(tx, call, err);
}

/* ---- resume ---- */

static int pipeline_call_check_resume(struct store_tx *tx, const struct pipeline_call *call,
                                      struct aq_error *err)
{
    const struct pipeline_run_row *run = &call->run;

    if (!run->ended_usec)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "pipeline run %s.%lld has not ended; cancel it first", run->name,
                            (long long)run->number);
    if (strcmp(run->state, "succeeded") == 0 && !call->params.payload)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "pipeline run %s.%lld has succeeded; nothing is left to run", run->name,
                            (long long)run->number);
    return pipeline_run_check_live(tx, &run->user_id, err);
}

/* The file that it goes on with, of the same name. */
static int pipeline_call_reopen(struct store_tx *tx, struct pipeline_call *call,
                                struct pipeline **ret, struct aq_error *err)
{
    int r;

    if (!call->params.payload)
        return pipeline_call_parse(call->run.text, ret, err);
    if ((r = pipeline_call_keep(tx, call, &call->run.user_id, ret, err)) < 0)
        return r;
    if (strcmp((*ret)->name, call->run.name) != 0)
        return api_fail_param(err, "payload", "is of pipeline '%s', the run of '%s'", (*ret)->name,
                              call->run.name);
    call->run.pipeline_id = call->pipeline.id;
    return 0;
}

/* Parameters of then that the file still has, and defaults of new ones. */
static json_t *pipeline_call_rebind(const struct pipeline_call *call, const struct pipeline *p,
                                    struct aq_error *err)
{
    json_auto_t *given = json_load_string(call->run.parameters, 0);
    const json_t *value;
    const char *name;
    void *next;

    json_object_foreach_safe(given, next, name, value)
    {
        if (!json_object_get(p->parameters, name))
            (void)json_object_del(given, name);
    }
    return pipeline_call_bind(p, given, err);
}

int pipeline_call_resume(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    struct arena *arena = call->arena;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    AQ_CLEANUP(aq_freep) char *bound_text = NULL;
    json_auto_t *bound = NULL;
    struct map before = MAP_INIT;
    const char **identities;
    int r;

    if ((r = pipeline_call_show(tx, call, err)) < 0
        || (r = pipeline_call_check_resume(tx, call, err)) < 0
        || (r = pipeline_call_reopen(tx, call, &p, err)) < 0)
        return r;
    if (!(bound = pipeline_call_rebind(call, p, err)))
        return -EINVAL;
    if (!(identities = pipeline_identify_nodes(p, bound, arena, err)))
        return -EINVAL;
    call->run.parameters = bound_text = json_dump_text(bound, JSON_COMPACT);
    call->run.state = "running";
    call->run.is_cancelled = false;
    call->run.ended_usec = 0;
    for (size_t i = 0; i < call->task_count; i++)
        (void)map_sets(&before, call->tasks[i].name, &call->tasks[i]);
    if ((r = pipeline_tasks_remove(tx, &call->run.id, err)) == 0)
        r = pipeline_call_write_tasks(tx, call, p, identities, &before, err);
    map_done(&before);
    if (r < 0 || (r = pipeline_run_update(tx, &call->run, err)) < 0
        || (r = pipeline_call_audit(tx, call, "resume-pipeline-run", err)) < 0
        || (r = pipeline_call_read(tx, call, err)) < 0)
        return r;
    return pipeline_call_answer(tx, call, err);
}
