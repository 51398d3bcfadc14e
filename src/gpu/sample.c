#include "gpu/sample.h"

#include <string.h>

#include "gpu/own_slice.h"
#include "gpu/throttle.h"

#define PAUSE_NS 2000000 /* of the host, between two launches of a busy program */
#define GAP_NS 20000 /* between the two records; more, and the host was held up */
#define EVENT_NS 1000 /* what an event itself takes */
#define NEXT_NS 100000 /* two launches nearer to each other follow one another */
#define WAITED_NS 20000 /* a call that took less did not wait for the device */
#define TICK_NS 2500000 /* the agent's, while several containers have work */
#define LOOK_PART 16 /* see the end of a kernel by so small a part of its length late */
#define FRESH_MAX 16 /* launches of unknown cost under way at once */
#define SAMPLES 64

enum sample_state { SAMPLE_FREE, SAMPLE_TAKEN, SAMPLE_RUNNING, SAMPLE_SETTLING };

/* The own clock as a launch ended: the agent's last word, and read on from there. */
struct own_mark {
    int64_t at_ns, value_ns, now_ns;
};

struct throttle_sample {
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
    struct own_mark done;
    uint32_t takers;    /* when it began */
    bool is_fresh;      /* nothing was known of its cost */
    bool was_idle;      /* no other measurement was under way */
};

struct local {
    int open;          /* samples not settled */
    int running;       /* of them, under way */
    int fresh;         /* of unknown cost */
    int64_t idle_ns;   /* since then, if none is under way */
    int64_t busy_from; /* on the grant clock: since then there was always one */
    int64_t seen_ns, own_done; /* when the last one was seen to have ended, on both clocks */
    int64_t settled_ns, own_settled; /* when the last settled one had ended, on both clocks */
    CUevent last_end;  /* of the last settled sample: what it covered is paid */
    CUcontext last_context;
    struct throttle_sample samples[SAMPLES];
} __attribute__((aligned(64)));

static struct local locals[AQ_GPU_DEVICES_MAX];

bool sample_is_open(int device)
{
    return __atomic_load_n(&locals[device].open, __ATOMIC_RELAXED) > 0;
}

bool sample_is_running(int device)
{
    return __atomic_load_n(&locals[device].running, __ATOMIC_RELAXED) > 0;
}

/* Does this process always have work outstanding? Pauses of the host do not count. */
static bool is_busy(const struct local *local, int64_t now)
{
    return __atomic_load_n(&local->running, __ATOMIC_RELAXED) > 0
           || now - __atomic_load_n(&local->idle_ns, __ATOMIC_RELAXED) < PAUSE_NS;
}

static void keep_busy(int device, int64_t now)
{
    if (!is_busy(&locals[device], now))
        __atomic_store_n(&locals[device].busy_from, grant_now(device, now), __ATOMIC_RELAXED);
}

void sample_waited(int device, int64_t from, int64_t until)
{
    if (until - from < WAITED_NS)
        return;
    keep_busy(device, from);
    __atomic_store_n(&locals[device].idle_ns, until, __ATOMIC_RELAXED);
}

void sample_pay(int device, int64_t now, int64_t ns)
{
    struct aq_gpu_slot_device *slot = &gpu_region.usage->slots[gpu_region.slot].devices[device];
    int64_t grant = grant_now(device, now), keep = PACE_BURST_NS;

    if (is_busy(&locals[device], now))
        keep += grant - __atomic_load_n(&locals[device].busy_from, __ATOMIC_RELAXED);
    pace_pay(usage_of(device), grant, ns, keep < PACE_CARRY_NS ? keep : PACE_CARRY_NS);
    (void)__atomic_fetch_add(&slot->used_ns, ns, __ATOMIC_RELAXED);
}

/* Calls of our own while the program captures: allowed in relaxed mode only. */
static void relax(int *mode)
{
    *mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
    if (__atomic_load_n(&throttle_captures, __ATOMIC_RELAXED) && gpu_real.cuThreadExchangeStreamCaptureMode)
        (void)gpu_real.cuThreadExchangeStreamCaptureMode(mode);
}

/* What is paid already of a launch: the part before the last settled end. Negative: it
 * began so long after that.
 */
static int64_t overlap(const struct local *local, const struct throttle_sample *sample)
{
    float ms = 0;

    if (local->last_end && local->last_context == sample->context
        && gpu_real.cuEventElapsedTime(&ms, local->last_end, sample->start) == CUDA_SUCCESS)
        return (int64_t)((double)-ms * 1e6);
    return 0;
}

