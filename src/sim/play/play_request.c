/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a run's users. Each lives as long as the run and has one event of the simulation at a
 * time: to be sent, or to be looked after while its answer is awaited.
 */
#include "sim/play/play_request.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/core.h"
#include "manager/core/lookup.h"
#include "model/array_range.h"
#include "sim/play/play.h"
#include "sim/play/play_manager.h"
#include "store/query.h"
#include "store/request_answer.h"

#define LOOK_USEC (10 * USEC_PER_SEC)      /* between two looks after a request */
#define PATIENCE_USEC (300 * USEC_PER_SEC) /* an answer of a manager that is well takes less */

#define ANSWER_BEGIN "{\"id\":\""
#define LOST_ANSWERS 0.05 /* of creations, though the manager goes on */

static const char *const request_names[] = {
    [PLAY_CREATE] = "create",       [PLAY_FIND] = "find",
    [PLAY_TERMINATE] = "terminate", [PLAY_FORCE] = "force",
    [PLAY_RESTART] = "restart",     [PLAY_RENAME] = "rename",
    [PLAY_DRAIN] = "drain",         [PLAY_DRAIN_END] = "drain and end",
    [PLAY_UNDRAIN] = "undrain",     [PLAY_PRIORITY] = "set priority of",
};

enum request_state { REQUEST_UNSENT, REQUEST_SENT, REQUEST_DONE };

struct play_request {
    struct play *play;
    struct play_target on;
    enum play_request_kind kind;
    enum request_state state;
    uint32_t boots; /* of the manager that it was sent to */
    int64_t sent_usec;
    int sent_count;
    /* create */
    struct session_request create;
    char *key;
    struct core_answered answered;
    struct array_set elements;
    const char *needs[1];
    /* find: of the reader's thread, read once it has answered */
    struct uuid found;
    size_t found_count;
};

static void request_on_event(void *data);

void play_request(struct play *play, enum play_request_kind kind, const struct play_target *on,
                  int64_t after_usec)
{
    struct play_request *q = aq_alloc(sizeof(*q));

    *q = (struct play_request){ .play = play, .on = *on, .kind = kind };
    play->workload.unanswered++;
    simuv_at(simuv_now_usec() + after_usec, request_on_event, q);
}

static const char *request_target(const struct play_request *q)
{
    return q->on.node ? q->on.node->id : q->on.session->name;
}

static void request_end(struct play_request *q)
{
    q->state = REQUEST_DONE;
    q->play->workload.unanswered--;
}

/* ---- answers; they run as code of the manager's host ---- */

/* The disk, or the manager's end: another try may work. */
static bool request_may_work_later(int r)
{
    return r == -EIO || r == -ENOSPC || r == -EBUSY || r == -ECANCELED || r == -EAGAIN
           || r == -EROFS || r == -EHOSTDOWN || r == -ETIMEDOUT || r == -EUCLEAN;
}

static void request_refuse(struct play_request *q, int r, const struct aq_error *err)
{
    if (request_may_work_later(r)) {
        q->state = REQUEST_UNSENT;
        return;
    }
    play_break(q->play, "durable", "%s %s was refused (%d): %s", request_names[q->kind],
               request_target(q), r, err ? err->text : "");
    request_end(q);
}

static void request_on_created(void *data, int r, const struct aq_error *err,
                               const struct core_created *created)
{
    struct play_request *q = data;
    struct play_session *s = q->on.session;

    if (q->state == REQUEST_DONE)
        return;
    if ((r == -EALREADY || r == -EEXIST) && q->sent_count > 1) {
        q->kind = PLAY_FIND;
        q->state = REQUEST_UNSENT;
        return;
    }
    if ((r == -ENOENT || r == -EINVAL) && s->needs) { /* it ended first, without success */
        s->is_refused = s->is_final = true;
        list_remove(&s->live_link);
        request_end(q);
        return;
    }
    if (r < 0) {
        request_refuse(q, r, err);
        return;
    }
    if (s->has_id && !uuid_equals(&s->id, &created->id))
        play_break(q->play, "once", "the creation of %s, sent again, made another session",
                   s->name);
    if (!s->has_id)
        play_sessions_identify(&q->play->sessions, s, &created->id);
    if (q->play->options.faults && simuv_chance(LOST_ANSWERS)) {
        q->state = REQUEST_UNSENT;
        return;
    }
    s->is_acknowledged = true;
    play_workload_plan(q->play, s);
    request_end(q);
}

