/* SPDX-License-Identifier: Apache-2.0 */
/* launch_timing.c - measuring launches with events, and charging what they took */
#include "gpu/launch_timing.h"

#include <string.h>

#include "gpu/own_region.h"
#include "gpu/throttle.h"

#define PAUSE_NS 2000000 /* of the host, between two launches of a busy program */
#define GAP_NS 20000     /* between the two records; more, and the host was held up */
#define EVENT_NS 1000    /* what an event itself takes */
#define NEXT_NS 100000   /* two launches nearer to each other follow one another */
#define WAITED_NS 20000  /* a call that took less did not wait for the device */
#define TICK_NS 2500000  /* the agent's, while several containers have work */
#define LOOK_PART 16     /* see the end of a GPU kernel by so small a part of its length late */
#define FRESH_MAX 16     /* launches of unknown cost under way at once */
#define SAMPLES 64

enum launch_timing_state {
    LAUNCH_TIMING_FREE,
    LAUNCH_TIMING_TAKEN,
    LAUNCH_TIMING_RUNNING,
    LAUNCH_TIMING_SETTLING
};

/* The own clock as a launch ended: the agent's last word, and read on from there. */
struct launch_timing_mark {
    int64_t at_ns, value_ns, now_ns;
};

struct launch_timing {
    int state;
    int device;
    CUcontext context; /* whose events these are */
    CUevent start, end;
    uint64_t key;
    int64_t paid_ns;    /* in advance, by estimate, and while it runs */
    int64_t entered_ns; /* when the first event was recorded */
    int64_t submit_ns;  /* from then until the launch was submitted */
    int64_t gap_ns;     /* until the second was recorded: the host's time */
    int64_t own_ns;     /* what the own clock showed then */
    int64_t done_ns;    /* when the second was first seen to be done; 0 = not yet */
    struct launch_timing_mark done;
    uint32_t contenders; /* when it began */
    bool is_fresh;       /* nothing was known of its cost */
    bool was_idle;       /* no other measurement was under way */
};

struct launch_timing_device {
    int open;                        /* samples not settled */
    int running;                     /* of them, under way */
    int fresh;                       /* of unknown cost */
    int64_t idle_ns;                 /* since then, if none is under way */
    int64_t busy_from;               /* on the grant clock: since then there was always one */
    int64_t seen_ns, own_done;       /* when the last one was seen to have ended, on both clocks */
    int64_t settled_ns, own_settled; /* when the last settled one had ended, on both clocks */
    CUevent last_end;                /* of the last settled sample: what it covered is paid */
    CUcontext last_context;
    struct launch_timing samples[SAMPLES];
} __attribute__((aligned(64)));

static struct launch_timing_device locals[AQ_GPU_DEVICES_MAX];

bool launch_timing_is_open(int device)
{
    return __atomic_load_n(&locals[device].open, __ATOMIC_RELAXED) > 0;
}

bool launch_timing_is_running(int device)
{
    return __atomic_load_n(&locals[device].running, __ATOMIC_RELAXED) > 0;
}

/* Does this process always have work outstanding? Pauses of the host do not count. */
static bool launch_timing_is_busy(const struct launch_timing_device *local, int64_t now)
{
    return __atomic_load_n(&local->running, __ATOMIC_RELAXED) > 0
           || now - __atomic_load_n(&local->idle_ns, __ATOMIC_RELAXED) < PAUSE_NS;
}

static void launch_timing_mark_busy(int device, int64_t now)
{
    if (!launch_timing_is_busy(&locals[device], now))
        __atomic_store_n(&locals[device].busy_from, own_region_granted_ns(device, now),
                         __ATOMIC_RELAXED);
}

void launch_timing_waited(int device, int64_t from, int64_t until)
{
    if (until - from < WAITED_NS)
        return;
    launch_timing_mark_busy(device, from);
    __atomic_store_n(&locals[device].idle_ns, until, __ATOMIC_RELAXED);
}

