/* SPDX-License-Identifier: Apache-2.0 */
/* serving_replay.c - replay requests to a model service */
#include "sim/serving_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum replica_state { REPLICA_NONE, REPLICA_STARTING, REPLICA_READY, REPLICA_DRAINING };

struct replica {
    enum replica_state state;
    int64_t in_flight, since_usec; /* of the decision to start it */
};

struct finish { /* of a request */
    int64_t usec, waited_since;
    size_t replica;
};

struct serving_run {
    const struct serving_model *model;
    const struct autoscale *scaling;
    const struct request_trace *arrivals;
    struct replica replicas[SERVING_REPLICAS_MAX];
    size_t used; /* places of 'replicas' */
    struct finish *heap;
    size_t heap_count;
    int64_t now_usec, wanted, share_micro;
    size_t arrived, taken; /* requests that came, and of these that a replica took */
    int64_t busy;          /* requests under way */
    /* Since the policy was asked last. */
    double in_flight_area, busy_area, ready_area, latency_sum;
    size_t answered, arrived_before;
    double *waits; /* seconds of each request */
    struct serving_result *result;
};

/* ---- requests under way, by the time at which they end ---- */

static void replay_push(struct serving_run *run, struct finish f)
{
    size_t i = run->heap_count++;

    while (i > 0 && run->heap[(i - 1) / 2].usec > f.usec) {
        run->heap[i] = run->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    run->heap[i] = f;
}

static struct finish replay_pop(struct serving_run *run)
{
    struct finish first = run->heap[0], last = run->heap[--run->heap_count];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < run->heap_count) {
        if (child + 1 < run->heap_count && run->heap[child + 1].usec < run->heap[child].usec)
            child++;
        if (run->heap[child].usec >= last.usec)
            break;
        run->heap[i] = run->heap[child];
        i = child;
    }
    run->heap[i] = last;
    return first;
}

/* ---- replicas ---- */

static int64_t replay_count(const struct serving_run *run, enum replica_state state)
{
    int64_t count = 0;

    for (size_t i = 0; i < run->used; i++)
        count += run->replicas[i].state == state;
    return count;
}

static double replay_part(const struct serving_run *run)
{
    int64_t max = run->scaling->share_max_micro;

    return max ? (double)run->share_micro / (double)max : 1;
}

static int64_t replay_slots(const struct serving_run *run)
{
    return AQ_MAX((int64_t)((double)run->model->slots * replay_part(run) + 1e-9), 1);
}

static void replay_add_replica(struct serving_run *run)
{
    size_t i = 0;

    while (i < run->used && run->replicas[i].state != REPLICA_NONE)
        i++;
    if (i == SERVING_REPLICAS_MAX)
        return;
    run->used = AQ_MAX(run->used, i + 1);
    run->replicas[i] = (struct replica){ REPLICA_STARTING, 0, run->now_usec };
}

/* One that starts, the newest; else the ready one with the fewest requests. */
static void replay_drop_replica(struct serving_run *run)
{
    struct replica *chosen = NULL;

    for (size_t i = 0; i < run->used; i++) {
        struct replica *r = &run->replicas[i];

        if (r->state != REPLICA_STARTING && r->state != REPLICA_READY)
            continue;
        if (!chosen || (r->state == REPLICA_STARTING && chosen->state == REPLICA_READY)
            || (r->state == chosen->state
                && (r->state == REPLICA_STARTING ? r->since_usec > chosen->since_usec
                                                 : r->in_flight < chosen->in_flight)))
            chosen = r;
    }
    if (chosen)
        chosen->state = chosen->in_flight ? REPLICA_DRAINING : REPLICA_NONE;
}

static void replay_scale(struct serving_run *run, int64_t wanted)
{
    int64_t have = replay_count(run, REPLICA_STARTING) + replay_count(run, REPLICA_READY);

    for (; have < wanted; have++)
        replay_add_replica(run);
    for (; have > wanted; have--)
        replay_drop_replica(run);
    run->result->replicas_max = AQ_MAX(run->result->replicas_max,
                                       wanted + replay_count(run, REPLICA_DRAINING));
}

