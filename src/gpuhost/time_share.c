/* SPDX-License-Identifier: Apache-2.0 */
/* time_share.c - the two clocks of each slice, from who has work on a device */
#include "gpuhost/time_share.h"

#include <string.h>
#include <time.h>

#include "gpu/rate_limit.h"

#define TICK_CONTENDED_NS 2000000 /* several containers have work: see who when */
#define TICK_BUSY_NS 10000000
#define TICK_IDLE_NS 20000000
#define WANTED_NS 50000000 /* so long after its last work a container counts as wanting time */

int64_t gpu_monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void time_share_publish(struct aq_gpu_clock *clock, int64_t now_ns, int64_t value,
                               uint32_t rate)
{
    __atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&clock->rate, rate, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->at_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->value_ns, value, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
}

static void time_share_publish_grant(struct aq_gpu_clock *clock, int64_t now_ns, uint32_t rate)
{
    if (clock->rate != rate || !clock->at_ns)
        time_share_publish(clock, now_ns, rate_limit_clock(clock, now_ns, now_ns, AQ_GPU_WHOLE),
                           rate);
}

void gpu_time_share_start(struct aq_gpu_limits *limits, int64_t now_ns)
{
    for (uint32_t i = 0; i < limits->device_count; i++) {
        struct aq_gpu_limits_device *device = &limits->devices[i];

        device->grant = (struct aq_gpu_clock){ .rate = device->share, .at_ns = now_ns };
        device->own = (struct aq_gpu_clock){ .rate = AQ_GPU_WHOLE, .at_ns = now_ns };
    }
    __atomic_store_n(&limits->alive_ns, now_ns, __ATOMIC_RELAXED);
}

/* Place of the device in another region, -1 = not there. */
static int time_share_index_of(const struct gpu_region_view *view, const uint8_t uuid[16])
{
    for (uint32_t i = 0; i < view->limits->device_count && i < AQ_GPU_DEVICES_MAX; i++)
        if (memcmp(view->limits->devices[i].uuid, uuid, 16) == 0)
            return (int)i;
    return -1;
}

/* Processes of the container with work on the device now. */
static uint32_t time_share_is_active(const struct gpu_region_view *view, int device, int64_t now_ns)
{
    uint32_t end = view->slot_end ? view->slot_end : AQ_GPU_SLOTS_MAX, count = 0;

    for (uint32_t slot = 1; slot < end; slot++)
        count += view->limits->owners[slot].host_pid
                 && __atomic_load_n(&view->usage->slots[slot].devices[device].busy_ns,
                                    __ATOMIC_RELAXED)
                        > now_ns;
    return count;
}

static bool time_share_in_debt(const struct gpu_region_view *view, int device, int64_t now_ns)
{
    const struct aq_gpu_limits_device *limits = &view->limits->devices[device];
    int64_t grant = rate_limit_clock(&limits->grant, now_ns, now_ns, limits->share);

    return rate_limit_debt(&view->usage->devices[device], grant) > 0;
}

/* What it has paid since the last tick. If it has work and has paid nothing since that began,
 * the cost is not known yet: it is paid afterwards.
 */
static double time_share_paid_by(struct gpu_region_view *view, int device, bool is_active,
                                 int64_t now_ns)
{
    int64_t used = __atomic_load_n(&view->usage->devices[device].used_ns, __ATOMIC_RELAXED);
    double paid = view->seen_ns[device] ? (double)used - (double)view->used_ns[device] : 0;

    if (!is_active || paid != 0)
        view->is_paid[device] = is_active;
    view->pending_ns[device] += paid;
    view->used_ns[device] = used;
    view->seen_ns[device] = now_ns;
    return paid;
}

/* Device time that the container has used since the last tick: what it has paid,
 * as far as the device can have done it, in its turn. Nothing outstanding =
 * all of it is done; what is left then was paid too much, and comes back. Sums do not
 * miss work between ticks, as sampling would. Work of unknown cost takes its turns.
 */
static double time_share_done_by(struct gpu_region_view *view, int device, bool is_active,
                                 double turn, int64_t now_ns)
{
    double span = view->seen_ns[device] ? (double)(now_ns - view->seen_ns[device]) : 0, paid;
    double done = is_active ? span * turn : span, *pending = &view->pending_ns[device];

    if (view->seen_ns[device] == now_ns)
        return view->done_ns[device]; /* by the tick of another container */
    paid = time_share_paid_by(view, device, is_active, now_ns);
    if (!is_active || view->is_paid[device])
        done = done < *pending ? done : *pending;
    if (!is_active && !view->was_active[device])
        done = done < paid ? done : paid;
    done = done > 0 ? done : 0;
    *pending -= done;
    if (!is_active && !view->was_active[device] && now_ns - view->wanted_ns[device] > WANTED_NS)
        *pending = 0;
    view->was_active[device] = is_active;
    view->done_ns[device] = done;
    return done;
}

struct time_share_observation {
    double others_done;  /* device time since the last tick */
    uint32_t contenders; /* processes that took turns since the last tick */
    bool others_want;
    uint32_t running, own_running; /* processes */
    uint32_t most;                 /* running at once, of late */
    uint64_t wanted;               /* shares of those that want time, in sum */
    bool own_wants;
};