static int request_write_answer(void *data, const struct core_created *created, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    (void)data;
    strbuf_addf(out, ANSWER_BEGIN "%s\"}", uuid_format(&created->id, id));
    return 201;
}

/* On a thread of the store: which session or array the kept answer names, and how many sessions have
 * its name.
 */
static int request_read_found(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct play_request *q = data;
    struct store_query query = { .name = q->on.session->name, .limit = 2 };
    struct request_answer answer = { 0 };
    struct store_page *page;
    int r = request_answer_find(tx, q->on.session->access_key, q->key, &answer, err);

    q->found_count = 0;
    if (r > 0 && answer.body && strlen(answer.body) > strlen(ANSWER_BEGIN) + UUID_TEXT_MAX - 1) {
        answer.body[strlen(ANSWER_BEGIN) + UUID_TEXT_MAX - 1] = '\0';
        q->found_count = uuid_parse(answer.body + strlen(ANSWER_BEGIN), &q->found) == 0;
    }
    request_answer_done(&answer);
    if (r <= 0 || q->on.session->elements)
        return AQ_MIN(r, 0);
    r = store_list_sessions(tx, &query, &page, err);
    if (r < 0)
        return r;
    q->found_count *= page->count;
    store_page_free(page);
    return 0;
}

static void request_on_found(void *data, int r, const struct aq_error *err)
{
    struct play_request *q = data;
    struct play_session *s = q->on.session;

    if (r < 0) {
        request_refuse(q, r, err);
        return;
    }
    if (q->found_count != 1) {
        play_break(q->play, q->found_count ? "once" : "durable",
                   "the creation of %s was answered before, and has %zu sessions or no answer",
                   s->name, q->found_count);
        request_end(q);
        return;
    }
    if (!s->has_id)
        play_sessions_identify(&q->play->sessions, s, &q->found);
    else if (!uuid_equals(&s->id, &q->found))
        play_break(q->play, "once", "%s is another session than before", s->name);
    s->is_acknowledged = true;
    play_workload_plan(q->play, s);
    request_end(q);
}

static void request_take(struct play_request *q)
{
    struct play_session *s = q->on.session;

    if (q->kind == PLAY_TERMINATE || q->kind == PLAY_FORCE) {
        s->is_end_acknowledged = true;
        s->end_usec = simuv_now_usec();
    } else if (q->kind == PLAY_RENAME) {
        s->name = q->on.name;
        s->asked_name = NULL;
    } else if (q->kind == PLAY_DRAIN || q->kind == PLAY_DRAIN_END) {
        q->on.node->is_drained = true;
    }
    request_end(q);
}

static void request_on_done(void *data, int r, const struct aq_error *err)
{
    struct play_request *q = data;

    if (q->state == REQUEST_DONE)
        return;
    if (r == 0)
        request_take(q);
    else if (r == -ENOENT || (r == -EINVAL && q->kind != PLAY_TERMINATE))
        request_end(q); /* it has ended, or is in another status; play_check.c finds which */
    else if (r == -EEXIST && q->kind == PLAY_RENAME && q->sent_count > 1)
        request_take(q);
    else
        request_refuse(q, r, err);
}

/* ---- requests ---- */

static void request_send_create(struct play_request *q, struct core *core)
{
    struct play_session *s = q->on.session;
    const struct session_request *requests = &q->create;
    struct aq_error err = { 0 };

    if (!q->create.name) {
        q->create = (struct session_request){ .name = s->name,
                                              .type = s->type,
                                              .spec.image = "host",

                                              .spec.command = s->command,
                                              .spec.cluster_size_min = s->least_kernels,
                                              .spec.retry = s->retries,
                                              .spec.on_node_loss = s->on_node_loss,
                                              .spec.is_preemptible = s->is_preemptible,
                                              .spec.job_priority = s->may_preempt,
                                              .starts_usec = s->start_usec,
                                              .access_key = s->access_key,
                                              .cluster_size = (uint32_t)s->kernels,
                                              .multi_node = s->kernels > 1,
                                              .priority = -1 };
        if (slots_set(&q->create.resources, "cpu", s->cpus * AMOUNT_ONE) < 0
            || slots_set(&q->create.resources, "mem", s->cpus << 30) < 0
            || (s->shares && slots_set(&q->create.resources, "cuda.shares", s->shares) < 0)
            || (s->elements
                && array_set_parse(s->elements > 4 ? "0-7" : "0-3", s->elements, &q->elements, NULL,
                                   &err)
                       < 0))
            play_break(q->play, "durable", "the request of %s cannot be made: %s", s->name,
                       err.text);
        if (s->needs) {
            q->needs[0] = s->needs->name;
            q->create.dependencies = q->needs;
            q->create.dependency_count = 1;
        }
        q->key = aq_format("key-%s", s->name);
        q->answered = (struct core_answered){ .access_key = s->access_key,
                                              .request_key = q->key,
                                              .digest = q->key,
                                              .write = request_write_answer };
    }
    if (s->elements)
        core_create_array(core, &q->create, &q->elements, s->elements / 2, &q->answered, NULL,
                          request_on_created, q);
    else
        core_create_sessions(core, &requests, 1, &q->answered, NULL, request_on_created, q);
}

