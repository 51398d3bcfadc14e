#include "gpuhost/clocks.h"

#include <string.h>
#include <time.h>

#include "gpu/pace.h"

#define TICK_CONTENDED_NS 2000000 /* several containers have work: see who when */
#define TICK_BUSY_NS 10000000
#define TICK_IDLE_NS 20000000
#define WANTED_NS 50000000 /* so long after its last work a container counts as wanting time */

int64_t gpu_clocks_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void publish(struct aq_gpu_clock *clock, int64_t now_ns, int64_t value, uint32_t rate)
{
    __atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&clock->rate, rate, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->at_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->value_ns, value, __ATOMIC_RELAXED);
    __atomic_store_n(&clock->seq, clock->seq + 1, __ATOMIC_RELEASE);
}

static void publish_grant(struct aq_gpu_clock *clock, int64_t now_ns, uint32_t rate)
{
    if (clock->rate != rate || !clock->at_ns)
        publish(clock, now_ns, pace_clock(clock, now_ns, now_ns, AQ_GPU_WHOLE), rate);
}

void gpu_clocks_start(struct aq_gpu_limits *limits, int64_t now_ns)
{
    for (uint32_t i = 0; i < limits->device_count; i++) {
        struct aq_gpu_limits_device *device = &limits->devices[i];

        device->grant = (struct aq_gpu_clock){ .rate = device->share, .at_ns = now_ns };
        device->own = (struct aq_gpu_clock){ .rate = AQ_GPU_WHOLE, .at_ns = now_ns };
    }
    __atomic_store_n(&limits->alive_ns, now_ns, __ATOMIC_RELAXED);
}

/* Place of the device in another region, -1 = not there. */
static int place_of(const struct gpu_view *view, const uint8_t uuid[16])
{
    for (uint32_t i = 0; i < view->limits->device_count && i < AQ_GPU_DEVICES_MAX; i++)
        if (memcmp(view->limits->devices[i].uuid, uuid, 16) == 0)
            return (int)i;
    return -1;
}

/* Processes of the container with work on the device now. */
static uint32_t active(const struct gpu_view *view, int device, int64_t now_ns)
{
    uint32_t end = view->slot_end ? view->slot_end : AQ_GPU_SLOTS_MAX, count = 0;

    for (uint32_t slot = 1; slot < end; slot++)
        count += view->limits->owners[slot].host_pid
                 && __atomic_load_n(&view->usage->slots[slot].devices[device].busy_ns,
                                    __ATOMIC_RELAXED)
                        > now_ns;
    return count;
}

static bool in_debt(const struct gpu_view *view, int device, int64_t now_ns)
{
    const struct aq_gpu_limits_device *limits = &view->limits->devices[device];
    int64_t grant = pace_clock(&limits->grant, now_ns, now_ns, limits->share);

    return pace_debt(&view->usage->devices[device], grant) > 0;
}

/* What it has paid since the last tick. Of whoever has work and has paid nothing since it
 * began nobody knows the cost: it is paid afterwards.
 */
static double paid_by(struct gpu_view *view, int device, bool is_active, int64_t now_ns)
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
 * miss work between ticks, as looking would. Work of unknown cost takes its turns.
 */
static double done_by(struct gpu_view *view, int device, bool is_active, double turn, int64_t now_ns)
{
    double span = view->seen_ns[device] ? (double)(now_ns - view->seen_ns[device]) : 0, paid;
    double done = is_active ? span * turn : span, *pending = &view->pending_ns[device];

    if (view->seen_ns[device] == now_ns)
        return view->done_ns[device]; /* by the tick of another container */
    paid = paid_by(view, device, is_active, now_ns);
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

struct look {
    double others_done;            /* device time since the last tick */
    uint32_t takers;               /* processes that took turns since the last tick */
    bool others_want;
    uint32_t running, own_running; /* processes */
    uint32_t most;                 /* running at once, of late */
    uint64_t wanted;               /* shares of those that want time, in sum */
    bool own_wants;
};

/* Processes that take turns, this container among them. */
static uint32_t sharers(const struct look *look)
{
    return look->running + (look->own_running == 0);
}

static double done_by_others(struct gpu_view *views, size_t count, size_t own,
                            const uint8_t uuid[16], uint32_t turns, int64_t now_ns,
                             uint32_t *ret_takers)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        int device = i == own ? -1 : place_of(&views[i], uuid);
        uint32_t running = device < 0 ? 0 : active(&views[i], device, now_ns);
        double turn = (double)(running ? running : 1) / (turns ? turns : 1);

        double done = device < 0 ? 0 : done_by(&views[i], device, running > 0, turn, now_ns);

        sum += done;
        *ret_takers += running == 0 && done > 0;
    }
    return sum;
}

