#include "gpu/throttle.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "gpu/device.h"
#include "gpu/own_slice.h"
#include "gpu/pace.h"

#define LEASE_NS 500000 /* credit taken at once */
#define GRACE_NS 100000000      /* a launch waits no longer than its debt and this */
#define PAUSE_NS 2000000 /* of the host, between two launches of a busy program */
#define SLEEP_MIN_NS 20000
#define SLEEP_MAX_NS 2000000 /* while there is something to settle, else LONG_SLEEP_NS */
#define LONG_SLEEP_NS 10000000
#define FRESH_NS 1000000000 /* work of unknown cost counts as outstanding so long at most */
#define FRESH_WAIT_NS 2000000000 /* and for so long the next launch of it waits */
#define GAP_NS 20000 /* between the two records; more, and the host was held up */
#define EVENT_NS 1000 /* what an event itself takes */
#define FRESH_MAX 16 /* launches of unknown cost under way at once */
#define SAMPLES 64
#define LONG_FACTOR 4 /* outstanding work may take so many times its estimate */

enum sample_state { SAMPLE_FREE, SAMPLE_TAKEN, SAMPLE_RUNNING, SAMPLE_SETTLING };

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
    bool is_fresh;      /* nothing was known of its cost */
    bool was_idle;      /* no other measurement was under way */
};

struct local {
    int open;          /* samples not settled */
    int running;       /* of them, under way */
    int fresh;         /* of unknown cost */
    int64_t idle_ns;   /* since then, if none is under way */
    int64_t busy_from; /* on the grant clock: since then there was always one */
    CUevent last_end;  /* of the last settled sample: what it covered is paid */
    CUcontext last_context;
    struct throttle_sample samples[SAMPLES];
} __attribute__((aligned(64)));

static struct local locals[AQ_GPU_DEVICES_MAX];
struct throttle_credit throttle_credits[AQ_GPU_DEVICES_MAX];
int throttle_captures;

static int64_t credit_of(int device)
{
    return __atomic_load_n(&throttle_credits[device].ns, __ATOMIC_RELAXED);
}

/* Does this process always have work outstanding? Pauses of the host do not count. */
static bool is_busy(const struct local *local, int64_t now)
{
    return __atomic_load_n(&local->running, __ATOMIC_RELAXED) > 0
           || now - __atomic_load_n(&local->idle_ns, __ATOMIC_RELAXED) < PAUSE_NS;
}