static void request_send_to(struct play_request *q, struct core *core)
{
    struct play_session *s = q->on.session;
    struct core_agent_change drain;

    switch (q->kind) {
    case PLAY_CREATE:
        request_send_create(q, core);
        break;
    case PLAY_FIND:
        store_read(core_store(core), request_read_found, request_on_found, q);
        break;
    case PLAY_TERMINATE:
    case PLAY_FORCE:
        s->is_end_asked = true;
        if (s->elements)
            core_cancel_array(core, &s->id, NULL, q->kind == PLAY_FORCE, NULL, request_on_done, q);
        else
            core_terminate_session(core, &s->id, q->kind == PLAY_FORCE, NULL, NULL, request_on_done,
                                   q);
        break;
    case PLAY_RESTART:
        s->is_restart_asked = true;
        core_restart_session(core, &s->id, NULL, request_on_done, q);
        break;
    case PLAY_RENAME:
        s->asked_name = q->on.name;
        core_rename_session(core, &s->id, q->on.name, NULL, request_on_done, q);
        break;
    case PLAY_PRIORITY:
        core_set_priority(core, &s->id, q->on.priority, NULL, request_on_done, q);
        break;
    case PLAY_DRAIN:
    case PLAY_DRAIN_END:
    case PLAY_UNDRAIN:
        q->on.node->is_drained = false; /* it may be either until there is an answer */
        drain = (struct core_agent_change){
            .drain = q->kind == PLAY_UNDRAIN ? CORE_AGENT_DRAIN_OFF : CORE_AGENT_DRAIN_ON,
            .ends_sessions = q->kind == PLAY_DRAIN_END,
        };
        core_change_agent(core, q->on.node->id, &drain, NULL, request_on_done, q);
        break;
    }
}

static void request_send(struct play_request *q)
{
    struct core *core = play_cluster_core(q->play);

    if (!core)
        return;
    q->play->report.requests++;
    q->play->report.sent_again += q->sent_count > 0;
    q->state = REQUEST_SENT;
    q->boots = play_manager_boots(q->play->cluster.manager);
    q->sent_usec = simuv_now_usec();
    play_trace(q->play, "user: %s %s%s%s%s", request_names[q->kind], request_target(q),
               q->sent_count > 0 ? " (again)" : "",
               q->kind == PLAY_CREATE && q->on.session->needs ? " after " : "",
               q->kind == PLAY_CREATE && q->on.session->needs ? q->on.session->needs->name : "");
    q->sent_count++;
    simuv_enter(q->play->cluster.manager_host);
    request_send_to(q, core);
    simuv_leave();
    play_faults_on_request(q->play);
}

/* It is time to send it, or to see whether its answer can still come. */
static void request_on_event(void *data)
{
    struct play_request *q = data;

    if (q->state == REQUEST_DONE)
        return;
    if (q->state == REQUEST_SENT) {
        if (q->boots != play_manager_boots(q->play->cluster.manager))
            q->state = REQUEST_UNSENT; /* it died with its manager */
        else if (simuv_now_usec() - q->sent_usec > PATIENCE_USEC
                 && play_cluster_is_calm(q->play, PATIENCE_USEC))
            play_break(q->play, "progress", "%s %s has no answer after %d s",
                       request_names[q->kind], request_target(q),
                       (int)(PATIENCE_USEC / USEC_PER_SEC));
    }
    if (q->state == REQUEST_UNSENT)
        request_send(q);
    if (q->state != REQUEST_DONE)
        simuv_at(simuv_now_usec() + LOOK_USEC, request_on_event, q);
}
