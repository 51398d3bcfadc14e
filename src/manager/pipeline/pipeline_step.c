/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_step.c - one examination of a run
 *
 * 1. step_write(), a transaction: tasks whose sessions have ended get their states, those that
 *    need them are decided on, and if all have ended so has the run.
 * 2. step_on_written(): tasks that are ready get their sessions, those of a cancelled run are
 *    ended.
 * 3. step_write_failed(), if a session could not be made: why.
 */
#include "manager/pipeline/pipeline_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/pipeline/pipeline_clock.h"
#include "store/pipeline_trigger.h"

#define STEP_AGAIN_USEC (10 * USEC_PER_SEC) /* after a refusal that may pass */
#define STEP_REASON_MAX 240

static void step_on_written(void *data, int r, const struct aq_error *err);

/* ---- step 1: states ---- */

static void step_set(struct pipeline_step *step, struct pipeline_task_row *task,
                     enum pipeline_state state, const char *reason)
{
    task->state = state;
    task->reason = reason ? arena_strdup(&step->arena, reason) : NULL;
    if (state != PIPELINE_WAITING)
        task->ended_usec = clock_realtime_usec();
    task->is_changed = true;
}

/* What a session with bad outputs is said to have done; of the arena. */
static const char *step_describe_data(struct pipeline_step *step, const char *session_data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    core_status_text(session_data, &text);
    return text.len ? arena_strdup(&step->arena, text.data) : NULL;
}

/* Keep the values that the session has handed on. Returns why they make the task fail, of the
 * arena; NULL = they do not.
 */
static const char *step_take_outputs(struct pipeline_step *step, struct pipeline_task_row *task)
{
    const struct pipeline *p = step->run->file;
    size_t len = task->session_outputs ? strlen(task->session_outputs) : 0;
    const char *missing = NULL;
    char why[STEP_REASON_MAX];

    if (step->output_bytes + len > PIPELINE_OUTPUTS_MAX) {
        (void)snprintf(
            why, sizeof(why),
            "with its outputs those of the run have more than %d KiB; hand on large data "
            "by a folder",
            PIPELINE_OUTPUTS_MAX >> 10);
        return arena_strdup(&step->arena, why);
    }
    step->output_bytes += len;
    task->outputs = task->session_outputs;
    if (p && step->count == p->node_count)
        missing = pipeline_outputs_find_missing(&p->tasks[p->nodes[task->place].task],
                                                task->outputs);
    if (!missing)
        return NULL;
    (void)snprintf(why, sizeof(why), "it has not written output '%s', which 'outputs' lists",
                   missing);
    return arena_strdup(&step->arena, why);
}

/* The session has ended: the task has, or has another attempt. */
static void step_settle(struct pipeline_step *step, struct pipeline_task_row *task)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf reason = STRBUF_INIT;
    const char *bad_outputs = task->has_session ? step_take_outputs(step, task) : NULL;

    if (task->has_session && task->session_result == RESULT_SUCCESS && !bad_outputs) {
        step_set(step, task, PIPELINE_SUCCEEDED, NULL);
        return;
    }
    if (!task->has_session)
        strbuf_adds(&reason, "its session was removed");
    else if (task->session_result == RESULT_SUCCESS)
        strbuf_adds(&reason, bad_outputs);
    else
        strbuf_adds(&reason, task->session_reason ? task->session_reason : "failed");
    if (task->has_session && task->exit_code > 0)
        strbuf_addf(&reason, ", exit code %lld", (long long)task->exit_code);
    if (task->session_data && step_describe_data(step, task->session_data))
        strbuf_addf(&reason, ": %s", step_describe_data(step, task->session_data));
    if (step->is_cancelled
        || (task->has_session && session_reason_is_by_user(task->session_reason))) {
        step_set(step, task, PIPELINE_CANCELLED, reason.data);
    } else if (task->attempt < task->attempt_max) {
        step->output_bytes -= task->outputs ? strlen(task->outputs) : 0;
        task->outputs = NULL;
        step_set(step, task, PIPELINE_WAITING, reason.data);
        task->attempt++;
    } else {
        step_set(step, task, PIPELINE_FAILED, reason.data);
    }
}

/* How the nodes of a task have ended. */
struct step_needs {
    bool all_ended, all_succeeded;
    const struct pipeline_task *bad; /* the first that has not succeeded */
    const char *bad_state;
};