static void pay(int device, int64_t now, int64_t ns)
{
    struct aq_gpu_slot_device *slot = &gpu_region.usage->slots[gpu_region.slot].devices[device];
    int64_t grant = grant_now(device, now), keep = PACE_BURST_NS;

    if (is_busy(&locals[device], now))
        keep += grant - locals[device].busy_from;
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

/* The union with what is paid already: the part before the last settled end. */
static int64_t without_overlap(struct local *local, const struct throttle_sample *sample,
                               int64_t ns)
{
    float ms = 0;

    if (local->last_end && local->last_context == sample->context
        && gpu_real.cuEventElapsedTime(&ms, local->last_end, sample->start) == CUDA_SUCCESS
        && ms < 0)
        ns += (int64_t)((double)ms * 1e6);
    return ns < 0 ? 0 : ns;
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

/* Pay the difference between the measured time and what was paid in advance.
 * Where the host was held up between the two records, an idle device waited
 * for it: what is left without that is surely the kernel's, and nothing is
 * learned.
 */
static void account(struct local *local, struct throttle_sample *sample, int64_t now)
{
    enum cost_quality quality;
    int64_t ns;
    float ms = 0;
    bool held_up;

    if (gpu_real.cuEventElapsedTime(&ms, sample->start, sample->end) != CUDA_SUCCESS)
        return;
    ns = device_time(sample, (int64_t)((double)ms * 1e6));
    held_up = sample->was_idle && sample->gap_ns > GAP_NS && sample->gap_ns > ns / 8;
    if (held_up)
        ns = ns > sample->gap_ns ? ns - sample->gap_ns : 0;
    ns = cost_worth(cost_find(sample->key),
                    &(struct cost_measure){ .ns = ns,
                                            .waited_ns = now - sample->entered_ns,
                                            .own_ns = own_clock(sample->device, now) - sample->own_ns,
                                            .is_alone = is_alone(sample->device),
                                            .was_idle = sample->was_idle },
                    &quality);
    if (!held_up) {
        cost_learn(sample->key, ns, quality);
        if (quality == COST_AMONG_OTHERS && ns > cost_find(sample->key)->ns)
            ns = cost_find(sample->key)->ns;
    } else if (ns < sample->paid_ns) {
        ns = sample->paid_ns;
    }
    ns = without_overlap(local, sample, ns);
    cost_find(sample->key)->pending = 0;
    pay(sample->device, now, ns - sample->paid_ns);
    keep_end(local, sample);
}

/* A kernel that takes longer than was paid for it, or of unknown cost, is paid while it runs. */
static void pay_so_far(struct throttle_sample *sample, int64_t now)
{
    int64_t so_far = own_clock(sample->device, now) - sample->own_ns;

    if (!sample->was_idle || so_far <= sample->paid_ns)
        return;
    pay(sample->device, now, so_far - sample->paid_ns);
    sample->paid_ns = so_far;
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

static void settle_sample(struct local *local, struct throttle_sample *sample, int64_t now)
{
    int running = SAMPLE_RUNNING;
    CUresult result;

    if (!__atomic_compare_exchange_n(&sample->state, &running, SAMPLE_SETTLING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    result = gpu_real.cuEventQuery(sample->end);
    if (result == CUDA_ERROR_NOT_READY) {
        pay_so_far(sample, now);
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
        return;
    }
    if (result == CUDA_SUCCESS && !sample->done_ns) {
        sample->done_ns = now;
        end_running(local, now);
    }
    if (result == CUDA_SUCCESS && !is_known(sample, now)) {
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
        return;
    }
    if (result == CUDA_SUCCESS)
        account(local, sample, now);
    finish(local, sample);
}

static void settle_device(int device)
{
    struct local *local = &locals[device];
    struct throttle_sample *order[SAMPLES];
    int64_t now;
    int mode, count;

    if (!__atomic_load_n(&local->open, __ATOMIC_RELAXED))
        return;
    relax(&mode);
    now = gpu_now_ns();
    count = sort_running(local, order);
    for (int i = 0; i < count; i++)
        settle_sample(local, order[i], now);
    relax(&mode);
    if (!__atomic_load_n(&local->running, __ATOMIC_RELAXED))
        show_busy(device, now + credit_of(device));
}

static void sleep_ns(int64_t ns, int64_t most)
{
    struct timespec span;

    ns = ns < SLEEP_MIN_NS ? SLEEP_MIN_NS : ns > most ? most : ns;
    span = (struct timespec){ .tv_nsec = (long)ns };
    (void)nanosleep(&span, NULL);
}

/* A cost that nobody knows yet may be anything: of one kernel, only one launch
 * at a time; of all, a few.
 */
static bool is_crowded(const struct local *local, const struct cost *cost)
{
    return (!cost->ns && cost->pending)
           || __atomic_load_n(&local->fresh, __ATOMIC_RELAXED) >= FRESH_MAX;
}

/* Until the container is out of debt, for the debt at the begin and GRACE_NS at
 * most; FRESH_WAIT_NS where the debt is a kernel under way of unknown cost.
 */
static void wait_turn(int device, const struct cost *cost)
{
    struct local *local = &locals[device];
    int64_t now = gpu_now_ns(), debt = pace_debt(usage_of(device), grant_now(device, now));
    uint32_t rate = __atomic_load_n(&limits_of(device)->grant.rate, __ATOMIC_RELAXED);
    int64_t deadline = now + pace_wait_ns(debt, rate ? rate : 1), wait;

    deadline += is_crowded(local, cost) ? FRESH_WAIT_NS : GRACE_NS;
    for (;;) {
        settle_device(device);
        now = gpu_now_ns();
        debt = pace_debt(usage_of(device), grant_now(device, now));
        if ((debt <= 0 && !is_crowded(local, cost)) || now >= deadline)
            return;
        if (local->running)
            show_busy(device, now + SLEEP_MAX_NS * 10);
        rate = __atomic_load_n(&limits_of(device)->grant.rate, __ATOMIC_RELAXED);
        wait = debt > 0 ? pace_wait_ns(debt, rate) : SLEEP_MIN_NS * 5;
        sleep_ns(wait < deadline - now ? wait : deadline - now,
                 local->open ? SLEEP_MAX_NS : LONG_SLEEP_NS);
        if (!gpu_region_is_attached() || limits_of(device)->share >= AQ_GPU_WHOLE)
            return;
    }
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

static void start_sample(struct throttle_launch *launch, int device, struct cost *cost,
                         int64_t paid)
{
    struct local *local = &locals[device];
    struct throttle_sample *sample = can_measure() ? take_sample(local) : NULL;
    int mode;

    if (!sample)
        return;
    relax(&mode);
    if (has_events(sample) && (sample->entered_ns = gpu_now_ns())
        && record(sample->start, launch->stream)) {
        sample->device = device;
        sample->key = cost->key;
        sample->paid_ns = paid;
        sample->own_ns = own_clock(device, sample->entered_ns);
        sample->was_idle = !__atomic_load_n(&local->running, __ATOMIC_RELAXED);
        sample->is_fresh = !paid;
        if (!paid) {
            cost->pending = 1;
            (void)__atomic_fetch_add(&local->fresh, 1, __ATOMIC_RELAXED);
        }
        sample->done_ns = 0;
        if (!is_busy(local, sample->entered_ns))
            __atomic_store_n(&local->busy_from, grant_now(device, sample->entered_ns),
                             __ATOMIC_RELAXED);
        (void)__atomic_fetch_add(&local->running, 1, __ATOMIC_RELAXED);
        (void)__atomic_fetch_add(&local->open, 1, __ATOMIC_RELAXED);
        launch->sample = sample;
    } else {
        __atomic_store_n(&sample->state, SAMPLE_FREE, __ATOMIC_RELEASE);
    }
    relax(&mode);
}

void throttle_leave(struct throttle_launch *launch, CUresult result)
{
    struct throttle_sample *sample = launch->sample;
    int mode, saved = errno;

    sample->submit_ns = gpu_now_ns() - sample->entered_ns;
    relax(&mode);
    if (result == CUDA_SUCCESS && record(sample->end, launch->stream)) {
        sample->gap_ns = gpu_now_ns() - sample->entered_ns;
        __atomic_store_n(&sample->state, SAMPLE_RUNNING, __ATOMIC_RELEASE);
    } else {
        cost_find(sample->key)->pending = 0;
        finish(&locals[sample->device], sample);
    }
    relax(&mode);
    errno = saved;
}

/* Credit for a launch of 'ns', and some more. */
static void take_credit(int device, int64_t ns)
{
    int64_t lease = ns > LEASE_NS ? ns : LEASE_NS, now = gpu_now_ns(), until = busy_until(device);

    pay(device, now, lease);
    (void)__atomic_fetch_add(&throttle_credits[device].ns, lease, __ATOMIC_RELAXED);
    show_busy(device, (until > now ? until : now)
                          + (lease > LEASE_NS ? lease * LONG_FACTOR : lease));
}

static void enter_slowly(struct throttle_launch *launch, int device, struct cost *cost,
                         bool has_to_pay)
{
    int saved = errno;
    int64_t ns;

    cost->left = 1; /* until it is measured, each launch tries */
    if (has_to_pay) {
        gpu_region_renew();
        wait_turn(device, cost);
    } else {
        settle_device(device);
    }
    ns = cost->ns; /* may have become known */
    if (credit_of(device) < 0)
        take_credit(device, -credit_of(device));
    if (!ns)
        show_busy(device, gpu_now_ns() + FRESH_NS);
    start_sample(launch, device, cost, ns);
    if (launch->sample && ns)
        cost->left = cost_pause(cost);
    errno = saved;
}

void throttle_enter(struct throttle_launch *launch, uint64_t key, CUstream stream)
{
    int device = gpu_device_current();
    struct cost *cost;
    int64_t left;

    if (device < 0 || limits_of(device)->share >= AQ_GPU_WHOLE || throttle_is_capturing(stream))
        return;
    launch->stream = stream;
    cost = cost_find(key);
    left = __atomic_sub_fetch(&throttle_credits[device].ns, (int64_t)cost->ns, __ATOMIC_RELAXED);
    if (__builtin_expect(left < 0 || !cost->ns || --cost->left == 0, 0))
        enter_slowly(launch, device, cost, left < 0 || !cost->ns);
}

void throttle_settle(void)
{
    int saved = errno;

    for (uint32_t i = 0; gpu_region_is_attached() && i < gpu_region.device_count; i++)
        settle_device((int)i);
    errno = saved;
}

bool throttle_is_capturing(CUstream stream)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;

    return __builtin_expect(__atomic_load_n(&throttle_captures, __ATOMIC_RELAXED) > 0, 0)
           && gpu_real.cuStreamIsCapturing
           && gpu_real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS
           && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void throttle_count_capture(int change)
{
    int now = __atomic_add_fetch(&throttle_captures, change, __ATOMIC_RELAXED);

    if (now < 0)
        __atomic_store_n(&throttle_captures, 0, __ATOMIC_RELAXED);
}

void throttle_forget_device(int device)
{
    memset(&locals[device], 0, sizeof(locals[device]));
    throttle_credits[device].ns = 0;
}

void throttle_forget_costs(void)
{
    cost_forget();
}

void throttle_forget(void)
{
    memset(locals, 0, sizeof(locals));
    memset(throttle_credits, 0, sizeof(throttle_credits));
    throttle_captures = 0;
    cost_forget();
}
