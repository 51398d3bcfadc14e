/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_outputs.h - values that the tasks of a run have handed on, for those that need them */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_OUTPUTS_H
#define AQ_MANAGER_PIPELINE_PIPELINE_OUTPUTS_H

#include "base/map.h"
#include "pipeline/pipeline.h"
#include "store/pipeline.h"

#define PIPELINE_OUTPUTS_MAX (1 << 20) /* bytes of all of a run, as JSON */

/* Each task's are parsed once. 'file' and 'tasks', its nodes, are borrowed; zeroes for the rest. */
struct pipeline_outputs {
    const struct pipeline *file;
    const struct pipeline_task_row *tasks;
    json_t **nodes;     /* parsed, or NULL */
    struct map values;  /* by "TASK NAME" */
    struct arena arena; /* of these, and of 'nodes' */
};
void pipeline_outputs_done(struct pipeline_outputs *outputs);

/* As struct pipeline_context.find_output, of a task that has ended; lives as long as 'outputs'. */
const char *pipeline_outputs_find(struct pipeline_outputs *outputs, size_t task, const char *name);

/* A name that the task declares and its outputs lack; NULL = none. */
const char *pipeline_outputs_find_missing(const struct pipeline_task *task, const char *outputs);

#endif
