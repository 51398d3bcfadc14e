/* SPDX-License-Identifier: Apache-2.0 */
/* serving_trial.c - see serving_trial.h */
#include "manager/serving/serving_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/defer.h"
#include "link/link.h"
#include "manager/call/tasks.h"
#include "manager/core/services.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "manager/serving/serving_view.h"
#include "model/agent.h"
#include "model/status.h"

#define TICK_MSEC 200
#define STEPS 3 /* created, running, ready */
#define LOG_LINES 20
#define LOG_BYTES 1500                      /* that fit in the message of a task */
#define UNPLACED_USEC (3600 * USEC_PER_SEC) /* nobody may be there to end it */

struct serving_trials {
    struct api *api;
    struct list all; /* serving_trial.link */
    struct defer *tick;
    bool has_cleaned;
};

struct serving_trial {
    struct list link;
    struct serving_trials *trials; /* NULL: the manager is stopping */
    struct uuid service_id;
    struct task *task;
    int64_t begun_usec; /* monotonic */
    int64_t step;       /* that was told last */
    char *said;         /* likewise */
    bool is_ending;     /* nothing is waited for any more */
    bool has_failed;
    char *result; /* to be told when the service is removed */
    struct {
        struct uuid id;
        char agent[AGENT_ID_MAX + 1]; /* "" = it has none yet */
    } kernel;                         /* of the replica, which is forgotten once it has failed */
    struct link_stream *log;
    struct strbuf log_text;
};

/* ---- the end ---- */

static void trial_finish(struct serving_trial *t)
{
    struct task *task = t->task;

    if (t->trials)
        list_remove(&t->link);
    free(t->said);
    strbuf_done(&t->log_text);
    task_end(task, t->has_failed, t->result); /* frees 't' */
}

static void trial_on_removed(void *data, int r, const struct aq_error *err)
{
    struct serving_trial *t = data;
    AQ_CLEANUP(aq_freep) char *result = NULL;

    AQ_FAULT("serving.try.removed");
    if (r < 0 && r != -ENOENT)
        log_error("cannot remove a model service that was tried: %s", err->text);
    result = t->result;
    trial_finish(t);
}

static void trial_remove(struct serving_trial *t)
{
    core_end_service(t->trials->api->core, &t->service_id, true, NULL, trial_on_removed, t);
}

static void trial_succeed(struct serving_trial *t, const char *result)
{
    t->is_ending = true;
    t->result = aq_strdup(result);
    trial_remove(t);
}

/* ---- failure: what the replica printed last ---- */

static void trial_on_log_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct serving_trial *t = data;

    (void)stream;
    strbuf_add(&t->log_text, bytes, len);
    if (t->log_text.len > LOG_BYTES)
        strbuf_consume(&t->log_text, t->log_text.len - LOG_BYTES);
}

static void trial_on_log_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct serving_trial *t = data;
    char *with_log;

    (void)stream;
    (void)err;
    t->log = NULL;
    if (!t->trials)
        return;
    if (t->log_text.len) {
        with_log = aq_format("%s; last lines of its log:\n%s", t->result, t->log_text.data);
        free(t->result);
        t->result = with_log;
    }
    trial_remove(t);
}

static void trial_fail(struct serving_trial *t, const char *why)
{
    static const struct link_stream_ops ops = {
        .on_data = trial_on_log_data,
        .on_close = trial_on_log_close,
    };
    struct msg_stream_open open = { .kind = "logs",
                                    .kernel_id = t->kernel.id,
                                    .tail_lines = LOG_LINES };
    struct aq_error err = { 0 };

    t->is_ending = t->has_failed = true;
    t->result = aq_strdup(why);
    if (!*t->kernel.agent || strchr(why, '\n') /* it has lines of the log */
        || core_open_stream(t->trials->api->core, t->kernel.agent, &open, &ops, t, &t->log, &err)
               < 0)
        trial_remove(t);
}

/* ---- progress ---- */

static void trial_say(struct serving_trial *t, int64_t step, const char *text)
{
    if (t->step == step && t->said && strcmp(t->said, text) == 0)
        return;
    free(t->said);
    t->said = aq_strdup(text);
    t->step = step;
    task_update(t->task, step, text);
}

static void trial_describe(struct serving_trial *t, const struct model_service *s)
{
    const struct core *core = t->trials->api->core;
    const struct session *session = core_next_replica(core, s, NULL);
    const char *problem = core_service_problem(core, s);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (!session) {
        trial_say(t, 1, "The model service was created; its session comes next.");
        return;
    }
    t->kernel.id = session->kernels[0].id;
    (void)snprintf(t->kernel.agent, sizeof(t->kernel.agent), "%s",
                   session->kernels[0].agent_id ? session->kernels[0].agent_id : "");
    strbuf_addf(&text, "Session %s is %s.", session->name, session_status_name(session->status));
    if (session->status == SESSION_RUNNING)
        strbuf_adds(&text, " Waiting until it answers its health check.");
    if (problem)
        strbuf_addf(&text, " %s", problem);
    trial_say(t, session->status == SESSION_RUNNING ? 2 : 1, text.data);
}

