#include "gpu/throttle.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "gpu/device.h"
#include "gpu/own_slice.h"
#include "gpu/pace.h"
#include "gpu/sample.h"

#define LEASE_NS 500000 /* credit taken at once */
#define GRACE_NS 90000000 /* a launch waits so long beyond its debt: with all it takes, 100 ms */
#define SLEEP_MIN_NS 20000
#define SLEEP_MAX_NS 2000000 /* while there is something to settle, else LONG_SLEEP_NS */
#define LOOK_MIN_NS 50000
#define LONG_SLEEP_NS 10000000
#define FRESH_NS 1000000000 /* work of unknown cost counts as outstanding so long at most */
#define WAITING_NS 60000000000 /* the same of a thread that waits for the device */
#define LONG_FACTOR 4 /* outstanding work may take so many times its estimate */

struct throttle_credit throttle_credits[AQ_GPU_DEVICES_MAX];
int throttle_captures;

static int64_t credit_of(int device)
{
    return __atomic_load_n(&throttle_credits[device].ns, __ATOMIC_RELAXED);
}

static void sleep_ns(int64_t ns, int64_t most)
{
    struct timespec span;

    ns = ns < SLEEP_MIN_NS ? SLEEP_MIN_NS : ns > most ? most : ns;
    span = (struct timespec){ .tv_nsec = (long)ns };
    (void)nanosleep(&span, NULL);
}

static void settle_device(int device)
{
    if (sample_settle(device) && !sample_is_running(device))
        show_busy(device, gpu_now_ns() + credit_of(device));
}

/* The longest sleep: the end of what is measured is to be seen when it comes. */
static int64_t pause_ns(int device, int64_t now)
{
    int64_t look = sample_look_ns(device, now);

    if (!sample_is_open(device))
        return LONG_SLEEP_NS;
    return !look || look > SLEEP_MAX_NS ? SLEEP_MAX_NS : look < LOOK_MIN_NS ? LOOK_MIN_NS : look;
}

/* Until the container is out of debt, and what is under way is known; for the debt at
 * the begin, by the share, and GRACE_NS at most.
 */
static void wait_turn(int device, const struct cost *cost)
{
    int64_t now = gpu_now_ns(), debt = pace_debt(usage_of(device), grant_now(device, now)), wait;
    uint32_t share = limits_of(device)->share;
    int64_t deadline = now + pace_wait_ns(debt, share ? share : 1) + GRACE_NS;

    for (;;) {
        settle_device(device);
        now = gpu_now_ns();
        debt = pace_debt(usage_of(device), grant_now(device, now));
        if ((debt <= 0 && !sample_is_crowded(device, cost)) || now >= deadline)
            return;
        if (sample_is_running(device))
            show_busy(device, now + SLEEP_MAX_NS * 10);
        wait = SLEEP_MIN_NS * 5;
        if (debt > 0)
            wait = pace_wait_ns(debt, __atomic_load_n(&limits_of(device)->grant.rate,
                                                      __ATOMIC_RELAXED));
        sleep_ns(wait < deadline - now ? wait : deadline - now, pause_ns(device, now));
        if (!gpu_region_is_attached() || limits_of(device)->share >= AQ_GPU_WHOLE)
            return;
    }
}

/* Credit for a launch of 'ns', and some more. */
static void take_credit(int device, int64_t ns)
{
    int64_t lease = ns > LEASE_NS ? ns : LEASE_NS, now = gpu_now_ns(), until = busy_until(device);

    sample_pay(device, now, lease);
    (void)__atomic_fetch_add(&throttle_credits[device].ns, lease, __ATOMIC_RELAXED);
    show_busy(device, (until > now ? until : now)
                          + (lease > LEASE_NS ? lease * LONG_FACTOR : lease));
}

/* What a launch costs, as far as one can know now. One that would not wait any longer for
 * others of unknown cost takes as long as they have taken so far.
 */
static int64_t expected_ns(int device, const struct cost *cost)
{
    int64_t ns = cost->ns;

    return ns || !sample_is_crowded(device, cost) ? ns : sample_so_far(device, gpu_now_ns());
}

/* 'credited_ns' was taken from the credit. */
static void enter_slowly(struct throttle_launch *launch, int device, struct cost *cost,
                         int64_t credited_ns, bool has_to_pay)
{
    int saved = errno;
    bool is_known;
    int64_t ns;

    cost->left = 1; /* until it is measured, each launch tries */
    if (has_to_pay) {
        gpu_region_renew();
        wait_turn(device, cost);
    } else {
        settle_device(device);
    }
    is_known = cost->ns; /* may have become so */
    ns = expected_ns(device, cost);
    (void)__atomic_fetch_sub(&throttle_credits[device].ns, ns - credited_ns, __ATOMIC_RELAXED);
    if (credit_of(device) < 0)
        take_credit(device, -credit_of(device));
    if (!is_known)
        show_busy(device, gpu_now_ns() + FRESH_NS);
    launch->sample = sample_begin(device, cost, launch->stream, ns, is_known);
    if (launch->sample && is_known)
        cost->left = cost_pause(cost);
    errno = saved;
}

void throttle_enter(struct throttle_launch *launch, uint64_t key, CUstream stream)
{
    int device = gpu_device_current();
    struct cost *cost;
    int64_t left, ns;

    if (device < 0 || limits_of(device)->share >= AQ_GPU_WHOLE || throttle_is_capturing(stream))
        return;
    launch->stream = stream;
    cost = cost_find(key);
    ns = cost->ns;
    left = __atomic_sub_fetch(&throttle_credits[device].ns, ns, __ATOMIC_RELAXED);
    if (__builtin_expect(left < 0 || !ns || --cost->left == 0, 0))
        enter_slowly(launch, device, cost, ns, left < 0 || !ns);
}

void throttle_leave(struct throttle_launch *launch, CUresult result)
{
    int saved = errno;

    sample_end(launch->sample, launch->stream, result);
    errno = saved;
}

void throttle_settle(void)
{
    int saved = errno;

    for (uint32_t i = 0; gpu_region_is_attached() && i < gpu_region.device_count; i++)
        settle_device((int)i);
    errno = saved;
}

int64_t throttle_wait_begin(void)
{
    int device = throttle_is_on() ? gpu_device_current() : -1;
    int64_t now;

    if (device < 0 || limits_of(device)->share >= AQ_GPU_WHOLE)
        return 0;
    now = gpu_now_ns();
    if (sample_is_running(device))
        show_busy(device, now + WAITING_NS);
    return now;
}

void throttle_wait_end(int64_t begin_ns)
{
    int device = begin_ns && throttle_is_on() ? gpu_device_current() : -1;

    if (device >= 0)
        sample_waited(device, begin_ns, gpu_now_ns());
    if (throttle_is_on())
        throttle_settle();
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
    sample_forget_device(device);
    throttle_credits[device].ns = 0;
}

void throttle_forget_costs(void)
{
    cost_forget();
}

void throttle_forget(void)
{
    sample_forget();
    memset(throttle_credits, 0, sizeof(throttle_credits));
    throttle_captures = 0;
    cost_forget();
}