static struct step_needs step_look_at_needs(const struct pipeline_step *step,
                                            const struct pipeline_task *task)
{
    const struct pipeline *p = step->run->file;
    struct step_needs needs = { true, true, NULL, NULL };

    for (size_t i = 0; i < task->need_count; i++) {
        const struct pipeline_task *needed = &p->tasks[task->needs[i]];

        for (size_t k = needed->node; k < needed->node + needed->node_count; k++) {
            enum pipeline_state state = step->tasks[k].state;

            needs.all_ended &= state != PIPELINE_WAITING && state != PIPELINE_RUNNING;
            needs.all_succeeded &= state == PIPELINE_SUCCEEDED;
            if (state >= PIPELINE_FAILED && !needs.bad) {
                needs.bad = needed;
                needs.bad_state = pipeline_state_name(state);
            }
        }
    }
    return needs;
}

const char *pipeline_step_find_state(void *data, size_t task)
{
    struct pipeline_step *step = data;
    const struct pipeline *p = step->run->file;
    const struct pipeline_task *of = &p->tasks[task];
    enum pipeline_state state = PIPELINE_SUCCEEDED;

    if (!step->states)
        step->states = arena_array(&step->arena, p->task_count, sizeof(*step->states));
    if (step->states[task])
        return step->states[task];
    for (size_t i = of->node; i < of->node + of->node_count; i++)
        state = AQ_MAX(state, step->tasks[i].state);
    return step->states[task] = pipeline_state_name(state);
}

const char *pipeline_step_find_output(void *data, size_t task, const char *name)
{
    struct pipeline_step *step = data;

    return pipeline_outputs_find(&step->outputs, task, name);
}

/* True if the node is ready for a session; else it may be skipped, or have failed. */
static bool step_decide(struct pipeline_step *step, size_t node, const struct step_needs *needs)
{
    const struct pipeline *p = step->run->file;
    const struct pipeline_task *task = &p->tasks[p->nodes[node].task];
    struct pipeline_context context = {
        .pipeline = p,
        .node = node,
        .parameters = step->run->parameters,
        .run = step->run->name,
        .outcome = needs->all_succeeded ? PIPELINE_SUCCESS : PIPELINE_FAILURE,
        .find_state = pipeline_step_find_state,
        .find_output = pipeline_step_find_output,
        .data = step,
    };
    char why[STEP_REASON_MAX];
    struct aq_error err = { 0 };
    bool runs;

    if (needs->bad && !task->waits) {
        (void)snprintf(why, sizeof(why), "task '%s', which it needs, %s %s", needs->bad->name,
                       strcmp(needs->bad_state, "failed") == 0 ? "has" : "was", needs->bad_state);
        step_set(step, &step->tasks[node], PIPELINE_SKIPPED, why);
        return false;
    }
    if (!needs->all_ended)
        return false;
    if (pipeline_decide(&context, &runs, &err) < 0) {
        step_set(step, &step->tasks[node], PIPELINE_FAILED, err.text);
        return false;
    }
    if (!runs) {
        (void)snprintf(why, sizeof(why), "'when' is false: %.180s", task->when ? task->when : "");
        step_set(step, &step->tasks[node], PIPELINE_SKIPPED, why);
    }
    return runs;
}

/* Tasks in their order, each after those that it needs. */
static void step_decide_all(struct pipeline_step *step)
{
    const struct pipeline *p = step->run->file;
    size_t running = 0, room = PIPELINE_STEP_SESSIONS_MAX;

    for (size_t i = 0; i < step->count; i++)
        running += step->tasks[i].state == PIPELINE_RUNNING;
    if (p->max_parallel)
        room = AQ_MIN(room, (size_t)p->max_parallel - AQ_MIN(running, (size_t)p->max_parallel));
    step->starts = arena_array(&step->arena, PIPELINE_STEP_SESSIONS_MAX, sizeof(*step->starts));
    for (size_t i = 0; i < p->task_count; i++) {
        struct step_needs needs = step_look_at_needs(step, &p->tasks[i]);

        for (size_t k = p->tasks[i].node; k < p->tasks[i].node + p->tasks[i].node_count; k++) {
            struct pipeline_task_row *task = &step->tasks[k];

            if (task->state == PIPELINE_WAITING && step->is_cancelled)
                step_set(step, task, PIPELINE_CANCELLED, "the run was cancelled");
            if (task->state != PIPELINE_WAITING || !step_decide(step, k, &needs))
                continue;
            if (step->start_count < room)
                step->starts[step->start_count++] = (struct pipeline_start){
                    .step = step, .task = task, .attempt = task->attempt
                };
            else
                step->has_more = step->start_count == PIPELINE_STEP_SESSIONS_MAX;
        }
    }
}

