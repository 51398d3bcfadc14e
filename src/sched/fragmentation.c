/* SPDX-License-Identifier: Apache-2.0 */
/* fragmentation.c - what an agent's free resources are worth to those to come */
#include "sched/fragmentation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
/* Weights and numbers: chosen on arrivals of several mixes, none of them for
 * one alone; see docs/decisions/scheduler.md.
 */
#define TYPICAL 0.95
#define FIRST_LOOK 100 /* arrivals before the mix is used */
#define STREAMS 16
#define STREAM_LENGTH 24
#define CACHE_SIZE (1u << 16)
#define DEVICES_MAX 64 /* more are not looked at */

static const struct {
    double unserved, unused_cpu; /* per 1/1000 device */
    double whole, partly;        /* all of eight devices, one device */
    double leftover;
    double together; /* all of eight devices and their part of the CPU, a quarter of it */
    double rate_low, rate_high;   /* part of the mix's need of CPU that is kept for devices ... */
    double tight_low, tight_high; /* ... when CPU is plenty, and when it is scarce */
    double nearly_milli, nearly;  /* parts above the one count less in streams: so often */
} weights = { 1.1, 0.11, 600, 100, 1.0, 16000, 0.75, 0.9, 0.88, 1.08, 700, 0.5 };

struct fragmentation_cached {
    uint64_t key;
    double taken;
};

/* Requests that come one after another, in columns: most do not fit, and
 * that should cost little. None without devices.
 */
struct fragmentation_stream {
    uint64_t wanted
        [STREAM_LENGTH]; /* fragmentation_pair() of the next two; without devices what nobody has */
    int32_t cpu_milli[STREAM_LENGTH], part_milli[STREAM_LENGTH];
    int32_t least_cpu[STREAM_LENGTH], least_part[STREAM_LENGTH]; /* of those that come after */
    uint32_t devices[STREAM_LENGTH], column[STREAM_LENGTH];
    uint64_t models[STREAM_LENGTH];
};

/* Two amounts in one word: neither is negative, so with both signs set a difference
 * keeps the sign of each amount that is enough.
 */
#define PAIR_SIGNS UINT64_C(0x8000000080000000)

static uint64_t fragmentation_pair(int32_t cpu_milli, int32_t part_milli)
{
    return (uint64_t)cpu_milli << 32 | (uint32_t)part_milli;
}

struct fragmentation {
    struct request_mix mix;
    uint32_t arrivals, next_look;
    uint64_t placed, left; /* sessions */
    size_t typical;        /* shapes of the mix that count; 0 = too early */
    double supply;         /* CPU (1/1000) per 1/1000 device that there is */
    double together;       /* the weight of it */
    double rate;           /* CPU (1/1000) per 1/1000 device that the mix needs */
    uint64_t random;
    uint64_t looks; /* counts them: part of the keys */
    struct fragmentation_stream streams[STREAMS];
    int32_t least_cpu, least_part; /* of all requests in them */
    struct fragmentation_cached *cache;
};

static void *fragmentation_open(void)
{
    struct fragmentation *f = aq_alloc(sizeof(*f));

    f->cache = aq_alloc_array(CACHE_SIZE, sizeof(*f->cache));
    f->next_look = FIRST_LOOK;
    return f;
}

static void fragmentation_close(void *data)
{
    struct fragmentation *f = data;

    request_mix_done(&f->mix);
    free(f->cache);
    free(f);
}

/* ---- learning ---- */

