/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c - holding launches back while the container is past its share of time */
#include "gpu/throttle.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "gpu/device.h"
#include "gpu/own_region.h"
#include "gpu/rate_limit.h"
#include "gpu/launch_timing.h"

#define LEASE_NS 500000   /* credit taken at once */
#define GRACE_NS 90000000 /* a launch waits so long beyond its debt: with all it takes, 100 ms */
#define SLEEP_MIN_NS 20000
#define SLEEP_MAX_NS 2000000 /* while there is something to settle, else LONG_SLEEP_NS */
#define POLL_MIN_NS 50000
#define LONG_SLEEP_NS 10000000
#define FRESH_NS 1000000000    /* work of unknown cost counts as outstanding so long at most */
#define WAITING_NS 60000000000 /* the same of a thread that waits for the device */
#define LONG_FACTOR 4          /* outstanding work may take so many times its estimate */

struct throttle_credit throttle_credits[AQ_GPU_DEVICES_MAX];
int throttle_captures;

static int64_t throttle_credit_of(int device)
{
    return __atomic_load_n(&throttle_credits[device].ns, __ATOMIC_RELAXED);
}

static void throttle_sleep(int64_t ns, int64_t most)
{
    struct timespec span;

    ns = ns < SLEEP_MIN_NS ? SLEEP_MIN_NS : ns > most ? most : ns;
    span = (struct timespec){ .tv_nsec = (long)ns };
    (void)nanosleep(&span, NULL);
}

static void throttle_settle_device(int device)
{
    if (launch_timing_settle(device) && !launch_timing_is_running(device))
        own_region_set_busy(device, gpu_now_ns() + throttle_credit_of(device));
}

/* The longest sleep: the end of what is measured is to be seen when it comes. */
static int64_t throttle_pause_ns(int device, int64_t now)
{
    int64_t poll = launch_timing_poll_ns(device, now);

    if (!launch_timing_is_open(device))
        return LONG_SLEEP_NS;
    return !poll || poll > SLEEP_MAX_NS ? SLEEP_MAX_NS : poll < POLL_MIN_NS ? POLL_MIN_NS : poll;
}

/* Until the container is out of debt, and what is under way is known; for the debt at
 * the begin, by the share, and GRACE_NS at most.
 */
static void throttle_wait_turn(int device, const struct launch_cost *cost)
{
    int64_t now = gpu_now_ns(),
            debt = rate_limit_debt(own_region_usage(device), own_region_granted_ns(device, now)),
            wait;
    uint32_t share = own_region_limits(device)->share;
    int64_t deadline = now + rate_limit_wait_ns(debt, share ? share : 1) + GRACE_NS;

    for (;;) {
        throttle_settle_device(device);
        now = gpu_now_ns();
        debt = rate_limit_debt(own_region_usage(device), own_region_granted_ns(device, now));
        if ((debt <= 0 && !launch_timing_is_crowded(device, cost)) || now >= deadline)
            return;
        if (launch_timing_is_running(device))
            own_region_set_busy(device, now + SLEEP_MAX_NS * 10);
        wait = SLEEP_MIN_NS * 5;
        if (debt > 0)
            wait = rate_limit_wait_ns(
                debt, __atomic_load_n(&own_region_limits(device)->grant.rate, __ATOMIC_RELAXED));
        throttle_sleep(wait < deadline - now ? wait : deadline - now,
                       throttle_pause_ns(device, now));
        if (!gpu_region_is_attached() || own_region_limits(device)->share >= AQ_GPU_WHOLE)
            return;
    }
}

/* Credit for a launch of 'ns', and some more. */
static void throttle_take_credit(int device, int64_t ns)
{
    int64_t lease = ns > LEASE_NS ? ns : LEASE_NS, now = gpu_now_ns(),
            until = own_region_busy_until(device);

    launch_timing_charge(device, now, lease);
    (void)__atomic_fetch_add(&throttle_credits[device].ns, lease, __ATOMIC_RELAXED);
    own_region_set_busy(device, (until > now ? until : now)
                                    + (lease > LEASE_NS ? lease * LONG_FACTOR : lease));
}