static void trial_look(struct serving_trial *t)
{
    const struct core *core = t->trials->api->core;
    const struct model_service *s = core_find_service_by_id(core, &t->service_id);
    const char *problem;

    if (t->is_ending)
        return;
    if (!s || s->is_ending) {
        trial_fail(t, "The model service was ended before it was ready.");
    } else if (serving_view_count(core, s).ready) {
        trial_say(t, STEPS, "The replica is ready.");
        trial_succeed(t, "The replica started and answered its health check.");
    } else if (core_service_failures(core, s)) {
        problem = core_service_problem(core, s);
        trial_fail(t, problem ? problem : "The replica failed; no reason is known.");
    } else if (!*t->kernel.agent && clock_monotonic_usec() - t->begun_usec > UNPLACED_USEC) {
        trial_fail(t, "No agent had room for the replica within an hour.");
    } else {
        trial_describe(t, s);
    }
}

static void trial_on_cleaned(void *data, int r, const struct aq_error *err)
{
    (void)data;
    if (r < 0)
        log_warning("cannot remove a model service that was tried: %s", err->text);
}

/* Those that a manager before this one began. */
static void trial_clean(const struct serving_trials *trials)
{
    const struct core *core = trials->api->core;

    for (const struct model_service *s = NULL; (s = core_next_service(core, s));)
        if (s->tag && strcmp(s->tag, SERVING_TRIAL_TAG) == 0 && !s->is_ending)
            core_end_service(trials->api->core, &s->id, true, NULL, trial_on_cleaned, NULL);
}

static void trial_on_tick(void *data)
{
    struct serving_trials *trials = data;
    struct list *next;

    if (!trials->has_cleaned)
        trial_clean(trials);
    trials->has_cleaned = true;
    for (struct list *link = trials->all.next; link != &trials->all; link = next) {
        next = link->next;
        trial_look(LIST_ENTRY(link, struct serving_trial, link));
    }
    if (!list_is_empty(&trials->all))
        defer_start(trials->tick, TICK_MSEC);
}

/* ---- from outside ---- */

struct serving_trials *serving_trials_new(struct api *api)
{
    struct serving_trials *trials = aq_alloc(sizeof(*trials));

    trials->api = api;
    list_init(&trials->all);
    trials->tick = defer_new(core_loop(api->core), trial_on_tick, trials);
    defer_start(trials->tick, 0);
    return trials;
}

void serving_trials_free(struct serving_trials *trials)
{
    struct list *link;

    if (!trials)
        return;
    defer_cancel(trials->tick);
    while ((link = list_take(&trials->all))) {
        struct serving_trial *t = LIST_ENTRY(link, struct serving_trial, link);

        t->trials = NULL; /* its task frees it */
        link_stream_close(AQ_TAKE(t->log));
        strbuf_done(&t->log_text);
        free(AQ_TAKE(t->said));
        free(AQ_TAKE(t->result));
    }
    free(trials);
}

/* Follow the service of this name, which was created with the tag. */
static const struct uuid *trial_start(struct api *api, const char *name, const struct uuid *user_id)
{
    struct serving_trials *trials = api->serving->trials;
    const struct model_service *s = core_find_service(api->core, name);
    struct serving_trial *t = aq_alloc(sizeof(*t));

    t->trials = trials;
    t->begun_usec = clock_monotonic_usec();
    if (s)
        t->service_id = s->id;
    list_add(&trials->all, &t->link);
    t->task = task_start(api->tasks, user_id, t);
    task_set_total(t->task, STEPS);
    defer_start(trials->tick, TICK_MSEC);
    return task_id(t->task);
}

/* serving_created_fn */
static void trial_on_created(struct serving_create *create, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (err) {
        request_fail(create->req, err);
        return;
    }
    AQ_FAULT("serving.try.created");
    jsonw_object_begin(&w);
    api_write_uuid(
        &w, "task_id",
        trial_start(create->api, create->params.name, &api_principal(create->req)->user_id));
    jsonw_member_str(&w, "name", create->params.name);
    jsonw_object_end(&w);
    request_reply_json(create->req, 200, &out);
}

void serving_trial_create(struct serving_create *create, const json_t *given)
{
    struct uuid id = uuid_random();
    char text[UUID_TEXT_MAX], name[MODEL_SERVICE_NAME_MAX + 1];

    /* Clients of Backend.AI send a name that may be taken. */
    (void)snprintf(name, sizeof(name), "trial-%.8s%.4s", uuid_format(&id, text), text + 9);
    create->params.name = arena_strdup(request_get_arena(create->req), name);
    create->params.replicas = "1";
    create->params.is_public = MAYBE_FALSE;
    create->reserved_tag = SERVING_TRIAL_TAG;
    create->done = trial_on_created;
    serving_create_start(create, given);
}
