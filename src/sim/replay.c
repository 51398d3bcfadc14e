/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - a trace in time: sessions come, wait, run and leave */
#include "sim/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "sched/fair.h"
#include "sim/random.h"
#include "sim/sim_cluster.h"

#define FACTORS_EVERY_SEC 3600
#define HALF_LIFE_SEC (7 * 86400.0)

struct replay_ending {
    int64_t at_sec;
    uint32_t handle, task;
};

/* Of a user; exponentially decayed GPU seconds. */
struct replay_usage {
    double gpu_sec;
    int64_t gpu_milli_now;
};

struct replay_run {
    const struct replay *replay;
    uint64_t seed;
    struct workload load;
    struct sim_cluster cluster;
    struct arena arena;
    struct replay_ending *endings; /* a heap, the next on top */
    size_t ending_count, ending_cap;
    uint32_t *tasks; /* by handle: the arrival */
    size_t task_cap;
    double *waits;
    size_t wait_count;
    struct replay_usage usage[WORKLOAD_USERS];
    int64_t factors_sec;
    int64_t now_sec, last_sec;
    int64_t busy_milli; /* GPU in use */
    size_t queue;
    double idle_sum, idle_time, busy_sum, busy_time, queue_sum;
};

/* ---- endings ---- */

static bool replay_ends_before(const struct replay_ending *a, const struct replay_ending *b)
{
    return a->at_sec != b->at_sec ? a->at_sec < b->at_sec : a->task < b->task;
}

static void replay_push_ending(struct replay_run *run, struct replay_ending e)
{
    size_t at = run->ending_count;

    vec_grow(&run->endings, &run->ending_cap, run->ending_count + 1, sizeof(e));
    run->ending_count++;
    for (; at > 0 && replay_ends_before(&e, &run->endings[(at - 1) / 2]); at = (at - 1) / 2)
        run->endings[at] = run->endings[(at - 1) / 2];
    run->endings[at] = e;
}

static struct replay_ending replay_pop_ending(struct replay_run *run)
{
    struct replay_ending top = run->endings[0], last = run->endings[--run->ending_count];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < run->ending_count; at = child) {
        if (child + 1 < run->ending_count
            && replay_ends_before(&run->endings[child + 1], &run->endings[child]))
            child++;
        if (!replay_ends_before(&run->endings[child], &last))
            break;
        run->endings[at] = run->endings[child];
    }
    run->endings[at] = last;
    return top;
}

/* ---- owners ---- */

/* Usage decays and grows; the factors follow every hour. */
static void replay_refresh_owners(struct replay_run *run)
{
    double passed = (double)(run->now_sec - run->factors_sec);

    if (run->replay->order != &sched_fair_share && run->replay->order != &sched_drf)
        return;
    if (run->factors_sec >= 0 && passed < FACTORS_EVERY_SEC)
        return;
    for (uint32_t u = 0; u < WORKLOAD_USERS; u++) {
        struct fair_slot slot = { .capacity = (double)run->cluster.gpu_milli / 1000, .weight = 1 };
        struct sched_owner owner = { .domain_factor = 1, .project_factor = 1 };

        if (run->factors_sec >= 0)
            run->usage[u].gpu_sec = run->usage[u].gpu_sec * fair_factor(passed / HALF_LIFE_SEC, 1)
                                    + passed * (double)run->usage[u].gpu_milli_now / 1000;
        slot.used = run->usage[u].gpu_sec;
        owner.user_factor = fair_factor(fair_usage(&slot, 1, 7) * WORKLOAD_USERS, 1);
        if (run->replay->order == &sched_fair_share || run->factors_sec < 0)
            sched_set_owner(run->cluster.sched, u, &owner);
    }
    run->factors_sec = run->now_sec;
}

/* ---- the clock ---- */

static void replay_add_time(struct replay_run *run, int64_t to)
{
    double passed = (double)(to - run->now_sec);

    run->queue_sum += passed * (double)run->queue;
    if (run->queue) {
        run->idle_sum += passed * (double)(run->cluster.gpu_milli - run->busy_milli);
        run->idle_time += passed;
    }
    if (2 * run->busy_milli >= run->cluster.gpu_milli) {
        run->busy_sum += passed * (double)run->busy_milli;
        run->busy_time += passed;
    }
    run->now_sec = to;
}