/* The file was accepted by another version of the manager. */
static void step_fail_all(struct pipeline_step *step)
{
    for (size_t i = 0; i < step->count; i++)
        if (step->tasks[i].state == PIPELINE_WAITING)
            step_set(step, &step->tasks[i], PIPELINE_FAILED,
                     "this version of the manager cannot read the pipeline's file; resume the run "
                     "with another one");
}

/* The run has ended if all tasks have. */
static void step_conclude(struct pipeline_step *step, struct pipeline_run_row *row)
{
    bool has_failed = false;

    for (size_t i = 0; i < step->count; i++) {
        if (step->tasks[i].state == PIPELINE_WAITING || step->tasks[i].state == PIPELINE_RUNNING)
            return;
        has_failed |= step->tasks[i].state == PIPELINE_FAILED
                      || step->tasks[i].state == PIPELINE_CANCELLED;
    }
    step->is_over = true;
    row->state = step->is_cancelled ? "cancelled" : has_failed ? "failed" : "succeeded";
    row->ended_usec = clock_realtime_usec();
}

/* store_tx_fn */
static int step_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct folder_viewer who = { .is_superadmin = true };
    struct pipeline_step *step = data;
    struct pipeline_run_row row;
    char id[UUID_TEXT_MAX];
    int r = pipeline_run_find(tx, &who, uuid_format(&step->run->row.id, id), &step->arena, &row,
                              err);

    if (r == -ENOENT || (r == 0 && row.ended_usec)) {
        step->is_over = true;
        return 0;
    }
    if (r < 0
        || (r = pipeline_tasks_read(tx, &row.id, &step->arena, &step->tasks, &step->count, err))
               < 0)
        return r;
    step->is_cancelled = row.is_cancelled;
    if (!uuid_equals(&row.pipeline_id, &step->run->row.pipeline_id)) {
        struct pipeline_run_row *changed = arena_alloc(&step->arena, sizeof(*changed));

        *changed = row;
        step->changed = changed;
        return 0;
    }
    step->outputs.file = step->run->file;
    step->outputs.tasks = step->tasks;
    for (size_t i = 0; i < step->count; i++)
        step->output_bytes += step->tasks[i].outputs ? strlen(step->tasks[i].outputs) : 0;
    for (size_t i = 0; i < step->count; i++)
        if (step->tasks[i].state == PIPELINE_RUNNING
            && (!step->tasks[i].has_session || step->tasks[i].session_ended))
            step_settle(step, &step->tasks[i]);
    if (step->run->file && step->count == step->run->file->node_count)
        step_decide_all(step);
    else
        step_fail_all(step);
    step_conclude(step, &row);
    for (size_t i = 0; i < step->count && r == 0; i++)
        if (step->tasks[i].is_changed)
            r = pipeline_task_write(tx, &row.id, &step->tasks[i], err);
    if (r < 0 || !step->is_over)
        return r;
    r = pipeline_run_update(tx, &row, err);
    return r < 0 ? r : pipeline_run_note_end(tx, &row, err);
}

void pipeline_step_start(struct pipeline_run *run)
{
    struct pipeline_step *step = run->step = aq_alloc(sizeof(*step));

    step->run = run;
    store_write(core_store(pipeline_runs_api(run->runs)->core), step_write, step_on_written, step);
}

/* ---- the end ---- */

static void step_finish(struct pipeline_step *step)
{
    struct pipeline_run *run = step->run;
    struct pipeline_clock *clock = pipeline_runs_clock(run->runs);
    bool is_over = step->is_over, has_changed = false;

    run->is_touched |= step->has_more;
    for (size_t i = 0; i < step->start_count; i++) {
        slots_done(&step->starts[i].resources);
        if (step->starts[i].result == 0 && !uuid_is_nil(&step->starts[i].session_id)) {
            step->starts[i].task->state = PIPELINE_RUNNING;
            has_changed = true;
        }
    }
    for (size_t i = 0; i < step->count; i++)
        has_changed |= step->tasks[i].is_changed;
    if (!step->is_unknown)
        pipeline_runs_note(run, step->tasks, step->count, step->is_cancelled, has_changed);
    pipeline_outputs_done(&step->outputs);
    arena_done(&step->arena);
    free(step);
    pipeline_runs_step_done(run, is_over);
    if (is_over)
        pipeline_clock_wake(clock); /* triggers may wait for this end */
}

/* ---- step 3: sessions that could not be made ---- */

/* Is it worth trying again? A quota that is used up, or the database. */
static bool step_may_pass(int r)
{
    return r == -EDQUOT || r == -EBUSY || r == -ENOSPC || r == -EIO || r == -EHOSTDOWN
           || r == -EROFS || r == -ECANCELED;
}

