/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - pipelines: a file of tasks, checked, and the graph of their runs
 *
 * aliquot-pipeline(1) describes the file. A task with a matrix is run several times: each run of a
 * task is a node of the graph, and becomes a batch session. Pure; both the manager and the command
 * line read files by this.
 */
#ifndef AQ_PIPELINE_PIPELINE_H
#define AQ_PIPELINE_PIPELINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/strbuf.h"
#include "pipeline/cron.h"

#define PIPELINE_BYTES_MAX (256 << 10) /* of a file */
#define PIPELINE_VALUE_MAX (64 << 10)  /* bytes of a text in it */
#define PIPELINE_NAME_MAX 40
#define PIPELINE_TASK_NAME_MAX 32
#define PIPELINE_NODE_NAME_MAX (PIPELINE_TASK_NAME_MAX + 6) /* "train.123" */
#define PIPELINE_TASKS_MAX 1000
#define PIPELINE_NODES_MAX 10000
#define PIPELINE_NEEDS_MAX 100000           /* in all tasks */
#define PIPELINE_MATRIX_MAX 16              /* names of a matrix */
#define PIPELINE_REFERENCES_MAX 1000        /* in the expressions of a task */
#define PIPELINE_NODES_BYTES_MAX (32 << 20) /* of what all nodes say, with the values in it */
#define PIPELINE_RETRY_MAX 10
#define PIPELINE_TRIGGERS_MAX 16 /* of a file */

/* A value of another task that a task is given. */
struct pipeline_input {
    size_t task;      /* a place */
    const char *name; /* one of the other task's outputs */
};

/* What a task is like; texts may hold ${{ ... }}. All of the pipeline's arena. */
struct pipeline_task {
    const char *name;
    const char *when;         /* an expression; NULL = success */
    const json_t *definition; /* its members in the file, with the defaults; borrowed */
    const size_t *needs;      /* places of tasks */
    size_t need_count;
    const json_t *matrix;          /* {name: [value, ...]}; NULL = none */
    const json_t *outputs;         /* names of values that it has to hand on; NULL = none */
    struct pipeline_input *inputs; /* in all its expressions but 'when' */
    size_t input_count;
    size_t node, node_count; /* its nodes are next to each other */
    size_t layer;            /* 0 = needs nothing; the longest way from there */
    int64_t timeout_usec;    /* 0 = none */
    int retry;               /* further attempts after a failure */
    bool waits;              /* 'when' asks how others ended: decided once all have */
};

struct pipeline_node {
    const char *name;     /* of the task, or "train.3" */
    const json_t *matrix; /* {name: text}; NULL = none */
    size_t task;
};

/* A trigger starts runs without a request: at the times of a schedule, or when a run of another
 * pipeline ends.
 */
struct pipeline_trigger {
    const char *cron, *zone; /* NULL = not a schedule */
    struct cron schedule;
    const char *after;        /* the other pipeline's name; NULL = a schedule */
    const char *ends;         /* "success", "failure" or "any" */
    const json_t *parameters; /* of its runs; NULL = the defaults */
};

struct pipeline {
    struct arena arena;
    json_t *root; /* the file */
    const char *name;
    const char *folder;          /* which all tasks see at /pipeline; NULL = none */
    int64_t max_parallel;        /* sessions at a time; 0 = no limit */
    const json_t *parameters;    /* {name: definition}; NULL = none */
    struct pipeline_task *tasks; /* each one after those that it needs */
    size_t task_count;
    struct pipeline_node *nodes; /* in the order of tasks */
    size_t node_count;
    struct pipeline_trigger *triggers;
    size_t trigger_count;
    const char *overlap; /* of a trigger and a live run: "skip", "allow" or "cancel" */
    const char *missed;  /* due times while the manager was away: "run-once" or "skip" */
};

/* Check a file, whole. -EINVAL, such as "line 7, column 5: unknown key 'imge'; did you mean
 * 'image'?", with the member as field.
 */
int pipeline_parse(const char *text, size_t len, struct pipeline **ret,
                   struct aq_error *err) AQ_UNTRUSTED;
void pipeline_free(struct pipeline *p);
AQ_DEFINE_CLEANUP(struct pipeline, pipeline_free)

/* Are the time zones of triggers known here? Reads tzdata, which pipeline_parse() does not: a file
 * may be checked where it is not installed. -EINVAL with the place.
 */
int pipeline_check_zones(const struct pipeline *p, const char *text, size_t len,
                         struct aq_error *err);

/* All parameters as texts, of 'given' (an object of scalars, or NULL) and the defaults. NULL with
 * 'err' for one that is not declared, of another type, missing, or with which all have more than
 * PIPELINE_BYTES_MAX; the field is its name.
 */
json_t *pipeline_bind(const struct pipeline *p, const json_t *given, struct aq_error *err);

/* [{"name", "type", "default" (a text, null = it has to be given), "description"}] */
void pipeline_write_parameters(const struct pipeline *p, struct jsonw *w);

/* ---- expressions in a run ---- */

enum pipeline_outcome { PIPELINE_SUCCESS, PIPELINE_FAILURE }; /* of what a node needs */

struct pipeline_context {
    const struct pipeline *pipeline;
    size_t node;
    const json_t *parameters; /* as of pipeline_bind() */
    const char *run;          /* "digits.7" */
    enum pipeline_outcome outcome;
    const char *(*find_state)(void *data, size_t task); /* of one that the node needs */
    /* The value of an output of one that the node needs, as the callback keeps it: of a task with a
     * matrix the JSON list of its nodes' values, null for those without one; else "" if it has none.
     */
    const char *(*find_output)(void *data, size_t task, const char *name);
    void *data;
};

/* Append a text of the node's definition with all values. -EINVAL, -E2BIG. */
int pipeline_fill(const struct pipeline_context *context, const char *text, struct strbuf *out,
                  struct aq_error *err);

/* Is the node to run? Without a status function, only after success. */
int pipeline_decide(const struct pipeline_context *context, bool *ret, struct aq_error *err);

/* Append a text that is the same for two attempts of a task if and only if they are given the same
 * values by other tasks; nothing if it is given none.
 */
void pipeline_describe_inputs(const struct pipeline_context *context, struct strbuf *out);

/* Of a task: what its nodes have in common. {ARENA_INIT} begins. */
struct pipeline_identifier {
    struct arena arena;
    const struct pipeline_task *task; /* NULL = none yet */
    const char *text;                 /* its definition */
    const char **references;          /* in it, whose values are known before a run */
    size_t reference_count;
};
void pipeline_identifier_done(struct pipeline_identifier *of);

/* Append a text that is the same for two nodes if and only if they do the same: definition, and
 * the values of parameters and the matrix in it, and the run's folder. What is needed is left out,
 * as are the number of attempts and the time limit. Values stop once 'out' has more than
 * PIPELINE_NODES_BYTES_MAX, which the caller checks. 'of' makes the nodes of one task, which come
 * one after the other, cheap.
 */
void pipeline_identify(struct pipeline_identifier *of, const struct pipeline *p, size_t node,
                       const json_t *parameters, struct strbuf *out);

#endif
