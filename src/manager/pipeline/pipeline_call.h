/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_call.h - requests on pipelines and their runs: the transactions that change them */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_CALL_H
#define AQ_MANAGER_PIPELINE_PIPELINE_CALL_H

#include "manager/call/list.h"
#include "manager/pipeline/pipeline_draw.h"
#include "pipeline/pipeline.h"
#include "store/pipeline_trigger.h"

struct pipeline_params {
    const char *payload, *pipeline, *group, *resource_group, *owner_access_key;
    const json_t *parameters;
    bool all, cache, graph;
    int64_t version; /* of a pipeline; 0 = the latest */
    struct api_page page;
};

/* A request while the store works, or the same made by a trigger, without 'req'. */
struct pipeline_call {
    struct api *api;
    struct request *req;
    struct arena *arena; /* of the request */
    struct pipeline_params params;
    json_t *tree; /* owns params.parameters */
    struct folder_viewer who;
    const char *access_key, *domain; /* of the owner of what is made */
    const struct audit_who *by;      /* NULL = a trigger: without an entry in the audit log */
    const char *options;             /* of a new run, JSON */
    struct pipeline_row pipeline;
    struct pipeline_drawing drawing; /* of what is shown, where params.graph asks for it */
    struct pipeline_run_row run;
    struct pipeline_task_row *tasks;
    size_t task_count;
    struct store_page *page; /* of a list */
    struct event answered;   /* of a new or resumed run: the stored reply */
    struct pipeline_trigger_list triggers;
    /* Before the transaction, on the loop's thread; may be NULL. */
    int (*check)(struct pipeline_call *call, struct aq_error *err);
    int (*change)(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);
    void (*reply)(struct pipeline_call *call);
};

/* Begin a request: decode it, find its owner, and go on as 'of' says. */
void pipeline_start_call(struct request *req, struct api *api, const struct pipeline_call *of);

/* Keep the payload under its name: 'pipeline'. */
int pipeline_call_save(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

/* Create a run of 'p', which is the version call->pipeline, with these parameters (NULL = the
 * defaults); fills 'run'. The caller sets started_by, due_usec and depth in it before.
 */
int pipeline_call_begin(struct store_tx *tx, struct pipeline_call *call, const struct pipeline *p,
                        const json_t *parameters, struct aq_error *err);

/* Create a run of the payload or of the named pipeline; fills 'run' and 'answered'. */
int pipeline_call_run(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

/* Read a file; -EINVAL with the field "payload". */
int pipeline_call_parse(const char *text, struct pipeline **ret, struct aq_error *err);

/* The options of new runs: project and resource group. */
const char *pipeline_call_options(const struct pipeline_call *call);

/* Write a run without its text and tasks; the JSON object is left open. */
void pipeline_call_write_run(const struct pipeline_run_row *run, struct jsonw *w);

/* The run and its tasks. */
int pipeline_call_show(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

/* The run is to end. */
int pipeline_call_cancel(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

/* A run that has ended without success goes on, perhaps with another file; fills 'answered'. */
int pipeline_call_resume(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err);

#endif
