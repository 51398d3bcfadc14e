#include "sim/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "sched/fair.h"
#include "sim/stage.h"

#define USERS 16
#define FACTORS_EVERY_SEC 3600
#define HALF_LIFE_SEC (7 * 86400.0)

struct arrival {
    int64_t at_sec;
    uint32_t task, owner;
};

struct ending {
    int64_t at_sec;
    uint32_t handle, task;
};

/* Of a user; exponentially decayed GPU seconds. */
struct usage {
    double gpu_sec;
    int64_t gpu_milli_now;
};

struct run {
    const struct replay *replay;
    struct trace_nodes nodes; /* kept */
    struct stage stage;
    struct arena arena;
    struct arrival *arrivals;
    size_t arrival_count;
    struct ending *endings; /* a heap, the next on top */
    size_t ending_count, ending_cap;
    uint32_t *tasks;        /* by handle: the arrival */
    size_t task_cap;
    double *waits;
    size_t wait_count;
    struct usage usage[USERS];
    int64_t factors_sec;
    int64_t now_sec, last_sec;
    int64_t busy_milli;     /* GPU in use */
    size_t queue;
    double idle_sum, idle_time, busy_sum, busy_time, queue_sum;
};

/* ---- the size of the cluster ---- */

static bool has_times(const struct trace_task *t)
{
    return t->created_sec >= 0 && t->duration_sec >= 0;
}

struct change {
    int64_t at_sec, gpu_milli;
};

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return (x->gpu_milli > y->gpu_milli) - (x->gpu_milli < y->gpu_milli);
}

/* The mean of what 'changes' add up to while it is at least half of its peak. */
static double busy_demand(const struct change *changes, size_t count)
{
    int64_t level = 0, peak = 0;
    double sum = 0, time = 0;

    for (size_t i = 0; i < count; i++) {
        level += changes[i].gpu_milli;
        peak = AQ_MAX(peak, level);
    }
    level = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        double passed = (double)(changes[i + 1].at_sec - changes[i].at_sec);

        level += changes[i].gpu_milli;
        if (2 * level >= peak) {
            sum += passed * (double)level;
            time += passed;
        }
    }
    return time > 0 ? sum / time : (double)peak;
}

static double find_demand(const struct trace_tasks *tasks, struct aq_error *err)
{
    struct change *changes = calloc(2 * tasks->count + 1, sizeof(*changes));
    size_t count = 0;
    double demand;

    if (!changes)
        return aq_fail(err, ENOMEM, "a replay");
    for (size_t i = 0; i < tasks->count; i++) {
        const struct trace_task *t = &tasks->items[i];

        if (!has_times(t) || t->gpus == 0)
            continue;
        changes[count++] = (struct change){ t->created_sec, task_gpu_milli(t) };
        changes[count++] = (struct change){ t->created_sec + t->duration_sec, -task_gpu_milli(t) };
    }
    qsort(changes, count, sizeof(*changes), compare_changes);
    demand = busy_demand(changes, count);
    free(changes);
    return demand;
}

/* Every n-th node, so that all kinds are kept in proportion. */
static int keep_nodes(struct run *run, struct replay_result *ret, struct aq_error *err)
{
    const struct trace_nodes *all = run->replay->nodes;
    double demand = find_demand(run->replay->tasks, err), part;
    int64_t gpu_milli = 0, kept = 0;

    if (demand < 0)
        return -ENOMEM;
    if (!(run->nodes.items = calloc(all->count + 1, sizeof(*run->nodes.items))))
        return aq_fail(err, ENOMEM, "a replay");
    for (size_t i = 0; i < all->count; i++)
        gpu_milli += all->items[i].gpus * INT64_C(1000);
    part = gpu_milli && demand > 0 ? AQ_MIN(demand / run->replay->load / (double)gpu_milli, 1.0) : 1;
    for (size_t i = 0; i < all->count; i++)
        if ((size_t)((double)(i + 1) * part) > run->nodes.count || part == 1) {
            run->nodes.items[run->nodes.count++] = all->items[i];
            kept += all->items[i].gpus * INT64_C(1000);
        }
    ret->nodes = run->nodes.count;
    ret->load = kept ? demand / (double)kept : 0;
    return kept ? 0 : aq_fail_field(err, EINVAL, "nodes", "no GPU is left with that load");
}

