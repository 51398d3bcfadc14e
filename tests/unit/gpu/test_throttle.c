/* SPDX-License-Identifier: Apache-2.0 */
/* test_throttle.c - launches under a share; device and clock stand still until somebody waits */
#include "testing.h"

#include <stdlib.h>
#include <time.h>

#include "gpu/device.h"
#include "gpu/rate_limit.h"
#include "gpu/launch_timing.h"
#include "gpu/throttle.h"

#define MS 1000000LL
#define GRACE (100 * MS)

/* ---- the device: one queue, that has 'part' of its time ---- */

static struct {
    int64_t now, end; /* of what is queued */
    double part;      /* the rest is others' */
    double true_debt; /* launched and not granted, by what it costs in the end */
} sim;

struct CUevent_st {
    int64_t at;
};

struct gpu_real gpu_real;
struct gpu_region gpu_region;

static void agent_ticks(void)
{
    struct aq_gpu_limits_device *device = (void *)&gpu_region.limits->devices[0];

    ((struct aq_gpu_limits *)(uintptr_t)gpu_region.limits)->alive_ns = sim.now;
    device->own.value_ns = (int64_t)((double)sim.now * sim.part);
    device->own.rate = (uint32_t)(AQ_GPU_WHOLE * sim.part);
    device->own.at_ns = sim.now;
}

int nanosleep(const struct timespec *span, struct timespec *left)
{
    (void)left;
    sim.now += (int64_t)span->tv_sec * 1000 * MS + span->tv_nsec;
    agent_ticks();
    return 0;
}

int64_t gpu_now_ns(void)
{
    return sim.now;
}

void gpu_region_renew(void)
{
}

int gpu_device_ask(void)
{
    return 0;
}

static CUresult get_context(CUcontext *ret)
{
    static int context;

    *ret = (CUcontext)(void *)&context;
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *ret, unsigned int flags)
{
    (void)flags;
    static struct CUevent_st events[4096];
    static size_t made;

    *ret = &events[made++ % AQ_COUNT(events)];
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    (void)stream;
    event->at = sim.end > sim.now ? sim.end : sim.now;
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
    return sim.now >= event->at ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_elapsed(float *ret, CUevent start, CUevent end)
{
    *ret = (float)((double)(end->at - start->at) / 1e6);
    return CUDA_SUCCESS;
}

static struct aq_gpu_limits *limits;
static struct aq_gpu_usage *usage;

static void start(double share, double part)
{
    sim.now = 1000 * MS;
    sim.end = 0;
    sim.part = part;
    sim.true_debt = 0;
    *limits = (struct aq_gpu_limits){ .device_count = 1 };
    *usage = (struct aq_gpu_usage){ 0 };
    limits->devices[0].share = (uint32_t)(AQ_GPU_WHOLE * share);
    limits->devices[0].takers = part < 1 ? (uint32_t)(1 / part + 0.5) : 1;
    limits->devices[0].grant = (struct aq_gpu_clock){ .rate = limits->devices[0].share,
                                                      .at_ns = sim.now };
    gpu_region = (struct gpu_region){
        .limits = limits, .usage = usage, .slot = 1, .device_count = 1
    };
    throttle_after_fork();
    agent_ticks();
}

static int set_up(void **state)
{
    (void)state;
    limits = calloc(1, sizeof(*limits));
    usage = calloc(1, sizeof(*usage));
    gpu_real.cuCtxGetCurrent = get_context;
    gpu_real.cuEventCreate = event_create;
    gpu_real.cuEventRecord = event_record;
    gpu_real.cuEventQuery = event_query;
    gpu_real.cuEventElapsedTime = event_elapsed;
    return limits && usage ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    gpu_region.limits = NULL;
    free(limits);
    free(usage);
    return 0;
}

/* Launch a kernel that costs 'ns'. Returns by how much the launch waited longer than its
 * debt by the share: what all launches before it are worth and was not granted, or what the
 * slice says, if that is more.
 */
static int64_t launch(uint64_t key, int64_t ns, double share)
{
    struct throttle_launch launch;
    int64_t before = sim.now, waited;
    double said = (double)rate_limit_debt(
        &usage->devices[0],
        rate_limit_clock(&limits->devices[0].grant, sim.now, sim.now, limits->devices[0].share));
    double debt = sim.true_debt > said ? sim.true_debt : said;

    throttle_begin(&launch, key, NULL);
    waited = sim.now - before;
    sim.end = (sim.end > sim.now ? sim.end : sim.now) + (int64_t)((double)ns / sim.part);
    sim.true_debt += (double)ns;
    throttle_end(&launch, CUDA_SUCCESS);
    sim.true_debt -= (double)waited * share;
    if (sim.true_debt < -20.0 * MS)
        sim.true_debt = -20.0 * MS;
    return waited - (int64_t)(debt > 0 ? debt / share : 0);
}

static void synchronize(double share)
{
    int64_t begin = throttle_wait_begin(), before = sim.now;

    if (sim.end > sim.now)
        sim.now = sim.end;
    sim.true_debt -= (double)(sim.now - before) * share;
    agent_ticks();
    throttle_wait_end(begin);
}

static const struct {
    double share, part;
    int64_t ns;
    int kernels;
    bool waits;
    const char *why;
} rows[] = {
    { 0.4, 0.25, 500 * MS, 1, false, "a long kernel among three others, never waited for" },
    { 0.1, 0.25, 500 * MS, 1, false, "the same of a small share" },
    { 0.1, 0.25, 500 * MS, 1, true, "the same, waited for" },
    { 0.5, 1, 2000 * MS, 1, false, "a kernel of two seconds, alone" },
    { 0.3, 0.5, 20 * MS, 40, false, "many kernels that nobody knows" },
    { 0.3, 0.5, 300 * MS, 40, false, "many long kernels that nobody knows" },
    { 0.3, 1, 2 * MS, 1, true, "a kernel as long as a turn" },
    { 0.7, 0.5, 50000, 3, false, "tiny kernels" },
};

/* No launch waits longer than its debt by its share, and 100 ms: the first ones neither. */
static void test_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t worst = INT64_MIN;

        start(rows[i].share, rows[i].part);
        for (int n = 0; n < 400; n++) {
            uint64_t key = launch_cost_key(&rows[i], 1 + (uint64_t)(n % rows[i].kernels), 256);
            int64_t beyond = launch(key, rows[i].ns, rows[i].share);

            worst = beyond > worst ? beyond : worst;
            if (rows[i].waits)
                synchronize(rows[i].share);
        }
        assert_row(worst <= GRACE, "%s: %lld us beyond the debt", rows[i].why,
                   (long long)(worst / 1000));
    }
}

