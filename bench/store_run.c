/* SPDX-License-Identifier: Apache-2.0 */
/* store_run.c - sessions through store_commit(), as the manager commits them */
#include "store_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/fixture.h"

/* ---- events ---- */

static void add_created(struct event_batch *batch, const struct store_run *run, size_t i)
{
    struct session *s = &event_batch_add(batch, EVENT_SESSION_CREATED, 1)->session;

    *s = (struct session){ .id = uuid_random(),
                           .type = SESSION_BATCH,
                           .priority = 10,
                           .user_id = run->user_id,
                           .project_id = run->project_id,
                           .access_key = PIPELINE_ACCESS_KEY,
                           .domain = aq_strdup("default"),
                           .resource_group = aq_strdup("default"),
                           .spec = session_spec_copy(
                               &(struct session_spec){ .image = "", .command = "true" }),
                           .created_usec = clock_realtime_usec(),
                           .kernels = aq_alloc(sizeof(*s->kernels)),
                           .kernel_count = 1 };
    (void)snprintf(s->name, sizeof(s->name), "bench-%zu", i);
    s->status_changed_usec = s->created_usec;
    s->kernels[0] = (struct kernel){
        .id = uuid_random(), .role = "main", .index = 1, .status_changed_usec = s->created_usec
    };
    if (slots_set(&s->kernels[0].requested, slot_name_intern("cpu", 3), AMOUNT_ONE) < 0
        || slots_set(&s->kernels[0].requested, slot_name_intern("mem", 3), 1 << 30) < 0)
        abort();
}

static void add_placed(struct event_batch *batch, const struct store_run *run, size_t i)
{
    const struct store_run_session *s = &run->sessions[i];
    int64_t now = clock_realtime_usec();
    struct event *e = event_batch_add(batch, EVENT_KERNEL_STATUS, now);

    e->kernel_status = (struct event_kernel_status){ .id = s->kernel,
                                                     .session_id = s->id,
                                                     .from = KERNEL_PENDING,
                                                     .to = KERNEL_SCHEDULED,
                                                     .agent_id = aq_strdup(PIPELINE_AGENT),
                                                     .alloc = aq_strdup(PIPELINE_ALLOC) };
    e = event_batch_add(batch, EVENT_SESSION_STATUS, now);
    e->session_status = (struct event_session_status){ .id = s->id,
                                                       .from = SESSION_PENDING,
                                                       .to = SESSION_SCHEDULED };
    e = event_batch_add(batch, EVENT_SESSION_ATTEMPT, now);
    e->attempt.row = s->row;
    e->attempt.kind = "placed";
    e->attempt.count = 1;
    e->attempt.is_first = true;
    e->attempt.first_usec = now;
    e->attempt.detail = aq_strdup(PIPELINE_CHOICES);
}

/* ---- sending ---- */

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch);

static void send_batch(struct store_run *run)
{
    size_t end = AQ_MIN(run->count, run->sent + run->at_a_time);
    struct event_batch *batch = event_batch_new();

    for (; run->sent < end; run->sent++) {
        if (run->work == STORE_CREATES)
            add_created(batch, run, run->sent);
        else
            add_placed(batch, run, run->sent);
    }
    store_commit(run->store, batch, on_committed, run);
}

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch)
{
    struct store_run *run = data;

    if (result < 0 && run->result == 0) {
        run->result = result;
        run->err = *err;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const struct session *s = &batch->events[i].session;

        if (batch->events[i].kind == EVENT_SESSION_CREATED)
            run->sessions[run->done++] = (struct store_run_session){ s->id, s->kernels[0].id,
                                                                     s->row };
        else
            run->done += batch->events[i].kind == EVENT_SESSION_STATUS;
    }
    event_batch_free(batch);
    if (run->sent < run->count && run->result == 0)
        send_batch(run);
}

/* ---- together ---- */

static int find_accounts(void *data, struct event *e, struct aq_error *err)
{
    struct store_run *run = data;

    (void)err;
    if (e->kind == EVENT_PROJECT_SAVED)
        run->project_id = e->project.id;
    if (e->kind == EVENT_USER_SAVED)
        run->user_id = e->user.user.id;
    return 0;
}

int store_run_open(struct store_run *run, const struct store_conf *conf, size_t count,
                   struct aq_error *err)
{
    int r;

    *run = (struct store_run){ .count = count };
    run->sessions = aq_alloc_array(AQ_MAX(count, (size_t)1), sizeof(*run->sessions));
    r = store_open(conf, &run->store, err);
    if (r == 0)
        r = store_init_dev(run->store, err);
    return r < 0 ? r : store_load(run->store, find_accounts, run, err);
}

void store_run_close(struct store_run *run)
{
    store_close(AQ_TAKE(run->store));
    free(AQ_TAKE(run->sessions));
}

double store_run_measure(struct store_run *run, enum store_work work, size_t together,
                         struct aq_error *err)
{
    size_t batches = work == STORE_CREATES ? together : 1;
    int64_t began = clock_monotonic_usec();

    run->work = work;
    run->sent = run->done = 0;
    run->at_a_time = together / batches;
    for (size_t i = 0; i < batches && run->sent < run->count; i++)
        send_batch(run);
    store_flush(run->store);
    if (run->result < 0) {
        *err = run->err;
        return run->result;
    }
    return (double)run->done * 1e6 / (double)(clock_monotonic_usec() - began);
}