/* splitmix64: the streams are the same in every process. */
static double fragmentation_random(struct fragmentation *f)
{
    uint64_t z = f->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

/* Nearly a device: what such requests leave is of little use to anybody, so
 * they are poured half as often.
 */
static double fragmentation_stream_weight(const struct request_shape *shape, double count)
{
    if (!shape->devices)
        return 0;
    return shape->devices == 1 && shape->part_milli > weights.nearly_milli
                   && shape->part_milli < 1000
               ? count * weights.nearly
               : count;
}

static int32_t fragmentation_to_int32(int64_t n)
{
    return (int32_t)AQ_MIN(n, (int64_t)INT32_MAX);
}

/* One of the typical shapes, by weight. */
static const struct request_shape *fragmentation_draw_shape(struct fragmentation *f, double total)
{
    double left = fragmentation_random(f) * total;
    size_t last = 0;

    for (size_t i = 0; i < f->typical && left >= 0; i++) {
        double w = fragmentation_stream_weight(&f->mix.shapes[i].shape, f->mix.shapes[i].count);

        if (w > 0)
            last = i;
        left -= w;
    }
    return &f->mix.shapes[last].shape;
}

/* What the rest of the stream wants at least, and all streams. */
static void fragmentation_look_ahead(struct fragmentation *f, struct fragmentation_stream *s)
{
    int32_t cpu = INT32_MAX, part = INT32_MAX;

    for (size_t t = STREAM_LENGTH; t-- > 0;) {
        s->wanted[t] = fragmentation_pair(s->cpu_milli[t],
                                          s->devices[t] ? s->part_milli[t] : INT32_MAX);
        s->least_cpu[t] = cpu;
        s->least_part[t] = part;
        cpu = AQ_MIN(cpu, s->cpu_milli[t]);
        part = AQ_MIN(part, s->part_milli[t]);
    }
    f->least_cpu = AQ_MIN(f->least_cpu, cpu);
    f->least_part = AQ_MIN(f->least_part, part);
}

static void fragmentation_draw_streams(struct fragmentation *f)
{
    double total = 0;

    for (size_t i = 0; i < f->typical; i++)
        total += fragmentation_stream_weight(&f->mix.shapes[i].shape, f->mix.shapes[i].count);
    f->random = 1;
    f->least_cpu = f->least_part = INT32_MAX;
    for (size_t s = 0; s < STREAMS; s++)
        for (size_t t = 0; t < STREAM_LENGTH; t++) {
            const struct request_shape *shape = fragmentation_draw_shape(f, total);
            struct fragmentation_stream *to = &f->streams[s];

            to->cpu_milli[t] = fragmentation_to_int32(shape->cpu_milli);
            to->part_milli[t] = shape->part_milli;
            to->devices[t] = (uint32_t)shape->devices;
            to->column[t] = shape->column;
            to->models[t] = shape->models;
        }
    for (size_t s = 0; s < STREAMS; s++)
        fragmentation_look_ahead(f, &f->streams[s]);
}

/* CPU per device over all agents. */
static double cluster_rate(const struct cluster *c)
{
    double cpu = 0, devices = 0;

    for (size_t n = 0; n < c->node_count; n++) {
        if (c->cpu_column == SIZE_MAX || c->nodes[n].booking)
            continue;
        cpu += (double)c->nodes[n].capacity[c->cpu_column] / (AMOUNT_ONE / 1000);
        devices += 1000.0 * c->nodes[n].device_count;
    }
    return devices > 0 ? cpu / devices : 0;
}

/* The part of the sessions placed so far that have left. */
static double fragmentation_churn(const struct fragmentation *f)
{
    return f->placed ? fmin((double)f->left / (double)f->placed, 1) : 0;
}

static void fragmentation_look(struct fragmentation *f, struct cluster *c)
{
    double demand = f->mix.device_milli > 0 ? f->mix.cpu_milli / f->mix.device_milli : 0;
    double supply = cluster_rate(c), tight = supply > 0 ? demand / supply : 0;
    double part = (tight - weights.tight_low) / (weights.tight_high - weights.tight_low);

    f->typical = request_mix_sort(&f->mix, TYPICAL);
    f->rate = demand
              * (weights.rate_low
                 + (weights.rate_high - weights.rate_low) * fmin(fmax(part, 0), 1));
    f->supply = supply;
    f->together = weights.together * fragmentation_churn(f);
    f->looks++;
    fragmentation_draw_streams(f);
    f->next_look = f->arrivals + AQ_MAX(200u, f->arrivals / 4);
    cluster_forget_fits(c);
}

static void fragmentation_note_arrival(void *data, struct cluster *c,
                                       const struct slot_request *req)
{
    struct fragmentation *f = data;
    struct request_shape shape;

    if (!request_shape_of(c, req, &shape))
        return;
    request_mix_add(&f->mix, &shape);
    if (++f->arrivals >= f->next_look)
        fragmentation_look(f, c);
}

static void fragmentation_note_placed(void *data, const struct cluster *c, uint32_t node)
{
    struct fragmentation *f = data;

    (void)c;
    (void)node;
    f->placed++;
}

static void fragmentation_note_left(void *data)
{
    struct fragmentation *f = data;

    f->left++;
}

/* ---- the potential ---- */

/* Devices of one kind that the streams can use, the fullest first. What becomes
 * too full for every request stays before 'first'.
 */
struct fragmentation_vessel {
    int32_t cpu_milli;
    uint32_t first, count;
    uint16_t column, model;
    int32_t free[DEVICES_MAX];
};

/* Take a part of the device at 'at', which moves to its place among those before. */
static void fragmentation_pour_part(struct fragmentation_vessel *v, uint32_t at, int32_t part,
                                    int32_t least_part)
{
    int32_t left = v->free[at] - part;

    for (; at > v->first && v->free[at - 1] > left; at--)
        v->free[at] = v->free[at - 1];
    v->free[at] = left;
    v->first += left < least_part;
}

/* Best fit: from the fullest device where it fits, or from whole ones. It fits. */
static void fragmentation_pour(struct fragmentation_vessel *v, int32_t part, uint32_t devices,
                               int32_t least_part)
{
    uint32_t at = v->first;

    while (v->free[at] < part)
        at++;
    do
        fragmentation_pour_part(v, at++, part, least_part);
    while (--devices);
}

/* What the requests take of the devices; those that do not fit are skipped. */
static int32_t fragmentation_pour_stream(const struct fragmentation *f,
                                         const struct fragmentation_stream *s,
                                         struct fragmentation_vessel *v)
{
    uint64_t room = fragmentation_pair(v->cpu_milli, v->free[v->count - 1]) | PAIR_SIGNS;
    int32_t taken = 0;

    for (size_t t = 0; t < STREAM_LENGTH; t++) {
        uint32_t devices;

        if (((room - s->wanted[t]) & PAIR_SIGNS) != PAIR_SIGNS)
            continue;
        devices = s->devices[t];
        if (v->count - v->first < devices || v->free[v->count - devices] < s->part_milli[t]
            || s->column[t] != v->column || !(s->models[t] >> v->model & 1))
            continue;
        v->cpu_milli -= s->cpu_milli[t];
        fragmentation_pour(v, s->part_milli[t], devices, f->least_part);
        taken += (int32_t)devices * s->part_milli[t];
        if (v->cpu_milli < s->least_cpu[t] || v->free[v->count - 1] < s->least_part[t])
            break;
        room = fragmentation_pair(v->cpu_milli, v->free[v->count - 1]) | PAIR_SIGNS;
    }
    return taken;
}

/* The mean of what the streams take. */
static double fragmentation_mean_taken(const struct fragmentation *f,
                                       const struct fragmentation_vessel *vessel)
{
    int64_t sum = 0;

    for (size_t s = 0; s < STREAMS; s++) {
        struct fragmentation_vessel v;

        /* eight devices are usual, and a known size is copied without a call */
        if (vessel->count <= 8)
            memcpy(&v, vessel, offsetof(struct fragmentation_vessel, free) + 8 * sizeof(v.free[0]));
        else
            memcpy(&v, vessel,
                   offsetof(struct fragmentation_vessel, free) + vessel->count * sizeof(v.free[0]));
        sum += fragmentation_pour_stream(f, &f->streams[s], &v);
    }
    return (double)sum / STREAMS;
}

static uint64_t fragmentation_hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The same, remembered. */
static double fragmentation_taken_of(struct fragmentation *f, const struct fragmentation_vessel *v)
{
    uint64_t key = fragmentation_hash_word(fragmentation_hash_word(0, f->looks),
                                           (uint64_t)v->cpu_milli << 32 | (uint64_t)v->column << 16
                                               | v->model);
    struct fragmentation_cached *cached;

    for (uint32_t d = 0; d < v->count; d += 2)
        key = fragmentation_hash_word(key, (uint64_t)v->free[d] << 32
                                               | (uint32_t)(d + 1 < v->count ? v->free[d + 1] : 0));
    key |= 1;
    cached = &f->cache[key >> 40 & (CACHE_SIZE - 1)];
    if (cached->key != key)
        *cached = (struct fragmentation_cached){ key, fragmentation_mean_taken(f, v) };
    return cached->taken;
}

/* What the streams leave free, over the kinds of devices, each with its part of the CPU. */
static double fragmentation_leftover_of(struct fragmentation *f, const struct node_contents *n)
{
    double sum = 0;

    for (uint32_t from = 0, to; from < n->device_count; from = to) {
        struct fragmentation_vessel v; /* as much of it as there are devices: it is large */

        memset(v.free, 0, 8 * sizeof(v.free[0]));
        v.column = n->devices[from].column;
        v.model = n->devices[from].model;
        v.first = v.count = 0;
        for (to = from; to < n->device_count && n->devices[to].column == v.column
                        && n->devices[to].model == v.model;
             to++) {
            sum += n->devices[to].milli;
            v.free[v.count] = n->devices[to].milli;
            v.count += n->devices[to].milli >= f->least_part;
        }
        v.cpu_milli = fragmentation_to_int32(n->cpu_milli * (to - from) / n->device_count);
        if (f->typical && v.count && v.cpu_milli >= f->least_cpu)
            sum -= fragmentation_taken_of(f, &v);
    }
    return sum;
}

/* What counts of devices, apart from which has what. */
struct fragmentation_tally {
    int64_t cpu_milli, free_milli;
    uint32_t whole, partly;
};

static struct fragmentation_tally fragmentation_tally_of(const struct node_contents *n)
{
    struct fragmentation_tally t = { .cpu_milli = n->cpu_milli };

    for (uint32_t d = 0; d < n->device_count; d++) {
        t.free_milli += n->devices[d].milli;
        t.whole += n->devices[d].milli == 1000;
        t.partly += n->devices[d].milli > 0 && n->devices[d].milli < 1000;
    }
    return t;
}

/* The same after a part was taken from a device that had 'milli'. */
static struct fragmentation_tally fragmentation_tally_after(struct fragmentation_tally t,
                                                            const struct request_shape *shape,
                                                            int32_t milli)
{
    int32_t left = milli - shape->part_milli;

    t.cpu_milli -= shape->cpu_milli;
    t.free_milli -= shape->part_milli;
    t.whole -= milli == 1000;
    t.partly -= milli > 0 && milli < 1000;
    t.partly += left > 0 && left < 1000;
    return t;
}

/* How much there is, CPU and devices: 2 = as eight devices with their part of the CPU. */
static double fragmentation_amount_of(const struct fragmentation *f,
                                      const struct fragmentation_tally *t)
{
    double cpu = f->supply > 0 ? (double)t->cpu_milli / f->supply : 0;

    return ((double)t->free_milli + cpu) / 8000;
}

/* Balance, whole devices, and much kept together. */
static double fragmentation_simple_part(const struct fragmentation *f,
                                        const struct fragmentation_tally *t)
{
    double free_milli = (double)t->free_milli, whole = t->whole;
    double amount = f->together > 0 ? fragmentation_amount_of(f, t) : 0;
    double served = f->rate > 0 ? (double)t->cpu_milli / f->rate : free_milli;

    return weights.unserved * fmax(0, free_milli - served)
           + weights.unused_cpu * fmax(0, served - free_milli) - weights.whole * whole * whole / 64
           - weights.partly * t->partly - f->together * amount * amount;
}

/* ---- the score ---- */

static void fragmentation_read_contents(const struct cluster *c, const struct node_state *s,
                                        struct node_contents *ret)
{
    ret->cpu_milli = c->cpu_column == SIZE_MAX ? 0 : s->free[c->cpu_column] / (AMOUNT_ONE / 1000);
    ret->device_count = AQ_MIN((uint32_t)s->device_count, (uint32_t)DEVICES_MAX);
    for (uint32_t d = 0; d < ret->device_count; d++)
        ret->devices[d] = (struct free_device){
            (int32_t)AQ_MAX(s->devices[d].free * 1000 / s->devices[d].capacity, INT64_C(0)),
            s->devices[d].column, s->devices[d].model
        };
}

/* Keep the devices sorted after one has less. */
static void fragmentation_lower(struct free_device *devices, uint32_t at, int32_t milli)
{
    struct free_device d = devices[at];

    d.milli -= milli;
    for (; at > 0 && devices[at - 1].column == d.column && devices[at - 1].model == d.model
           && devices[at - 1].milli > d.milli;
         at--)
        devices[at] = devices[at - 1];
    devices[at] = d;
}

/* For a single part the next device, from 'from' on, that would do and differs
 * from the one before: its place, or UINT32_MAX.
 */
static uint32_t fragmentation_next_choice(const struct node_contents *before,
                                          const struct request_shape *shape, uint32_t from)
{
    for (uint32_t d = from; d < before->device_count; d++) {
        const struct free_device *dev = &before->devices[d];

        if (dev->milli < shape->part_milli || dev->column != shape->column
            || !(shape->models >> dev->model & 1)
            || (d > 0 && memcmp(dev, dev - 1, sizeof(*dev)) == 0)) /* as the one before */
            continue;
        return d;
    }
    return UINT32_MAX;
}

/* With a single part taken from device 'd'. */
static void fragmentation_take_choice(const struct node_contents *before,
                                      const struct request_shape *shape, uint32_t d,
                                      struct free_device *ret)
{
    memcpy(ret, before->devices, before->device_count * sizeof(*ret));
    fragmentation_lower(ret, d, shape->part_milli);
}

/* Several devices, or none: one choice. */
static void fragmentation_only_choice(const struct cluster *c, const struct slot_request *req,
                                      const struct node_state *s,
                                      const struct node_contents *before, struct free_device *ret)
{
    struct device_part parts[DEVICES_MAX];
    int count = s->device_count <= DEVICES_MAX
                    ? fit_choose_devices(c, req, s->devices, s->device_count, -1, parts)
                    : 0;

    memcpy(ret, before->devices, before->device_count * sizeof(*ret));
    /* from the front, so that places behind stay what they were */
    for (uint32_t d = 0; d < before->device_count; d++)
        for (int i = 0; i < count; i++)
            if (parts[i].device == d)
                fragmentation_lower(ret, d,
                                    (int32_t)(parts[i].amount * 1000 / s->devices[d].capacity));
}

/* How far the leftovers can fall: not by more than is taken. */
static double fragmentation_fall_of_leftover(struct fragmentation *f, double before,
                                             const struct node_contents *after, double taken)
{
    return fmin(before - fragmentation_leftover_of(f, after), taken);
}

/* While the mix is not known nothing else tells agents apart for a session without devices: it
 * keeps off those that have some.
 */
static double fragmentation_keep_off(const struct fragmentation *f,
                                     const struct request_shape *shape, const struct node_state *s)
{
    return f->typical == 0 && shape->devices == 0 && s->device_count > 0 ? -1 : 0;
}

struct fragmentation_view {
    struct free_device devices[DEVICES_MAX], devices_after[DEVICES_MAX];
    struct node_contents before, after;
    struct request_shape shape;
    struct fragmentation_tally tally; /* before */
    double simple, taken;
    bool is_single;
};

static bool fragmentation_view_init(const struct fragmentation *f, const struct cluster *c,
                                    const struct slot_request *req, const struct node_state *s,
                                    struct fragmentation_view *v)
{
    v->before.devices = v->devices;
    v->after.devices = v->devices_after;
    if (!request_shape_of(c, req, &v->shape))
        return false;
    fragmentation_read_contents(c, s, &v->before);
    v->after.cpu_milli = v->before.cpu_milli - v->shape.cpu_milli;
    v->after.device_count = v->before.device_count;
    v->tally = fragmentation_tally_of(&v->before);
    v->simple = fragmentation_simple_part(f, &v->tally);
    v->taken = (double)v->shape.devices * v->shape.part_milli;
    v->is_single = v->shape.devices == 1 && s->device_count <= DEVICES_MAX
                   && (!req->may_split
                       || fragmentation_next_choice(&v->before, &v->shape, 0) != UINT32_MAX);
    return true;
}

/* By how much the simple part falls: with a single part from device 'd', or as the only choice. */
static double fragmentation_fall_of_single(const struct fragmentation *f,
                                           const struct fragmentation_view *v, uint32_t d)
{
    struct fragmentation_tally after = fragmentation_tally_after(v->tally, &v->shape,
                                                                 v->before.devices[d].milli);

    return v->simple - fragmentation_simple_part(f, &after);
}

static double fragmentation_fall_of_only(const struct fragmentation *f, const struct cluster *c,
                                         const struct slot_request *req, const struct node_state *s,
                                         struct fragmentation_view *v)
{
    struct fragmentation_tally after;

    fragmentation_only_choice(c, req, s, &v->before, v->devices_after);
    after = fragmentation_tally_of(&v->after);
    return v->simple - fragmentation_simple_part(f, &after);
}

static double fragmentation_score(void *data, const struct cluster *c,
                                  const struct slot_request *req, const struct node_state *s,
                                  int32_t *ret_device)
{
    struct fragmentation *f = data;
    struct fragmentation_view v;
    double before, best = -INFINITY;

    if (!fragmentation_view_init(f, c, req, s, &v))
        return 0;
    before = fragmentation_leftover_of(f, &v.before);
    if (!v.is_single) {
        double fall = fragmentation_fall_of_only(f, c, req, s, &v);

        return fall + fragmentation_fall_of_leftover(f, before, &v.after, v.taken)
               + fragmentation_keep_off(f, &v.shape, s);
    }
    for (uint32_t d = 0; (d = fragmentation_next_choice(&v.before, &v.shape, d)) != UINT32_MAX;
         d++) {
        double fall = fragmentation_fall_of_single(f, &v, d), now;

        if (fall + fmin(v.taken, before) <= best)
            continue;
        fragmentation_take_choice(&v.before, &v.shape, d, v.devices_after);
        now = fall + fragmentation_fall_of_leftover(f, before, &v.after, v.taken);
        if (now > best) {
            best = now;
            *ret_device = (int32_t)d;
        }
    }
    return best;
}

/* The leftovers fall by no more than there are, and than is taken. */
static double fragmentation_bound(void *data, const struct cluster *c,
                                  const struct slot_request *req, const struct node_state *s)
{
    struct fragmentation *f = data;
    struct fragmentation_view v;
    double most = -INFINITY;

    if (!fragmentation_view_init(f, c, req, s, &v))
        return 0;
    if (!v.is_single) {
        most = fragmentation_fall_of_only(f, c, req, s, &v)
               + fragmentation_keep_off(f, &v.shape, s);
    } else {
        for (uint32_t d = 0; (d = fragmentation_next_choice(&v.before, &v.shape, d)) != UINT32_MAX;
             d++)
            most = fmax(most, fragmentation_fall_of_single(f, &v, d));
    }
    return most + fmin(v.taken, fragmentation_leftover_of(f, &v.before));
}

const struct selector_ops sched_fragmentation = { .name = "fragmentation",
                                                  .open = fragmentation_open,
                                                  .close = fragmentation_close,
                                                  .score = fragmentation_score,
                                                  .upper_bound = fragmentation_bound,
                                                  .on_arrival = fragmentation_note_arrival,
                                                  .on_placement = fragmentation_note_placed,
                                                  .on_departure = fragmentation_note_left };