/* ---- events ---- */

/* Send what waits to replicas that have room. */
static void replay_dispatch(struct serving_run *run)
{
    int64_t slots = replay_slots(run);

    while (run->taken < run->arrived) {
        const struct traced_request *a = &run->arrivals->items[run->taken];
        struct replica *least = NULL;
        int64_t usec;

        for (size_t i = 0; i < run->used; i++)
            if (run->replicas[i].state == REPLICA_READY
                && (!least || run->replicas[i].in_flight < least->in_flight))
                least = &run->replicas[i];
        if (!least || least->in_flight >= slots)
            return;
        usec = (a->prompt_tokens * run->model->prompt_usec
                + a->output_tokens * run->model->output_usec)
               / 1000;
        run->waits[run->taken++] = (double)(run->now_usec - a->usec) / USEC_PER_SEC;
        least->in_flight++;
        run->busy++;
        replay_push(
            run, (struct finish){ run->now_usec + usec, a->usec, (size_t)(least - run->replicas) });
    }
}

static void replay_finish(struct serving_run *run)
{
    struct finish f = replay_pop(run);
    struct replica *r = &run->replicas[f.replica];

    r->in_flight--;
    run->busy--;
    run->answered++;
    run->latency_sum += (double)(f.usec - f.waited_since) / USEC_PER_SEC;
    if (r->state == REPLICA_DRAINING && r->in_flight == 0)
        r->state = REPLICA_NONE;
}

static void replay_note_decision(struct serving_run *run, const struct autoscale_wish *wish)
{
    struct serving_result *result = run->result;
    struct serving_decision *d;

    if (result->decisions_in_all++ >= SERVING_DECISIONS_MAX)
        return;
    result->decisions = aq_realloc(result->decisions,
                                   (result->decision_count + 1) * sizeof(*result->decisions));
    d = &result->decisions[result->decision_count++];
    *d = (struct serving_decision){ run->now_usec, wish->replicas, wish->share_micro, "" };
    memcpy(d->reason, wish->reason, sizeof(d->reason));
}

static void replay_ask(struct serving_run *run, const struct serving_policy_ops *ops,
                       struct serving_policy *policy)
{
    double seconds = (double)SERVING_TICK_USEC / USEC_PER_SEC;
    struct serving_view view = {
        .sample = { .now_usec = run->now_usec,
                    .replicas_min = run->model->replicas_min,
                    .replicas_max = run->model->replicas_max,
                    .wanted = run->wanted,
                    .ready = replay_count(run, REPLICA_READY),
                    .share_micro = run->share_micro,
                    .in_flight = (double)(run->busy + (int64_t)(run->arrived - run->taken)),
                    .arrived = (int64_t)(run->arrived - run->arrived_before) },
        .slots = run->model->slots,
        .in_flight_mean = run->in_flight_area / seconds,
        .rate = (double)(run->arrived - run->arrived_before) / seconds,
        .latency = run->answered ? run->latency_sum / (double)run->answered : NAN,
        .use = run->ready_area > 0 ? run->busy_area / run->ready_area : NAN,
    };
    struct autoscale_wish wish;

    ops->decide(policy, &view, &wish);
    if (wish.replicas != run->wanted || wish.share_micro != run->share_micro)
        replay_note_decision(run, &wish);
    run->wanted = wish.replicas;
    run->share_micro = wish.share_micro;
    replay_scale(run, run->wanted);
    run->in_flight_area = run->busy_area = run->ready_area = run->latency_sum = 0;
    run->answered = 0;
    run->arrived_before = run->arrived;
}