static void replay_note_point(struct replay_run *run, struct replay_result *ret)
{
    double step = (double)run->last_sec / (REPLAY_POINTS - 1);

    while (ret->point_count < REPLAY_POINTS
           && (double)run->now_sec >= step * (double)ret->point_count) {
        ret->points[ret->point_count].at_sec = step * (double)ret->point_count;
        ret->points[ret->point_count].queue = (double)run->queue;
        ret->points[ret->point_count].allocation_pct = 100.0 * (double)run->busy_milli
                                                       / (double)AQ_MAX(run->cluster.gpu_milli,
                                                                        INT64_C(1));
        ret->point_count++;
    }
}

static void replay_end_session(struct replay_run *run)
{
    struct replay_ending e = replay_pop_ending(run);
    const struct arrival *a = &run->load.arrivals[e.task];
    int64_t gpu = task_gpu_milli(&run->replay->tasks->items[a->task]);

    run->busy_milli -= gpu;
    run->usage[a->owner].gpu_milli_now -= gpu;
    sched_drop(run->cluster.sched, e.handle);
}

/* The same sessions for every order and policy. */
static bool replay_is_unlimited(const struct replay_run *run, size_t arrival)
{
    struct random random = { run->seed + arrival };

    return random_next(&random) % 100 < run->replay->unlimited_pct;
}

static int replay_add_session(struct replay_run *run, size_t arrival, struct aq_error *err)
{
    const struct arrival *a = &run->load.arrivals[arrival];
    struct sched_session session = sim_cluster_session(&run->cluster, a->task, (int64_t)arrival);
    uint32_t handle;
    int r;

    session.owner = a->owner;
    session.eligible_usec = a->at_sec * USEC_PER_SEC;
    if (!replay_is_unlimited(run, arrival))
        session.lifetime_usec = AQ_MAX(a->duration_sec, INT64_C(1)) * USEC_PER_SEC;
    if ((r = sched_add(run->cluster.sched, &session, &handle, err)) < 0)
        return r;
    vec_grow(&run->tasks, &run->task_cap, (size_t)handle + 1, sizeof(*run->tasks));
    run->tasks[handle] = (uint32_t)arrival;
    run->queue++;
    return 0;
}

static void replay_pass(struct replay_run *run)
{
    struct sched_result result;

    sched_pass(run->cluster.sched, run->now_sec * USEC_PER_SEC, &run->arena, &result);
    for (size_t i = 0; i < result.count; i++) {
        const struct sched_outcome *out = &result.outcomes[i];
        const struct arrival *a;
        const struct trace_task *t;

        if (out->verdict != SCHED_PLACED)
            continue;
        a = &run->load.arrivals[run->tasks[out->session]];
        t = &run->replay->tasks->items[a->task];
        run->waits[run->wait_count++] = (double)(run->now_sec - a->at_sec);
        run->queue--;
        run->busy_milli += task_gpu_milli(t);
        run->usage[a->owner].gpu_milli_now += task_gpu_milli(t);
        replay_push_ending(
            run, (struct replay_ending){ run->now_sec + AQ_MAX(a->duration_sec, INT64_C(1)),
                                         out->session, run->tasks[out->session] });
    }
    arena_clear(&run->arena, 1 << 20);
}

/* The nodes are chosen while the cluster is empty. */
static int replay_book(struct replay_run *run, struct aq_error *err)
{
    static const char gpu[] = "cuda.shares";
    const struct replay_booking *b = &run->replay->booking;
    AQ_CLEANUP(slots_donep) struct slots amounts = { .items = NULL };
    struct sched_booking booking = { .name = "",
                                     .starts_usec = b->starts_sec * USEC_PER_SEC,
                                     .ends_usec = b->ends_sec * USEC_PER_SEC,
                                     .amounts = &amounts,
                                     .place_count = (size_t)b->nodes };
    const struct sched_booking_wish wish = { .starts_usec = booking.starts_usec,
                                             .ends_usec = booking.ends_usec,
                                             .amounts = &amounts,
                                             .place_count = booking.place_count };
    struct sched_booking_obstacle obstacle;
    struct sched_place *places;

    slots_put(&amounts, slot_name_intern(gpu, sizeof(gpu) - 1), b->gpus * AMOUNT_ONE);
    if (sched_booking_place(run->cluster.sched, &wish, 0, &run->arena, &places, &obstacle) < 0)
        return aq_fail_field(err, EINVAL, "--booking",
                             "--booking: %zu of %lld nodes have %lld GPUs; book less",
                             obstacle.fitting, (long long)b->nodes, (long long)b->gpus);
    booking.places = places;
    return sched_booking_set(run->cluster.sched, &booking, 0, err);
}