/* ---- arrivals ---- */

/* Could an empty node hold it? */
static bool can_ever_run(const struct run *r, const struct trace_task *t)
{
    for (size_t i = 0; i < r->nodes.count; i++) {
        const struct trace_node *n = &r->nodes.items[i];
        bool is_model = t->model_count == 0 || t->gpus == 0;

        for (uint32_t m = 0; m < t->model_count && !is_model; m++)
            is_model = n->model && strcmp(n->model, t->models[m]) == 0;
        if (is_model && n->cpu_milli >= t->cpu_milli && n->memory_mib >= t->memory_mib &&
            n->gpus >= t->gpus)
            return true;
    }
    return false;
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* User k has 1/(k+1) of the weight. */
static uint32_t draw_user(struct random *random)
{
    double total = 0, at;

    for (int k = 0; k < USERS; k++)
        total += 1.0 / (k + 1);
    at = (double)(random_next(random) >> 11) / 9007199254740992.0 * total;
    for (uint32_t k = 0; k + 1 < USERS; k++)
        if ((at -= 1.0 / (k + 1)) < 0)
            return k;
    return USERS - 1;
}

/* The same users for the same names; beyond the sixteenth they share places. */
static uint32_t user_of(const struct trace_task *t, struct random *random)
{
    uint32_t hash = 2166136261u;

    if (!t->user)
        return draw_user(random);
    for (const char *c = t->user; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hash % USERS;
}

static int read_arrivals(struct run *run, uint64_t seed, struct replay_result *ret,
                         struct aq_error *err)
{
    const struct replay *r = run->replay;
    struct random random = random_make(seed);

    run->arrivals = calloc(r->tasks->count + 1, sizeof(*run->arrivals));
    run->waits = calloc(r->tasks->count + 1, sizeof(*run->waits));
    if (!run->arrivals || !run->waits)
        return aq_fail(err, ENOMEM, "a replay");
    for (size_t i = 0; i < r->tasks->count; i++) {
        const struct trace_task *t = &r->tasks->items[i];
        uint32_t owner = user_of(t, &random);

        if (!has_times(t) || !can_ever_run(run, t))
            ret->left_out++;
        else
            run->arrivals[run->arrival_count++]
                = (struct arrival){ t->created_sec, (uint32_t)i, owner };
    }
    if (run->arrival_count == 0)
        return aq_fail_field(err, EINVAL, "tasks", "no task says when it came and ended; a replay "
                             "in time needs creation_time and deletion_time");
    qsort(run->arrivals, run->arrival_count, sizeof(*run->arrivals), compare_arrivals);
    return 0;
}

/* ---- endings ---- */

static bool ends_before(const struct ending *a, const struct ending *b)
{
    return a->at_sec != b->at_sec ? a->at_sec < b->at_sec : a->task < b->task;
}

static int push_ending(struct run *run, struct ending e)
{
    size_t at = run->ending_count;

    if (!vec_grow(&run->endings, &run->ending_cap, run->ending_count + 1, sizeof(e)))
        return -ENOMEM;
    run->ending_count++;
    for (; at > 0 && ends_before(&e, &run->endings[(at - 1) / 2]); at = (at - 1) / 2)
        run->endings[at] = run->endings[(at - 1) / 2];
    run->endings[at] = e;
    return 0;
}

static struct ending pop_ending(struct run *run)
{
    struct ending top = run->endings[0], last = run->endings[--run->ending_count];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < run->ending_count; at = child) {
        if (child + 1 < run->ending_count &&
            ends_before(&run->endings[child + 1], &run->endings[child]))
            child++;
        if (!ends_before(&run->endings[child], &last))
            break;
        run->endings[at] = run->endings[child];
    }
    run->endings[at] = last;
    return top;
}

/* ---- owners ---- */

/* Usage decays and grows; the factors follow every hour. */
static int refresh_owners(struct run *run)
{
    double passed = (double)(run->now_sec - run->factors_sec);

    if (run->replay->order != &sched_fair_share && run->replay->order != &sched_drf)
        return 0;
    if (run->factors_sec >= 0 && passed < FACTORS_EVERY_SEC)
        return 0;
    for (uint32_t u = 0; u < USERS; u++) {
        struct fair_slot slot = { .capacity = (double)run->stage.gpu_milli / 1000, .weight = 1 };
        struct sched_owner owner = { .domain_factor = 1, .project_factor = 1 };

        if (run->factors_sec >= 0)
            run->usage[u].gpu_sec
                = run->usage[u].gpu_sec * fair_factor(passed / HALF_LIFE_SEC, 1) +
                  passed * (double)run->usage[u].gpu_milli_now / 1000;
        slot.used = run->usage[u].gpu_sec;
        owner.user_factor = fair_factor(fair_usage(&slot, 1, 7) * USERS, 1);
        if ((run->replay->order == &sched_fair_share || run->factors_sec < 0) &&
            sched_set_owner(run->stage.sched, u, &owner) < 0)
            return -ENOMEM;
    }
    run->factors_sec = run->now_sec;
    return 0;
}

/* ---- the clock ---- */

static void add_time(struct run *run, int64_t to)
{
    double passed = (double)(to - run->now_sec);

    run->queue_sum += passed * (double)run->queue;
    if (run->queue) {
        run->idle_sum += passed * (double)(run->stage.gpu_milli - run->busy_milli);
        run->idle_time += passed;
    }
    if (2 * run->busy_milli >= run->stage.gpu_milli) {
        run->busy_sum += passed * (double)run->busy_milli;
        run->busy_time += passed;
    }
    run->now_sec = to;
}

static void note_point(struct run *run, struct replay_result *ret)
{
    double step = (double)run->last_sec / (REPLAY_POINTS - 1);

    while (ret->point_count < REPLAY_POINTS &&
           (double)run->now_sec >= step * (double)ret->point_count) {
        ret->points[ret->point_count].at_sec = step * (double)ret->point_count;
        ret->points[ret->point_count].queue = (double)run->queue;
        ret->points[ret->point_count].allocation_pct
            = 100.0 * (double)run->busy_milli / (double)AQ_MAX(run->stage.gpu_milli, INT64_C(1));
        ret->point_count++;
    }
}

static int end_one(struct run *run)
{
    struct ending e = pop_ending(run);
    const struct arrival *a = &run->arrivals[e.task];
    int64_t gpu = task_gpu_milli(&run->replay->tasks->items[a->task]);

    run->busy_milli -= gpu;
    run->usage[a->owner].gpu_milli_now -= gpu;
    return sched_drop(run->stage.sched, e.handle);
}

static int begin_one(struct run *run, size_t arrival, struct aq_error *err)
{
    const struct arrival *a = &run->arrivals[arrival];
    struct sched_session session = stage_session(&run->stage, a->task, (int64_t)arrival);
    uint32_t handle;
    int r;

    session.owner = a->owner;
    session.lifetime_usec = AQ_MAX(run->replay->tasks->items[a->task].duration_sec, INT64_C(1)) *
                            USEC_PER_SEC;
    if ((r = sched_add(run->stage.sched, &session, &handle, err)) < 0)
        return r;
    if (!vec_grow(&run->tasks, &run->task_cap, (size_t)handle + 1, sizeof(*run->tasks)))
        return aq_fail(err, ENOMEM, "a replay");
    run->tasks[handle] = (uint32_t)arrival;
    run->queue++;
    return 0;
}

static int pass(struct run *run, struct aq_error *err)
{
    struct sched_result result;
    int r = sched_pass(run->stage.sched, run->now_sec * USEC_PER_SEC, &run->arena, &result, err);

    for (size_t i = 0; r == 0 && i < result.count; i++) {
        const struct sched_outcome *out = &result.outcomes[i];
        const struct arrival *a;
        const struct trace_task *t;

        if (out->verdict != SCHED_PLACED)
            continue;
        a = &run->arrivals[run->tasks[out->session]];
        t = &run->replay->tasks->items[a->task];
        run->waits[run->wait_count++] = (double)(run->now_sec - a->at_sec);
        run->queue--;
        run->busy_milli += task_gpu_milli(t);
        run->usage[a->owner].gpu_milli_now += task_gpu_milli(t);
        if (push_ending(run, (struct ending){ run->now_sec + AQ_MAX(t->duration_sec, INT64_C(1)),
                                              out->session, run->tasks[out->session] }) < 0)
            r = aq_fail(err, ENOMEM, "a replay");
    }
    arena_clear(&run->arena, 1 << 20);
    return r;
}

static int go(struct run *run, struct replay_result *ret, struct aq_error *err)
{
    size_t next = 0;
    int r = 0;

    run->last_sec = run->arrivals[run->arrival_count - 1].at_sec;
    run->factors_sec = -1;
    while (r == 0 && (next < run->arrival_count || run->ending_count)) {
        int64_t to = next < run->arrival_count ? run->arrivals[next].at_sec : INT64_MAX;

        if (run->ending_count && run->endings[0].at_sec < to)
            to = run->endings[0].at_sec;
        note_point(run, ret);
        add_time(run, to);
        while (run->ending_count && run->endings[0].at_sec == to && r == 0)
            r = end_one(run) < 0 ? aq_fail(err, ENOMEM, "a replay") : 0;
        if (r == 0 && refresh_owners(run) < 0)
            r = aq_fail(err, ENOMEM, "a replay");
        for (; r == 0 && next < run->arrival_count && run->arrivals[next].at_sec == to; next++)
            r = begin_one(run, next, err);
        if (r == 0)
            r = pass(run, err);
    }
    return r;
}

/* ---- figures ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sum_up(struct run *run, struct replay_result *ret)
{
    double sum = 0;

    qsort(run->waits, run->wait_count, sizeof(*run->waits), compare_doubles);
    for (size_t i = 0; i < run->wait_count; i++)
        sum += run->waits[i];
    ret->arrived = run->arrival_count;
    if (run->wait_count) {
        ret->waiting_mean_sec = sum / (double)run->wait_count;
        ret->waiting_p95_sec = run->waits[(run->wait_count - 1) * 95 / 100];
    }
    ret->idle_gpus = run->idle_time > 0 ? run->idle_sum / run->idle_time / 1000 : 0;
    if (run->busy_time > 0)
        ret->allocation_pct
            = 100.0 * run->busy_sum / run->busy_time / (double)run->stage.gpu_milli;
    ret->queue_mean = run->now_sec > 0 ? run->queue_sum / (double)run->now_sec : 0;
    ret->end_sec = (double)run->now_sec;
}

int replay_run(const struct replay *replay, uint64_t seed, struct replay_result *ret,
               struct aq_error *err)
{
    struct sched_options options = { .sequencer = replay->order, .backfill = replay->backfill,
        .retries_to_skip = replay->retries_to_skip, .reservations_max = 64 };
    struct run run = { .replay = replay };
    int r;

    *ret = (struct replay_result){ 0 };
    r = keep_nodes(&run, ret, err);
    if (r == 0)
        r = stage_open(&run.stage, &run.nodes, replay->tasks, replay->policy, &options, seed, err);
    if (r == 0)
        r = read_arrivals(&run, seed, ret, err);
    if (r == 0)
        r = go(&run, ret, err);
    if (r == 0)
        sum_up(&run, ret);
    free(run.nodes.items);
    free(run.arrivals);
    free(run.endings);
    free(run.tasks);
    free(run.waits);
    arena_done(&run.arena);
    stage_close(&run.stage);
    return r;
}