/* Since it was last looked at: its work may have begun and ended in between. */
static bool has_paid(const struct gpu_view *view, int device)
{
    return view->seen_ns[device]
           && __atomic_load_n(&view->usage->devices[device].used_ns, __ATOMIC_RELAXED)
                  != view->used_ns[device];
}

/* The most processes of a container that have had work at once, of late. */
static uint32_t most_of(struct gpu_view *view, int device, uint32_t running, int64_t now_ns)
{
    if (running >= view->most[device] || now_ns - view->most_ns[device] > WANTED_NS) {
        view->most[device] = running;
        view->most_ns[device] = now_ns;
    }
    return view->most[device];
}

static struct look look_at(struct gpu_view *views, size_t count, size_t own,
                           const uint8_t uuid[16], int64_t now_ns)
{
    struct look look = { 0 };

    for (size_t i = 0; i < count; i++) {
        int device = place_of(&views[i], uuid);
        uint32_t running = device < 0 ? 0 : active(&views[i], device, now_ns);

        if (device < 0)
            continue;
        if (running || in_debt(&views[i], device, now_ns)
            || (i != own && has_paid(&views[i], device)))
            views[i].wanted_ns[device] = now_ns;
        look.most += most_of(&views[i], device, running, now_ns);
        look.running += running;
        if (i == own)
            look.own_running = running;
        if (views[i].wanted_ns[device] && now_ns - views[i].wanted_ns[device] < WANTED_NS) {
            look.wanted += views[i].limits->devices[device].share;
            look.own_wants |= i == own;
            look.others_want |= i != own;
        }
    }
    look.takers = sharers(&look);
    look.others_done = done_by_others(views, count, own, uuid, look.running, now_ns, &look.takers);
    return look;
}

static uint32_t rate_of(uint32_t share, const struct look *look, bool conserving)
{
    uint64_t rate = share;

    if (conserving && look->own_wants && look->wanted)
        rate = (uint64_t)share * AQ_GPU_WHOLE / look->wanted;
    return (uint32_t)(rate < share ? share : rate > AQ_GPU_WHOLE ? AQ_GPU_WHOLE : rate);
}

/* How much of the time since the last tick a process of the container has had,
 * or would have had, to itself: what the others left, or its turn. The clock
 * is set to that, and runs on as those who work now take turns.
 */
static void publish_own(struct aq_gpu_clock *clock, const struct look *look, int64_t now_ns)
{
    double span = (double)(now_ns - clock->at_ns), turn = 1.0 / look->takers;
    double left = (span - look->others_done) / (look->own_running ? look->own_running : 1);
    int64_t value = clock->value_ns + (int64_t)(left > span * turn ? left : span * turn);
    uint32_t rate = AQ_GPU_WHOLE / sharers(look);

    if (look->others_want && rate == AQ_GPU_WHOLE)
        rate -= AQ_GPU_WHOLE / 100;
    publish(clock, now_ns, value, rate);
}

int64_t gpu_clocks_tick(struct aq_gpu_limits *limits, struct gpu_view *views, size_t count,
                        size_t own, bool conserving, int64_t now_ns)
{
    int64_t next = TICK_IDLE_NS;

    for (uint32_t i = 0; i < limits->device_count; i++) {
        struct aq_gpu_limits_device *device = &limits->devices[i];
        struct look look = look_at(views, count, own, device->uuid, now_ns);

        publish_grant(&device->grant, now_ns, rate_of(device->share, &look, conserving));
        __atomic_store_n(&device->takers, look.most, __ATOMIC_RELAXED);
        publish_own(&device->own, &look, now_ns);
        if (look.running && next > TICK_BUSY_NS)
            next = TICK_BUSY_NS;
        if ((look.own_wants && look.others_want) || (conserving && look.running))
            next = TICK_CONTENDED_NS;
    }
    __atomic_store_n(&limits->alive_ns, now_ns, __ATOMIC_RELAXED);
    return next;
}