void launch_timing_charge(int device, int64_t now, int64_t ns)
{
    struct aq_gpu_slot_device *slot = &gpu_region.usage->slots[gpu_region.slot].devices[device];
    int64_t grant = own_region_granted_ns(device, now), keep = RATE_LIMIT_BURST_NS;

    if (launch_timing_is_busy(&locals[device], now))
        keep += grant - __atomic_load_n(&locals[device].busy_from, __ATOMIC_RELAXED);
    rate_limit_charge(own_region_usage(device), grant, ns,
                      keep < RATE_LIMIT_CARRY_NS ? keep : RATE_LIMIT_CARRY_NS);
    (void)__atomic_fetch_add(&slot->used_ns, ns, __ATOMIC_RELAXED);
}

/* Calls of our own while the program captures: allowed in relaxed mode only. */
static void launch_timing_relax_capture(int *mode)
{
    *mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
    if (__atomic_load_n(&throttle_captures, __ATOMIC_RELAXED)
        && gpu_real.cuThreadExchangeStreamCaptureMode)
        (void)gpu_real.cuThreadExchangeStreamCaptureMode(mode);
}

/* What is paid already of a launch: the part before the last settled end. Negative: it
 * began so long after that.
 */
static int64_t launch_timing_overlap(const struct launch_timing_device *local,
                                     const struct launch_timing *sample)
{
    float ms = 0;

    if (local->last_end && local->last_context == sample->context
        && gpu_real.cuEventElapsedTime(&ms, local->last_end, sample->start) == CUDA_SUCCESS)
        return (int64_t)((double)-ms * 1e6);
    return 0;
}

/* Its end event becomes the mark up to which device time is paid. */
static void launch_timing_keep_end(struct launch_timing_device *local, struct launch_timing *sample)
{
    CUevent spare = local->last_context == sample->context ? local->last_end : NULL;

    local->last_end = sample->end;
    local->last_context = sample->context;
    sample->end = spare;
}

/* A GPU kernel that an idle device had done when the second event came: it began when
 * it was submitted, not when the first event was recorded.
 */
static int64_t launch_timing_device_ns(const struct launch_timing *sample, int64_t ns)
{
    bool done_before = sample->was_idle && ns <= sample->gap_ns + EVENT_NS;

    return !done_before ? ns : ns > sample->submit_ns ? ns - sample->submit_ns : 1;
}

/* The agent's last word on the own clock. */
static int64_t launch_timing_own_clock(int device, int64_t *ret_at)
{
    *ret_at = __atomic_load_n(&own_region_limits(device)->own.at_ns, __ATOMIC_RELAXED);
    return own_region_exclusive_ns(device, *ret_at);
}

/* The own clock when the launch ended: between the agent's word before and after,
 * or, where the word after came late, as it went on from that before.
 */
static int64_t launch_timing_own_at_end(const struct launch_timing *sample)
{
    int64_t at, value = launch_timing_own_clock(sample->device, &at),
                span = at - sample->done.at_ns;

    if (at < sample->done_ns || at - sample->done_ns > TICK_NS || span <= 0)
        return sample->done.now_ns;
    return sample->done.value_ns
           + (int64_t)((double)(value - sample->done.value_ns)
                       * (double)(sample->done_ns - sample->done.at_ns) / (double)span);
}

static int64_t launch_timing_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One in a queue begins when the one before it ends; one beside others, or behind what
 * was not measured, some time after it was launched.
 */
static int64_t launch_timing_worth(struct launch_timing_device *local,
                                   const struct launch_timing *sample, int64_t ns, bool is_beside,
                                   enum launch_cost_quality *ret)
{
    uint32_t contenders = __atomic_load_n(&own_region_limits(sample->device)->takers,
                                          __ATOMIC_RELAXED);
    int64_t own_end = launch_timing_own_at_end(sample), own_begin = sample->own_ns,
            begin = sample->entered_ns;

    if (!is_beside) {
        own_begin = launch_timing_later(own_begin, local->own_settled);
        begin = launch_timing_later(begin, local->settled_ns);
    }
    local->own_settled = own_end;
    local->settled_ns = sample->done_ns;
    return launch_cost_worth(
        launch_cost_find(sample->key),
        &(struct launch_cost_measure){
            .ns = ns,
            .waited_ns = sample->done_ns - begin,
            .own_ns = own_end - own_begin,
            .is_uncontended = own_region_is_uncontended(sample->device),
            .is_beside = is_beside,
            .was_idle = sample->was_idle,
            .contenders = contenders > sample->contenders ? contenders : sample->contenders },
        ret);
}