/* A pass may start others when a booking ends. */
static int64_t replay_booking_edge(const struct replay_run *run)
{
    const struct replay_booking *b = &run->replay->booking;

    return b->nodes && run->now_sec < b->ends_sec ? b->ends_sec : INT64_MAX;
}

static int replay_advance(struct replay_run *run, struct replay_result *ret, struct aq_error *err)
{
    size_t next = 0;
    int r = 0;

    run->last_sec = run->load.arrivals[run->load.count - 1].at_sec;
    run->factors_sec = -1;
    if (run->replay->booking.nodes)
        r = replay_book(run, err);
    while (r == 0 && (next < run->load.count || run->ending_count || run->queue)) {
        int64_t to = next < run->load.count ? run->load.arrivals[next].at_sec : INT64_MAX;

        if (run->ending_count && run->endings[0].at_sec < to)
            to = run->endings[0].at_sec;
        if (run->queue)
            to = AQ_MIN(to, replay_booking_edge(run));
        if (to == INT64_MAX)
            break; /* the rest fits nowhere */
        replay_note_point(run, ret);
        replay_add_time(run, to);
        while (run->ending_count && run->endings[0].at_sec == to)
            replay_end_session(run);
        replay_refresh_owners(run);
        for (; r == 0 && next < run->load.count && run->load.arrivals[next].at_sec == to; next++)
            r = replay_add_session(run, next, err);
        if (r == 0)
            replay_pass(run);
    }
    return r;
}

/* ---- figures ---- */

static int replay_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void replay_summarize(struct replay_run *run, struct replay_result *ret)
{
    double sum = 0;

    qsort(run->waits, run->wait_count, sizeof(*run->waits), replay_compare_doubles);
    for (size_t i = 0; i < run->wait_count; i++)
        sum += run->waits[i];
    ret->arrived = run->load.count;
    ret->left_out = run->load.left_out;
    ret->nodes = run->load.nodes.count;
    ret->load = run->load.load;
    if (run->wait_count) {
        ret->waiting_mean_sec = sum / (double)run->wait_count;
        ret->waiting_p95_sec = run->waits[(run->wait_count - 1) * 95 / 100];
        ret->waiting_max_sec = run->waits[run->wait_count - 1];
    }
    ret->idle_gpus = run->idle_time > 0 ? run->idle_sum / run->idle_time / 1000 : 0;
    if (run->busy_time > 0)
        ret->allocation_pct = 100.0 * run->busy_sum / run->busy_time
                              / (double)run->cluster.gpu_milli;
    ret->queue_mean = run->now_sec > 0 ? run->queue_sum / (double)run->now_sec : 0;
    ret->end_sec = (double)run->now_sec;
}

int replay_run(const struct replay *replay, uint64_t seed, struct replay_result *ret,
               struct aq_error *err)
{
    struct sched_options options = { .sequencer = replay->order,
                                     .backfill = replay->backfill,
                                     .retries_to_skip = replay->retries_to_skip,
                                     .reservations_max = 64,
                                     .max_wait_usec = replay->max_wait_sec * USEC_PER_SEC };
    struct replay_run run = { .replay = replay, .seed = seed };
    int r;

    *ret = (struct replay_result){ 0 };
    r = workload_make(replay->nodes, replay->tasks, &replay->load, seed, &run.load, err);
    if (r == 0)
        r = sim_cluster_open(&run.cluster, &run.load.nodes, replay->tasks, replay->policy, &options,
                             seed, err);
    if (r == 0)
        run.waits = aq_alloc_array(run.load.count, sizeof(*run.waits));
    if (r == 0)
        r = replay_advance(&run, ret, err);
    if (r == 0)
        replay_summarize(&run, ret);
    workload_done(&run.load);
    free(run.endings);
    free(run.tasks);
    free(run.waits);
    arena_done(&run.arena);
    sim_cluster_close(&run.cluster);
    return r;
}