/* Processes that take turns, this container among them. */
static uint32_t time_share_contenders(const struct time_share_observation *seen)
{
    return seen->running + (seen->own_running == 0);
}

static double time_share_done_by_others(struct gpu_region_view *views, size_t count, size_t own,
                                        const uint8_t uuid[16], uint32_t turns, int64_t now_ns,
                                        uint32_t *ret_takers)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        int device = i == own ? -1 : time_share_index_of(&views[i], uuid);
        uint32_t running = device < 0 ? 0 : time_share_is_active(&views[i], device, now_ns);
        double turn = (double)(running ? running : 1) / (turns ? turns : 1);

        double done = device < 0 ? 0
                                 : time_share_done_by(&views[i], device, running > 0, turn, now_ns);

        sum += done;
        *ret_takers += running == 0 && done > 0;
    }
    return sum;
}

/* Since it was last observed: its work may have begun and ended in between. */
static bool time_share_has_paid(const struct gpu_region_view *view, int device)
{
    return view->seen_ns[device]
           && __atomic_load_n(&view->usage->devices[device].used_ns, __ATOMIC_RELAXED)
                  != view->used_ns[device];
}

/* The most processes of a container that have had work at once, of late. */
static uint32_t time_share_max_processes(struct gpu_region_view *view, int device, uint32_t running,
                                         int64_t now_ns)
{
    if (running >= view->most[device] || now_ns - view->most_ns[device] > WANTED_NS) {
        view->most[device] = running;
        view->most_ns[device] = now_ns;
    }
    return view->most[device];
}

static struct time_share_observation time_share_observe(struct gpu_region_view *views, size_t count,
                                                        size_t own, const uint8_t uuid[16],
                                                        int64_t now_ns)
{
    struct time_share_observation seen = { 0 };

    for (size_t i = 0; i < count; i++) {
        int device = time_share_index_of(&views[i], uuid);
        uint32_t running = device < 0 ? 0 : time_share_is_active(&views[i], device, now_ns);

        if (device < 0)
            continue;
        if (running || time_share_in_debt(&views[i], device, now_ns)
            || (i != own && time_share_has_paid(&views[i], device)))
            views[i].wanted_ns[device] = now_ns;
        seen.most += time_share_max_processes(&views[i], device, running, now_ns);
        seen.running += running;
        if (i == own)
            seen.own_running = running;
        if (views[i].wanted_ns[device] && now_ns - views[i].wanted_ns[device] < WANTED_NS) {
            seen.wanted += views[i].limits->devices[device].share;
            seen.own_wants |= i == own;
            seen.others_want |= i != own;
        }
    }
    seen.contenders = time_share_contenders(&seen);
    seen.others_done = time_share_done_by_others(views, count, own, uuid, seen.running, now_ns,
                                                 &seen.contenders);
    return seen;
}

static uint32_t time_share_rate(uint32_t share, const struct time_share_observation *seen,
                                bool conserving)
{
    uint64_t rate = share;

    if (conserving && seen->own_wants && seen->wanted)
        rate = (uint64_t)share * AQ_GPU_WHOLE / seen->wanted;
    return (uint32_t)(rate < share ? share : rate > AQ_GPU_WHOLE ? AQ_GPU_WHOLE : rate);
}

/* How much of the time since the last tick a process of the container has had,
 * or would have had, to itself: what the others left, or its turn. The clock
 * is set to that, and runs on as those who work now take turns.
 */
static void time_share_publish_own(struct aq_gpu_clock *clock,
                                   const struct time_share_observation *seen, int64_t now_ns)
{
    double span = (double)(now_ns - clock->at_ns), turn = 1.0 / seen->contenders;
    double left = (span - seen->others_done) / (seen->own_running ? seen->own_running : 1);
    int64_t value = clock->value_ns + (int64_t)(left > span * turn ? left : span * turn);
    uint32_t rate = AQ_GPU_WHOLE / time_share_contenders(seen);

    if (seen->others_want && rate == AQ_GPU_WHOLE)
        rate -= AQ_GPU_WHOLE / 100;
    time_share_publish(clock, now_ns, value, rate);
}

int64_t gpu_time_share_tick(struct aq_gpu_limits *limits, struct gpu_region_view *views,
                            size_t count, size_t own, bool conserving, int64_t now_ns)
{
    int64_t next = TICK_IDLE_NS;

    for (uint32_t i = 0; i < limits->device_count; i++) {
        struct aq_gpu_limits_device *device = &limits->devices[i];
        struct time_share_observation seen = time_share_observe(views, count, own, device->uuid,
                                                                now_ns);

        time_share_publish_grant(&device->grant, now_ns,
                                 time_share_rate(device->share, &seen, conserving));
        __atomic_store_n(&device->takers, seen.most, __ATOMIC_RELAXED);
        time_share_publish_own(&device->own, &seen, now_ns);
        if (seen.running && next > TICK_BUSY_NS)
            next = TICK_BUSY_NS;
        if ((seen.own_wants && seen.others_want) || (conserving && seen.running))
            next = TICK_CONTENDED_NS;
    }
    __atomic_store_n(&limits->alive_ns, now_ns, __ATOMIC_RELAXED);
    return next;
}