/* Its end event becomes the mark up to which device time is paid. */
static void keep_end(struct local *local, struct throttle_sample *sample)
{
    CUevent spare = local->last_context == sample->context ? local->last_end : NULL;

    local->last_end = sample->end;
    local->last_context = sample->context;
    sample->end = spare;
}

/* A kernel that an idle device had done when the second event came: it began when
 * it was submitted, not when the first event was recorded.
 */
static int64_t device_time(const struct throttle_sample *sample, int64_t ns)
{
    bool done_before = sample->was_idle && ns <= sample->gap_ns + EVENT_NS;

    return !done_before ? ns : ns > sample->submit_ns ? ns - sample->submit_ns : 1;
}

/* The agent's last word on the own clock. */
static int64_t own_word(int device, int64_t *ret_at)
{
    *ret_at = __atomic_load_n(&limits_of(device)->own.at_ns, __ATOMIC_RELAXED);
    return own_clock(device, *ret_at);
}

/* The own clock when the launch ended: between the agent's word before and after,
 * or, where the word after came late, as it went on from that before.
 */
static int64_t own_at_end(const struct throttle_sample *sample)
{
    int64_t at, value = own_word(sample->device, &at), span = at - sample->done.at_ns;

    if (at < sample->done_ns || at - sample->done_ns > TICK_NS || span <= 0)
        return sample->done.now_ns;
    return sample->done.value_ns
           + (int64_t)((double)(value - sample->done.value_ns)
                       * (double)(sample->done_ns - sample->done.at_ns) / (double)span);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One in a queue begins when the one before it ends; one beside others, or behind what
 * was not measured, some time after it was launched.
 */
static int64_t worth(struct local *local, const struct throttle_sample *sample, int64_t ns,
                     bool is_beside, enum cost_quality *ret)
{
    uint32_t takers = __atomic_load_n(&limits_of(sample->device)->takers, __ATOMIC_RELAXED);
    int64_t own_end = own_at_end(sample), own_begin = sample->own_ns, begin = sample->entered_ns;

    if (!is_beside) {
        own_begin = later(own_begin, local->own_settled);
        begin = later(begin, local->settled_ns);
    }
    local->own_settled = own_end;
    local->settled_ns = sample->done_ns;
    return cost_worth(cost_find(sample->key),
                      &(struct cost_measure){
                          .ns = ns,
                          .waited_ns = sample->done_ns - begin,
                          .own_ns = own_end - own_begin,
                          .is_alone = is_alone(sample->device),
                          .is_beside = is_beside,
                          .was_idle = sample->was_idle,
                          .takers = takers > sample->takers ? takers : sample->takers },
                      ret);
}

/* Pay the difference between the measured time and what was paid in advance.
 * Where the host was held up between the two records, an idle device waited
 * for it: what is left without that is surely the kernel's, and nothing is
 * learned.
 */
static void account(struct local *local, struct throttle_sample *sample, int64_t now)
{
    enum cost_quality quality;
    int64_t ns, paid_before;
    float ms = 0;
    bool held_up;

    if (gpu_real.cuEventElapsedTime(&ms, sample->start, sample->end) != CUDA_SUCCESS)
        return;
    ns = device_time(sample, (int64_t)((double)ms * 1e6));
    held_up = sample->was_idle && sample->gap_ns > GAP_NS && sample->gap_ns > ns / 8;
    if (held_up)
        ns = ns > sample->gap_ns ? ns - sample->gap_ns : 0;
    paid_before = overlap(local, sample);
    ns = worth(local, sample, ns,
               paid_before > 0 || (!sample->was_idle && paid_before < -NEXT_NS), &quality);
    if (!held_up) {
        cost_learn(sample->key, ns, quality);
        if (quality == COST_AMONG_OTHERS && ns > cost_find(sample->key)->ns)
            ns = cost_find(sample->key)->ns;
    } else if (ns < sample->paid_ns) {
        ns = sample->paid_ns;
    }
    if (paid_before > 0)
        ns = ns > paid_before ? ns - paid_before : 0;
    cost_find(sample->key)->pending = 0;
    sample_pay(sample->device, now, ns - sample->paid_ns);
    keep_end(local, sample);
}

/* How long the oldest under way has run: since it was launched, or the one before had ended. */
static int64_t so_far(const struct local *local, const struct throttle_sample *oldest, int64_t now)
{
    int64_t from = __atomic_load_n(&local->own_done, __ATOMIC_RELAXED);

    return own_clock(oldest->device, now) - (oldest->own_ns > from ? oldest->own_ns : from);
}

/* A kernel that takes longer than was paid for it, or of unknown cost, is paid while it
 * runs; what was let go on the guess that it costs the same, too.
 */
static void pay_so_far(struct throttle_sample *sample, int64_t ns, int64_t now)
{
    bool is_guess = sample->is_fresh && sample->paid_ns > 0;

    if ((!sample->was_idle && !is_guess) || ns <= sample->paid_ns)
        return;
    sample_pay(sample->device, now, ns - sample->paid_ns);
    sample->paid_ns = ns;
}

static void end_running(struct local *local, int64_t now)
{
    if (__atomic_sub_fetch(&local->running, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&local->idle_ns, now, __ATOMIC_RELAXED);
}

static void finish(struct local *local, struct throttle_sample *sample)
{
    if (sample->is_fresh)
        (void)__atomic_fetch_sub(&local->fresh, 1, __ATOMIC_RELAXED);
    if (!sample->done_ns)
        end_running(local, gpu_now_ns());
    (void)__atomic_fetch_sub(&local->open, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&sample->state, SAMPLE_FREE, __ATOMIC_RELEASE);
}

/* The oldest first: what one covers is not paid again by the next. */
static int sort_running(struct local *local, struct throttle_sample *order[SAMPLES])
{
    int count = 0;

    for (int i = 0; i < SAMPLES; i++) {
        struct throttle_sample *sample = &local->samples[i];
        int at = count;

        if (__atomic_load_n(&sample->state, __ATOMIC_ACQUIRE) != SAMPLE_RUNNING)
            continue;
        for (; at > 0 && order[at - 1]->entered_ns > sample->entered_ns; at--)
            order[at] = order[at - 1];
        order[at] = sample;
        count++;
    }
    return count;
}

/* The own clock knows what others did only up to the agent's last tick. */
static bool is_known(const struct throttle_sample *sample, int64_t now)
{
    return is_alone(sample->device) || now - sample->done_ns > 2 * COST_TURN_NS
           || __atomic_load_n(&limits_of(sample->device)->own.at_ns, __ATOMIC_RELAXED)
                  >= sample->done_ns;
}

static void see_done(struct local *local, struct throttle_sample *sample, int64_t now)
{
    sample->done.value_ns = own_word(sample->device, &sample->done.at_ns);
    sample->done.now_ns = own_clock(sample->device, now);
    sample->done_ns = now;
    __atomic_store_n(&local->seen_ns, now, __ATOMIC_RELAXED);
    __atomic_store_n(&local->own_done, sample->done.now_ns, __ATOMIC_RELAXED);
    end_running(local, now);
}

/* 'ns' is how long the oldest has run so far, -1 = this is the oldest. Returns it for the next. */
static int64_t settle_sample(struct local *local, struct throttle_sample *sample, int64_t ns,
                             int64_t now)
{
    int running = SAMPLE_RUNNING;
    CUresult result;

    if (!__atomic_compare_exchange_n(&sample->state, &running, SAMPLE_SETTLING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return ns;
    result = sample->done_ns ? CUDA_SUCCESS : gpu_real.cuEventQuery(sample->end);
    if (result == CUDA_ERROR_NOT_READY) {
        ns = ns < 0 ? so_far(local, sample, now) : ns;
        pay_so_far(sample, ns, now);
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
        return ns;
    }
    if (result == CUDA_SUCCESS && !sample->done_ns)
        see_done(local, sample, now);
    if (result == CUDA_SUCCESS && !is_known(sample, now)) {
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
        return ns;
    }
    if (result == CUDA_SUCCESS)
        account(local, sample, now);
    finish(local, sample);
    return ns;
}

bool sample_settle(int device)
{
    struct local *local = &locals[device];
    struct throttle_sample *order[SAMPLES];
    int64_t now, ns = -1;
    int mode, count;

    if (!sample_is_open(device))
        return false;
    relax(&mode);
    now = gpu_now_ns();
    count = sort_running(local, order);
    for (int i = 0; i < count; i++)
        ns = settle_sample(local, order[i], ns, now);
    relax(&mode);
    return true;
}

/* A cost that nobody knows yet may be anything: of one kernel, only one launch
 * at a time; of all, a few.
 */
bool sample_is_crowded(int device, const struct cost *cost)
{
    return !cost->ns
           && (cost->pending
               || __atomic_load_n(&locals[device].fresh, __ATOMIC_RELAXED) >= FRESH_MAX);
}

int64_t sample_so_far(int device, int64_t now)
{
    struct throttle_sample *order[SAMPLES];
    int count = sort_running(&locals[device], order);

    for (int i = 0; i < count; i++)
        if (!order[i]->done_ns)
            return so_far(&locals[device], order[i], now);
    return 0;
}

int64_t sample_look_ns(int device, int64_t now)
{
    struct throttle_sample *order[SAMPLES];
    int count = sort_running(&locals[device], order);

    for (int i = 0; i < count; i++)
        if (!order[i]->done_ns)
            return (now - later(order[i]->entered_ns, locals[device].seen_ns)) / LOOK_PART;
    return 0;
}

static struct throttle_sample *take_sample(struct local *local)
{
    for (int i = 0; i < SAMPLES; i++) {
        int state = SAMPLE_FREE;

        if (__atomic_compare_exchange_n(&local->samples[i].state, &state, SAMPLE_TAKEN, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return &local->samples[i];
    }
    return NULL;
}

/* Events of the current context; what another context left is not ours to destroy here. */
static bool has_events(struct throttle_sample *sample)
{
    CUcontext context = NULL;

    if (gpu_real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return false;
    if (sample->context != context) {
        sample->start = sample->end = NULL;
        sample->context = context;
    }
    return (sample->start || gpu_real.cuEventCreate(&sample->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
           && (sample->end || gpu_real.cuEventCreate(&sample->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
}

/* The form of the record call does not matter: streams that are numbers say which. */
static bool record(CUevent event, CUstream stream)
{
    return gpu_real.cuEventRecord(event, stream) == CUDA_SUCCESS;
}

static bool can_measure(void)
{
    return gpu_real.cuEventCreate && gpu_real.cuEventRecord && gpu_real.cuEventQuery
           && gpu_real.cuEventElapsedTime && gpu_real.cuCtxGetCurrent;
}

/* The first event of 'sample' is recorded. */
static void begin(struct local *local, struct throttle_sample *sample, struct cost *cost,
                  int64_t paid_ns, bool is_known_cost)
{
    int device = sample->device;

    sample->key = cost->key;
    sample->paid_ns = paid_ns;
    sample->own_ns = own_clock(device, sample->entered_ns);
    sample->takers = __atomic_load_n(&limits_of(device)->takers, __ATOMIC_RELAXED);
    sample->was_idle = !sample_is_running(device);
    sample->is_fresh = !is_known_cost;
    sample->done_ns = 0;
    if (!is_known_cost) {
        cost->pending = 1;
        (void)__atomic_fetch_add(&local->fresh, 1, __ATOMIC_RELAXED);
    }
    keep_busy(device, sample->entered_ns);
    (void)__atomic_fetch_add(&local->running, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&local->open, 1, __ATOMIC_RELAXED);
}

struct throttle_sample *sample_begin(int device, struct cost *cost, CUstream stream,
                                     int64_t paid_ns, bool is_known_cost)
{
    struct throttle_sample *sample = can_measure() ? take_sample(&locals[device]) : NULL;
    int mode;

    if (!sample)
        return NULL;
    relax(&mode);
    sample->device = device;
    if (has_events(sample) && (sample->entered_ns = gpu_now_ns()) && record(sample->start, stream)) {
        begin(&locals[device], sample, cost, paid_ns, is_known_cost);
    } else {
        __atomic_store_n(&sample->state, SAMPLE_FREE, __ATOMIC_RELEASE);
        sample = NULL;
    }
    relax(&mode);
    return sample;
}

void sample_end(struct throttle_sample *sample, CUstream stream, CUresult result)
{
    int mode;

    sample->submit_ns = gpu_now_ns() - sample->entered_ns;
    relax(&mode);
    if (result == CUDA_SUCCESS && record(sample->end, stream)) {
        sample->gap_ns = gpu_now_ns() - sample->entered_ns;
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
    } else {
        cost_find(sample->key)->pending = 0;
        finish(&locals[sample->device], sample);
    }
    relax(&mode);
}

void sample_forget_device(int device)
{
    memset(&locals[device], 0, sizeof(locals[device]));
}

void sample_forget(void)
{
    memset(locals, 0, sizeof(locals));
}