/* What a launch costs, as far as one can know now. One that would not wait any longer for
 * others of unknown cost takes as long as they have taken so far.
 */
static int64_t throttle_expected_ns(int device, const struct launch_cost *cost)
{
    int64_t ns = cost->ns;

    return ns || !launch_timing_is_crowded(device, cost)
               ? ns
               : launch_timing_elapsed(device, gpu_now_ns());
}

/* 'credited_ns' was taken from the credit. */
static void throttle_enter_slow_path(struct throttle_launch *launch, int device,
                                     struct launch_cost *cost, int64_t credited_ns, bool has_to_pay)
{
    int saved = errno;
    bool is_known;
    int64_t ns;

    cost->left = 1; /* until it is measured, each launch tries */
    if (has_to_pay) {
        gpu_region_renew();
        throttle_wait_turn(device, cost);
    } else {
        throttle_settle_device(device);
    }
    is_known = cost->ns; /* may have become so */
    ns = throttle_expected_ns(device, cost);
    (void)__atomic_fetch_sub(&throttle_credits[device].ns, ns - credited_ns, __ATOMIC_RELAXED);
    if (throttle_credit_of(device) < 0)
        throttle_take_credit(device, -throttle_credit_of(device));
    if (!is_known)
        own_region_set_busy(device, gpu_now_ns() + FRESH_NS);
    launch->sample = launch_timing_begin(device, cost, launch->stream, ns, is_known);
    if (launch->sample && is_known)
        cost->left = launch_cost_interval(cost);
    errno = saved;
}

void throttle_enter(struct throttle_launch *launch, uint64_t key, CUstream stream)
{
    int device = gpu_device_current();
    struct launch_cost *cost;
    int64_t left, ns;

    if (device < 0 || own_region_limits(device)->share >= AQ_GPU_WHOLE
        || throttle_is_capturing(stream))
        return;
    launch->stream = stream;
    cost = launch_cost_find(key);
    ns = cost->ns;
    left = __atomic_sub_fetch(&throttle_credits[device].ns, ns, __ATOMIC_RELAXED);
    if (__builtin_expect(left < 0 || !ns || --cost->left == 0, 0))
        throttle_enter_slow_path(launch, device, cost, ns, left < 0 || !ns);
}

void throttle_leave(struct throttle_launch *launch, CUresult result)
{
    int saved = errno;

    launch_timing_end(launch->sample, launch->stream, result);
    errno = saved;
}

void throttle_settle(void)
{
    int saved = errno;

    for (uint32_t i = 0; gpu_region_is_attached() && i < gpu_region.device_count; i++)
        throttle_settle_device((int)i);
    errno = saved;
}

int64_t throttle_wait_begin(void)
{
    int device = throttle_is_on() ? gpu_device_current() : -1;
    int64_t now;

    if (device < 0 || own_region_limits(device)->share >= AQ_GPU_WHOLE)
        return 0;
    now = gpu_now_ns();
    if (launch_timing_is_running(device))
        own_region_set_busy(device, now + WAITING_NS);
    return now;
}

void throttle_wait_end(int64_t begin_ns)
{
    int device = begin_ns && throttle_is_on() ? gpu_device_current() : -1;

    if (device >= 0)
        launch_timing_waited(device, begin_ns, gpu_now_ns());
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

void throttle_drop_device(int device)
{
    launch_timing_drop_device(device);
    throttle_credits[device].ns = 0;
}

void throttle_drop_costs(void)
{
    launch_cost_drop_all();
}

void throttle_after_fork(void)
{
    launch_timing_after_fork();
    memset(throttle_credits, 0, sizeof(throttle_credits));
    throttle_captures = 0;
    launch_cost_drop_all();
}