/* store_tx_fn */
static int step_write_failed(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct pipeline_step *step = data;
    int r = 0;

    for (size_t i = 0; i < step->start_count && r == 0; i++) {
        const struct pipeline_start *start = &step->starts[i];

        if (start->result == 0 || start->result == -ESTALE)
            continue;
        if (step_may_pass(start->result))
            start->task->reason = arena_strdup(&step->arena, start->why.text);
        else
            step_set(step, start->task, PIPELINE_FAILED, start->why.text);
        r = pipeline_task_write(tx, &step->run->row.id, start->task, err);
    }
    return r;
}

static void step_on_failed_written(void *data, int r, const struct aq_error *err)
{
    struct pipeline_step *step = data;
    bool may_pass = r < 0;

    if (r < 0)
        log_warning("failed to save tasks of pipeline run %s, trying again: %s", step->run->name,
                    err->text);
    for (size_t i = 0; i < step->start_count; i++)
        may_pass |= step_may_pass(step->starts[i].result);
    if (may_pass)
        step->run->wake_usec = clock_monotonic_usec() + STEP_AGAIN_USEC;
    else
        step->run->is_touched = true; /* those that need it are skipped */
    step->has_more = false;
    step_finish(step);
}

/* ---- step 2: sessions ---- */

/* After the last answer. */
static void step_count_answer(struct pipeline_step *step)
{
    bool has_failed = false;

    if (--step->answers > 0)
        return;
    for (size_t i = 0; i < step->start_count; i++)
        has_failed |= step->starts[i].result < 0 && step->starts[i].result != -ESTALE;
    if (has_failed && !pipeline_runs_are_stopped(step->run->runs))
        store_write(core_store(pipeline_runs_api(step->run->runs)->core), step_write_failed,
                    step_on_failed_written, step);
    else
        step_finish(step);
}

void pipeline_step_answer(struct pipeline_start *start)
{
    AQ_FAULT("pipeline.session.answered");
    if (start->result == 0)
        pipeline_runs_watch(start->step->run, &start->session_id);
    step_count_answer(start->step);
}

/* core_done_fn: the session's end is seen by its event. */
static void step_on_terminated(void *data, int r, const struct aq_error *err)
{
    (void)data;
    (void)r;
    (void)err;
}

/* Sessions that go on are watched; those of a cancelled run are to end. */
static void step_look_at_running(struct pipeline_step *step)
{
    struct api *api = pipeline_runs_api(step->run->runs);

    for (size_t i = 0; i < step->count; i++) {
        const struct pipeline_task_row *task = &step->tasks[i];

        if (task->state != PIPELINE_RUNNING)
            continue;
        pipeline_runs_watch(step->run, &task->session_id);
        if (step->is_cancelled)
            core_terminate_session(api->core, &task->session_id, false, REASON_USER_REQUESTED, NULL,
                                   step_on_terminated, NULL);
        if (!core_find_session(api->core, &task->session_id))
            step->run->is_touched = true; /* it has ended since the transaction */
    }
}

/* As many as their texts have room for in one step. */
static void step_make_sessions(struct pipeline_step *step)
{
    size_t made = 0;

    step->answers = step->start_count + 1;
    while (made < step->start_count && step->session_bytes <= PIPELINE_STEP_BYTES_MAX)
        pipeline_session_make(&step->starts[made++]);
    step->has_more |= made < step->start_count;
    step->answers -= step->start_count - made;
    step->start_count = made;
    step_count_answer(step);
}

static void step_on_written(void *data, int r, const struct aq_error *err)
{
    struct pipeline_step *step = data;
    struct pipeline_runs *runs = step->run->runs;

    AQ_FAULT("pipeline.step.written");
    if (r < 0) {
        log_warning("failed to examine pipeline run %s, trying again: %s", step->run->name,
                    err->text);
        step->is_unknown = true;
        step->run->wake_usec = clock_monotonic_usec() + STEP_AGAIN_USEC;
        step->start_count = 0;
        step->is_over = step->has_more = false;
    }
    if (r == 0 && step->changed) {
        step->is_unknown = true; /* the next step decides by the other file */
        pipeline_runs_replace(step->run, step->changed);
        step->run->is_touched = true;
    }
    if (r < 0 || step->is_over || step->changed || pipeline_runs_are_stopped(runs)) {
        step->start_count = 0;
        step_finish(step);
        return;
    }
    step_look_at_running(step);
    if (pipeline_runs_api(runs)->is_frozen) { /* no sessions are made */
        step->run->wake_usec = clock_monotonic_usec() + STEP_AGAIN_USEC;
        step->start_count = 0;
        step->has_more = false;
    }
    step_make_sessions(step);
}