/* Let time pass, and count what it costs. */
static void replay_advance(struct serving_run *run, int64_t to_usec)
{
    double seconds = (double)(to_usec - run->now_usec) / USEC_PER_SEC;
    int64_t ready = replay_count(run, REPLICA_READY), ending = replay_count(run, REPLICA_DRAINING);

    run->result->replica_seconds += seconds
                                    * (double)(ready + ending + replay_count(run, REPLICA_STARTING))
                                    * replay_part(run);
    run->in_flight_area += seconds * (double)(run->busy + (int64_t)(run->arrived - run->taken));
    run->busy_area += seconds * (double)run->busy;
    run->ready_area += seconds * (double)((ready + ending) * replay_slots(run));
    run->now_usec = to_usec;
}

/* The time of the next replica that has started; INT64_MAX = none starts. */
static int64_t replay_next_start(const struct serving_run *run)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < run->used; i++)
        if (run->replicas[i].state == REPLICA_STARTING)
            next = AQ_MIN(next, run->replicas[i].since_usec + run->model->start_usec);
    return next;
}

static void replay_start_replicas(struct serving_run *run)
{
    for (size_t i = 0; i < run->used; i++)
        if (run->replicas[i].state == REPLICA_STARTING
            && run->replicas[i].since_usec + run->model->start_usec <= run->now_usec)
            run->replicas[i].state = REPLICA_READY;
}

/* ---- the whole ---- */

static int replay_compare_waits(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void replay_close(struct serving_run *run)
{
    struct serving_result *result = run->result;
    size_t count = run->arrivals->count;

    result->requests = count;
    for (size_t i = 0; i < count; i++) {
        result->waited += run->waits[i] > 1;
        result->wait_mean_sec += run->waits[i] / (double)count;
    }
    qsort(run->waits, count, sizeof(*run->waits), replay_compare_waits);
    result->wait_p99_sec = run->waits[(count - 1) * 99 / 100];
    result->wait_max_sec = run->waits[count - 1];
}

void serving_replay(const struct request_trace *arrivals, const struct serving_model *model,
                    const struct autoscale *scaling, const struct serving_policy_ops *ops,
                    struct serving_result *ret)
{
    struct serving_run *run = aq_alloc(sizeof(*run));
    AQ_CLEANUP(serving_policy_freep) struct serving_policy *policy = serving_policy_new(scaling);
    int64_t ask_usec = 0;

    *ret = (struct serving_result){ 0 };
    *run = (struct serving_run){ .model = model,
                                 .scaling = scaling,
                                 .arrivals = arrivals,
                                 .wanted = AQ_MAX(model->replicas_min, 1),
                                 .share_micro = scaling->share_min_micro,
                                 .result = ret };
    run->heap = aq_alloc_array(arrivals->count, sizeof(*run->heap));
    run->waits = aq_alloc_array(arrivals->count, sizeof(*run->waits));
    replay_scale(run, run->wanted);
    for (size_t i = 0; i < run->used; i++)
        run->replicas[i].state = REPLICA_READY;

    while (run->arrived < arrivals->count || run->taken < run->arrived || run->busy > 0) {
        int64_t arrival_usec = run->arrived < arrivals->count ? arrivals->items[run->arrived].usec
                                                              : INT64_MAX;
        int64_t finish_usec = run->heap_count ? run->heap[0].usec : INT64_MAX;
        int64_t start_usec = replay_next_start(run);
        int64_t next = AQ_MIN(AQ_MIN(arrival_usec, finish_usec), AQ_MIN(start_usec, ask_usec));

        replay_advance(run, next);
        if (next == finish_usec)
            replay_finish(run);
        else if (next == arrival_usec)
            run->arrived++;
        else if (next == start_usec)
            replay_start_replicas(run);
        else {
            replay_ask(run, ops, policy);
            ask_usec += SERVING_TICK_USEC;
        }
        replay_dispatch(run);
    }
    replay_close(run);
    free(run->heap);
    free(run->waits);
    free(run);
}

void serving_result_done(struct serving_result *result)
{
    free(result->decisions);
    *result = (struct serving_result){ 0 };
}