/* Pay the difference between the measured time and what was paid in advance.
 * Where the host was held up between the two records, an idle device waited
 * for it: what is left without that is surely the GPU kernel's, and nothing is
 * learned.
 */
static void launch_timing_account(struct launch_timing_device *local, struct launch_timing *sample,
                                  int64_t now)
{
    enum launch_cost_quality quality;
    int64_t ns, paid_before;
    float ms = 0;
    bool held_up;

    if (gpu_real.cuEventElapsedTime(&ms, sample->start, sample->end) != CUDA_SUCCESS)
        return;
    ns = launch_timing_device_ns(sample, (int64_t)((double)ms * 1e6));
    held_up = sample->was_idle && sample->gap_ns > GAP_NS && sample->gap_ns > ns / 8;
    if (held_up)
        ns = ns > sample->gap_ns ? ns - sample->gap_ns : 0;
    paid_before = launch_timing_overlap(local, sample);
    ns = launch_timing_worth(local, sample, ns,
                             paid_before > 0 || (!sample->was_idle && paid_before < -NEXT_NS),
                             &quality);
    if (!held_up) {
        launch_cost_learn(sample->key, ns, quality);
        if (quality == LAUNCH_COST_AMONG_OTHERS && ns > launch_cost_find(sample->key)->ns)
            ns = launch_cost_find(sample->key)->ns;
    } else if (ns < sample->paid_ns) {
        ns = sample->paid_ns;
    }
    if (paid_before > 0)
        ns = ns > paid_before ? ns - paid_before : 0;
    launch_cost_find(sample->key)->pending = 0;
    launch_timing_charge(sample->device, now, ns - sample->paid_ns);
    launch_timing_keep_end(local, sample);
}

/* How long the oldest under way has run: since it was launched, or the one before had ended. */
static int64_t launch_timing_elapsed_of(const struct launch_timing_device *local,
                                        const struct launch_timing *oldest, int64_t now)
{
    int64_t from = __atomic_load_n(&local->own_done, __ATOMIC_RELAXED);

    return own_region_exclusive_ns(oldest->device, now)
           - (oldest->own_ns > from ? oldest->own_ns : from);
}

/* A GPU kernel that takes longer than was paid for it, or of unknown cost, is paid while it
 * runs; what was let go on the assumption that it costs the same, too.
 */
static void launch_timing_charge_elapsed(struct launch_timing *sample, int64_t ns, int64_t now)
{
    bool is_guess = sample->is_fresh && sample->paid_ns > 0;

    if ((!sample->was_idle && !is_guess) || ns <= sample->paid_ns)
        return;
    launch_timing_charge(sample->device, now, ns - sample->paid_ns);
    sample->paid_ns = ns;
}

