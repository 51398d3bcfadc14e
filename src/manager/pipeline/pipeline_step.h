/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_step.h - one examination of a run: pipeline_runs.h */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_STEP_H
#define AQ_MANAGER_PIPELINE_PIPELINE_STEP_H

#include "manager/pipeline/pipeline_outputs.h"
#include "manager/pipeline/pipeline_runs.h"

/* What a step makes at most; the next one makes more. */
#define PIPELINE_STEP_SESSIONS_MAX 100
#define PIPELINE_STEP_BYTES_MAX (2 << 20) /* of sessions' texts, and one session more */

struct pipeline_step;

/* A task that gets a session. */
struct pipeline_start {
    struct pipeline_step *step;
    struct pipeline_task_row *task; /* of the step */
    int64_t attempt;                /* which has it */
    struct uuid session_id;
    const char *inputs; /* SHA-256 of the values of other tasks that it is given; NULL = none */
    struct slots resources;
    int result; /* < 0 = it has none, with 'why' */
    struct aq_error why;
};

struct pipeline_step {
    struct pipeline_run *run;
    struct arena arena;
    struct pipeline_task_row *tasks; /* by place, as they are after the transaction */
    size_t count;
    const char **states;             /* of tasks of the file, once asked for; NULL = not yet */
    struct pipeline_outputs outputs; /* likewise */
    const char **inputs;             /* likewise, as of a start */
    size_t output_bytes;             /* of all tasks */
    size_t session_bytes;            /* of the texts of all sessions that it has made */
    bool is_over, is_cancelled;
    bool is_unknown; /* the states of tasks that it has are not those of the store */
    const struct pipeline_run_row *changed; /* it goes on with another file; NULL = it does not */
    bool has_more;                          /* tasks that are ready, but not among 'starts' */
    struct pipeline_start *starts;
    size_t start_count, answers; /* of starts whose answer has not come */
};

/* Begin; pipeline_runs_step_done() ends it, later. */
void pipeline_step_start(struct pipeline_run *run);

/* struct pipeline_context.find_state, of a step: how a task ended, all of its nodes together. The
 * nodes that need it are decided on after that, so it does not change within a step.
 */
const char *pipeline_step_find_state(void *data, size_t task);

/* struct pipeline_context.find_output, of a step. */
const char *pipeline_step_find_output(void *data, size_t task, const char *name);

/* Make the session; pipeline_step_answer() gets the result, later. */
void pipeline_session_make(struct pipeline_start *start);

/* The session is made, or 'result' and 'why' say why not. */
void pipeline_step_answer(struct pipeline_start *start);

#endif
