/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_runs.h - runs of pipelines that have not ended
 *
 * The store has the state of each task. A run is examined when it is new, when a session of it has
 * ended, and when the manager starts: a transaction notes which sessions have ended and decides
 * which tasks are skipped (pipeline_step.c), then each task that is ready gets a session, which is
 * made in the same transaction that says so (pipeline_session.c). So a crash at any point makes no
 * session twice. Memory has only what does not change while a run goes on. Loop's thread.
 */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_RUNS_H
#define AQ_MANAGER_PIPELINE_PIPELINE_RUNS_H

#include "base/map.h"
#include "manager/call/api.h"
#include "pipeline/pipeline.h"
#include "store/pipeline.h"

#define PIPELINE_RUN_NAME_MAX (PIPELINE_NAME_MAX + 24)

struct pipeline_run {
    struct pipeline_runs *runs;
    struct pipeline_run_row row; /* texts are copies of 'arena' */
    struct arena arena;
    char name[PIPELINE_RUN_NAME_MAX]; /* "digits.7" */
    struct pipeline *file;
    json_t *parameters, *options;
    struct pipeline_step *step; /* under way; NULL = none */
    uint64_t changed;           /* another number after each change of 'row' or of its tasks */
    bool is_touched;            /* examine it when the step is over */
    int64_t wake_usec;          /* examine it then; monotonic */
    int64_t rest_usec;          /* not before */
};

/* Load those that have not ended. */
int pipeline_runs_open(struct api *api, struct pipeline_runs **ret, struct aq_error *err);
void pipeline_runs_stop(struct pipeline_runs *runs);
void pipeline_runs_free(struct pipeline_runs *runs);

/* The run is new, goes on, or was cancelled: as read, with its text. */
void pipeline_runs_add(struct pipeline_runs *runs, const struct pipeline_run_row *row);

/* The session is one of the run's: the run is examined when it has ended. */
void pipeline_runs_watch(struct pipeline_run *run, const struct uuid *session_id);

struct api *pipeline_runs_api(const struct pipeline_runs *runs);

/* The clock that starts runs by triggers. */
struct pipeline_clock *pipeline_runs_clock(const struct pipeline_runs *runs);
bool pipeline_runs_are_stopped(const struct pipeline_runs *runs);

/* The run goes on with another file: as read, with its text. */
void pipeline_runs_replace(struct pipeline_run *run, const struct pipeline_run_row *row);

/* What a step has left: states of all tasks, each by its place. */
void pipeline_runs_note(struct pipeline_run *run, const struct pipeline_task_row *tasks,
                        size_t count, bool is_cancelled, bool has_changed);

/* Live runs, in no order: pass 0, 1, ... until NULL. */
struct pipeline_run *pipeline_runs_get(const struct pipeline_runs *runs, size_t i);
struct pipeline_run *pipeline_runs_find(const struct pipeline_runs *runs, const struct uuid *id);
/* The number of the last change that was the end of a run; among those of 'changed'. */
uint64_t pipeline_runs_last_end(const struct pipeline_runs *runs);

/* The run's step is over: examine it again, wait, or forget it. */
void pipeline_runs_step_done(struct pipeline_run *run, bool is_over);

#endif