static void launch_timing_end_running(struct launch_timing_device *local, int64_t now)
{
    if (__atomic_sub_fetch(&local->running, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&local->idle_ns, now, __ATOMIC_RELAXED);
}

static void launch_timing_finish(struct launch_timing_device *local, struct launch_timing *sample)
{
    if (sample->is_fresh)
        (void)__atomic_fetch_sub(&local->fresh, 1, __ATOMIC_RELAXED);
    if (!sample->done_ns)
        launch_timing_end_running(local, gpu_now_ns());
    (void)__atomic_fetch_sub(&local->open, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&sample->state, LAUNCH_TIMING_FREE, __ATOMIC_RELEASE);
}

/* The oldest first: what one covers is not paid again by the next. */
static int launch_timing_sort_running(struct launch_timing_device *local,
                                      struct launch_timing *sorted[SAMPLES])
{
    int count = 0;

    for (int i = 0; i < SAMPLES; i++) {
        struct launch_timing *sample = &local->samples[i];
        int at = count;

        if (__atomic_load_n(&sample->state, __ATOMIC_ACQUIRE) != LAUNCH_TIMING_RUNNING)
            continue;
        for (; at > 0 && sorted[at - 1]->entered_ns > sample->entered_ns; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = sample;
        count++;
    }
    return count;
}

/* The own clock knows what others did only up to the agent's last tick. */
static bool launch_timing_is_known(const struct launch_timing *sample, int64_t now)
{
    return own_region_is_uncontended(sample->device)
           || now - sample->done_ns > 2 * LAUNCH_COST_TURN_NS
           || __atomic_load_n(&own_region_limits(sample->device)->own.at_ns, __ATOMIC_RELAXED)
                  >= sample->done_ns;
}

static void launch_timing_note_done(struct launch_timing_device *local,
                                    struct launch_timing *sample, int64_t now)
{
    sample->done.value_ns = launch_timing_own_clock(sample->device, &sample->done.at_ns);
    sample->done.now_ns = own_region_exclusive_ns(sample->device, now);
    sample->done_ns = now;
    __atomic_store_n(&local->seen_ns, now, __ATOMIC_RELAXED);
    __atomic_store_n(&local->own_done, sample->done.now_ns, __ATOMIC_RELAXED);
    launch_timing_end_running(local, now);
}

/* 'ns' is how long the oldest has run so far, -1 = this is the oldest. Returns it for the next. */
static int64_t launch_timing_settle_one(struct launch_timing_device *local,
                                        struct launch_timing *sample, int64_t ns, int64_t now)
{
    int running = LAUNCH_TIMING_RUNNING;
    CUresult result;

    if (!__atomic_compare_exchange_n(&sample->state, &running, LAUNCH_TIMING_SETTLING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return ns;
    result = sample->done_ns ? CUDA_SUCCESS : gpu_real.cuEventQuery(sample->end);
    if (result == CUDA_ERROR_NOT_READY) {
        ns = ns < 0 ? launch_timing_elapsed_of(local, sample, now) : ns;
        launch_timing_charge_elapsed(sample, ns, now);
        __atomic_store_n(&sample->state, LAUNCH_TIMING_RUNNING, __ATOMIC_RELEASE);
        return ns;
    }
    if (result == CUDA_SUCCESS && !sample->done_ns)
        launch_timing_note_done(local, sample, now);
    if (result == CUDA_SUCCESS && !launch_timing_is_known(sample, now)) {
        __atomic_store_n(&sample->state, LAUNCH_TIMING_RUNNING, __ATOMIC_RELEASE);
        return ns;
    }
    if (result == CUDA_SUCCESS)
        launch_timing_account(local, sample, now);
    launch_timing_finish(local, sample);
    return ns;
}

bool launch_timing_settle(int device)
{
    struct launch_timing_device *local = &locals[device];
    struct launch_timing *sorted[SAMPLES];
    int64_t now, ns = -1;
    int mode, count;

    if (!launch_timing_is_open(device))
        return false;
    launch_timing_relax_capture(&mode);
    now = gpu_now_ns();
    count = launch_timing_sort_running(local, sorted);
    for (int i = 0; i < count; i++)
        ns = launch_timing_settle_one(local, sorted[i], ns, now);
    launch_timing_relax_capture(&mode);
    return true;
}

/* A cost that nobody knows yet may be anything: of one GPU kernel, only one launch
 * at a time; of all, a few.
 */
bool launch_timing_is_crowded(int device, const struct launch_cost *cost)
{
    return !cost->ns
           && (cost->pending
               || __atomic_load_n(&locals[device].fresh, __ATOMIC_RELAXED) >= FRESH_MAX);
}

int64_t launch_timing_elapsed(int device, int64_t now)
{
    struct launch_timing *sorted[SAMPLES];
    int count = launch_timing_sort_running(&locals[device], sorted);

    for (int i = 0; i < count; i++)
        if (!sorted[i]->done_ns)
            return launch_timing_elapsed_of(&locals[device], sorted[i], now);
    return 0;
}

int64_t launch_timing_poll_ns(int device, int64_t now)
{
    struct launch_timing *sorted[SAMPLES];
    int count = launch_timing_sort_running(&locals[device], sorted);

    for (int i = 0; i < count; i++)
        if (!sorted[i]->done_ns)
            return (now - launch_timing_later(sorted[i]->entered_ns, locals[device].seen_ns))
                   / LOOK_PART;
    return 0;
}

static struct launch_timing *launch_timing_take(struct launch_timing_device *local)
{
    for (int i = 0; i < SAMPLES; i++) {
        int state = LAUNCH_TIMING_FREE;

        if (__atomic_compare_exchange_n(&local->samples[i].state, &state, LAUNCH_TIMING_TAKEN,
                                        false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return &local->samples[i];
    }
    return NULL;
}

/* Events of the current context; what another context left is not ours to destroy here. */
static bool launch_timing_has_events(struct launch_timing *sample)
{
    CUcontext context = NULL;

    if (gpu_real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return false;
    if (sample->context != context) {
        sample->start = sample->end = NULL;
        sample->context = context;
    }
    return (sample->start
            || gpu_real.cuEventCreate(&sample->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
           && (sample->end
               || gpu_real.cuEventCreate(&sample->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
}

/* The form of the record call does not matter: streams that are numbers say which. */
static bool launch_timing_record(CUevent event, CUstream stream)
{
    return gpu_real.cuEventRecord(event, stream) == CUDA_SUCCESS;
}

static bool launch_timing_is_possible(void)
{
    return gpu_real.cuEventCreate && gpu_real.cuEventRecord && gpu_real.cuEventQuery
           && gpu_real.cuEventElapsedTime && gpu_real.cuCtxGetCurrent;
}

/* The first event of 'sample' is recorded. */
static void launch_timing_start(struct launch_timing_device *local, struct launch_timing *sample,
                                struct launch_cost *cost, int64_t paid_ns, bool is_known_cost)
{
    int device = sample->device;

    sample->key = cost->key;
    sample->paid_ns = paid_ns;
    sample->own_ns = own_region_exclusive_ns(device, sample->entered_ns);
    sample->contenders = __atomic_load_n(&own_region_limits(device)->takers, __ATOMIC_RELAXED);
    sample->was_idle = !launch_timing_is_running(device);
    sample->is_fresh = !is_known_cost;
    sample->done_ns = 0;
    if (!is_known_cost) {
        cost->pending = 1;
        (void)__atomic_fetch_add(&local->fresh, 1, __ATOMIC_RELAXED);
    }
    launch_timing_mark_busy(device, sample->entered_ns);
    (void)__atomic_fetch_add(&local->running, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&local->open, 1, __ATOMIC_RELAXED);
}

struct launch_timing *launch_timing_begin(int device, struct launch_cost *cost, CUstream stream,
                                          int64_t paid_ns, bool is_known_cost)
{
    struct launch_timing *sample = launch_timing_is_possible() ? launch_timing_take(&locals[device])
                                                               : NULL;
    int mode;

    if (!sample)
        return NULL;
    launch_timing_relax_capture(&mode);
    sample->device = device;
    if (launch_timing_has_events(sample) && (sample->entered_ns = gpu_now_ns())
        && launch_timing_record(sample->start, stream)) {
        launch_timing_start(&locals[device], sample, cost, paid_ns, is_known_cost);
    } else {
        __atomic_store_n(&sample->state, LAUNCH_TIMING_FREE, __ATOMIC_RELEASE);
        sample = NULL;
    }
    launch_timing_relax_capture(&mode);
    return sample;
}

void launch_timing_end(struct launch_timing *sample, CUstream stream, CUresult result)
{
    int mode;

    sample->submit_ns = gpu_now_ns() - sample->entered_ns;
    launch_timing_relax_capture(&mode);
    if (result == CUDA_SUCCESS && launch_timing_record(sample->end, stream)) {
        sample->gap_ns = gpu_now_ns() - sample->entered_ns;
        __atomic_store_n(&sample->state, LAUNCH_TIMING_RUNNING, __ATOMIC_RELEASE);
    } else {
        launch_cost_find(sample->key)->pending = 0;
        launch_timing_finish(&locals[sample->device], sample);
    }
    launch_timing_relax_capture(&mode);
}

void launch_timing_drop_device(int device)
{
    memset(&locals[device], 0, sizeof(locals[device]));
}

void launch_timing_after_fork(void)
{
    memset(locals, 0, sizeof(locals));
}