/* What is let go on a guess is paid as it runs: few get away before the first has ended. */
static void test_unknown(void **state)
{
    int count = 0;

    (void)state;
    start(0.4, 0.25);
    for (; sim.now < 3000 * MS; count++)
        (void)launch(launch_cost_key("unknown", 1, 256), 500 * MS, 0.4);
    assert_in_range(count, 2, 6);
}

/* The share is what is used in the end, waited for or not, beside others or alone. */
static void test_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int64_t ns = i ? 8 * MS : MS; ns <= 30 * MS; ns += 7 * MS / 2) { /* turns are 2 ms */
            int64_t used = 0, begin;

            start(0.3, i ? 0.5 : 1);
            for (begin = sim.now; sim.now < begin + 5000 * MS; used += ns) {
                (void)launch(launch_cost_key("share", 1, 256), ns, 0.3);
                synchronize(0.3);
            }
            assert_row(llabs(used * 1000 / (sim.now - begin) - 300) <= 20,
                       "%lld us, %zu others: %lld per mille", (long long)ns / 1000, i,
                       (long long)(used * 1000 / (sim.now - begin)));
        }
}

/* A launch whose cost became known while it waited is paid like any other. */
static void test_paid(void **state)
{
    (void)state;
    start(0.5, 1);
    (void)launch(launch_cost_key("paid", 1, 256), 10 * MS, 0.5);
    (void)launch(launch_cost_key("paid", 1, 256), 10 * MS, 0.5);
    assert_in_range(usage->devices[0].used_ns, 20 * MS, 21 * MS);
}

/* Who waits for a device that others have keeps what it was granted meanwhile. */
static void test_waited(void **state)
{
    int64_t used, begin;

    (void)state;
    start(0.5, 1);
    for (int n = 0; n < 200; n++) { /* known, and measured now and then only */
        (void)launch(launch_cost_key("waited", 1, 256), 50000, 0.5);
        synchronize(0.5);
    }
    sim.part = 0.02;
    for (begin = sim.now; sim.now < begin + 500 * MS;) {
        (void)launch(launch_cost_key("waited", 1, 256), 50000, 0.5);
        synchronize(0.5);
    }
    sim.part = 1;
    for (used = 0, begin = sim.now; sim.now < begin + 200 * MS; used += 50000) {
        (void)launch(launch_cost_key("waited", 1, 256), 50000, 0.5);
        synchronize(0.5);
    }
    assert_true(used > 180 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound), cmocka_unit_test(test_unknown), cmocka_unit_test(test_share),
        cmocka_unit_test(test_paid),  cmocka_unit_test(test_waited),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
