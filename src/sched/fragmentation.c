#include "sched/fragmentation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weights and numbers: chosen on arrivals of several mixes, none of them for
 * one alone; see docs/decisions.md.
 */
#define TYPICAL 0.95
#define FIRST_LOOK 100          /* arrivals before the mix is used */
#define STREAMS 32
#define STREAM_LENGTH 40
#define CACHE_SIZE (1u << 16)
#define DEVICES_MAX 64          /* more are not looked at */

static const struct {
    double unserved, unused_cpu; /* per 1/1000 device */
    double whole, partly;        /* all of eight devices, one device */
    double leftover;
    double rate_low, rate_high;  /* part of the mix's need of CPU that is kept for devices ... */
    double tight_low, tight_high; /* ... when CPU is plenty, and when it is scarce */
    double nearly_milli, nearly; /* parts above the one count less in streams: so often */
} weights = { 1.1, 0.11, 600, 100, 1.0, 0.75, 0.9, 0.88, 1.08, 700, 0.5 };

struct cached {
    uint64_t key;
    double potential;
};

struct fragmentation {
    struct mix mix;
    uint32_t arrivals, next_look;
    size_t typical;             /* shapes of the mix that count; 0 = too early */
    double rate;                /* CPU (1/1000) per 1/1000 device that the mix needs */
    uint64_t random;
    uint64_t looks;             /* counts them: part of the keys */
    struct shape streams[STREAMS][STREAM_LENGTH];
    struct cached *cache;
};

static int open_fragmentation(void **ret)
{
    struct fragmentation *f = calloc(1, sizeof(*f));

    if (!f || !(f->cache = calloc(CACHE_SIZE, sizeof(*f->cache)))) {
        free(f);
        return -ENOMEM;
    }
    f->next_look = FIRST_LOOK;
    *ret = f;
    return 0;
}

static void close_fragmentation(void *data)
{
    struct fragmentation *f = data;

    mix_done(&f->mix);
    free(f->cache);
    free(f);
}

/* ---- learning ---- */

/* splitmix64: the streams are the same in every process. */
static double next_random(struct fragmentation *f)
{
    uint64_t z = f->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

/* Nearly a device: what such requests leave is of little use to anybody, so
 * they are poured half as often.
 */
static double stream_weight(const struct shape *shape, double count)
{
    if (!shape->devices)
        return 0;
    return shape->devices == 1 && shape->part_milli > weights.nearly_milli && shape->part_milli < 1000
               ? count * weights.nearly
               : count;
}

static void draw_streams(struct fragmentation *f)
{
    double total = 0;

    for (size_t i = 0; i < f->typical; i++)
        total += stream_weight(&f->mix.shapes[i].shape, f->mix.shapes[i].count);
    f->random = 1;
    for (size_t s = 0; s < STREAMS; s++)
        for (size_t t = 0; t < STREAM_LENGTH; t++) {
            double left = next_random(f) * total;
            size_t i = 0, last = 0;

            for (; i < f->typical && left >= 0; i++) {
                double w = stream_weight(&f->mix.shapes[i].shape, f->mix.shapes[i].count);

                if (w > 0)
                    last = i;
                left -= w;
            }
            f->streams[s][t] = f->mix.shapes[last].shape;
        }
}

/* CPU per device over all agents. */
static double cluster_rate(const struct cluster *c)
{
    double cpu = 0, devices = 0;

    for (size_t n = 0; n < c->node_count; n++) {
        if (!c->nodes[n].id || c->cpu_column == SIZE_MAX)
            continue;
        cpu += (double)c->nodes[n].capacity[c->cpu_column] / (AMOUNT_ONE / 1000);
        devices += 1000.0 * c->nodes[n].device_count;
    }
    return devices > 0 ? cpu / devices : 0;
}

static void look(struct fragmentation *f, struct cluster *c)
{
    double demand = f->mix.device_milli > 0 ? f->mix.cpu_milli / f->mix.device_milli : 0;
    double supply = cluster_rate(c), tight = supply > 0 ? demand / supply : 0;
    double part = (tight - weights.tight_low) / (weights.tight_high - weights.tight_low);

    f->typical = mix_sort(&f->mix, TYPICAL);
    f->rate = demand * (weights.rate_low + (weights.rate_high - weights.rate_low) * fmin(fmax(part, 0), 1));
    f->looks++;
    draw_streams(f);
    f->next_look = f->arrivals + AQ_MAX(200u, f->arrivals / 4);
    cluster_forget_fits(c);
}

static void note_arrival(void *data, struct cluster *c, const struct request *req)
{
    struct fragmentation *f = data;
    struct shape shape;

    if (!shape_of(c, req, &shape) || mix_add(&f->mix, &shape) < 0)
        return;
    if (++f->arrivals >= f->next_look)
        look(f, c);
}

/* ---- the potential ---- */

/* Take the shape out of 'n'; false if it does not fit. */
static bool pour(struct contents *n, const struct shape *shape)
{
    uint32_t best = UINT32_MAX, whole = 0;

    if (n->cpu_milli < shape->cpu_milli)
        return false;
    for (uint32_t d = 0; d < n->device_count; d++) {
        const struct free_device *dev = &n->devices[d];

        if (dev->milli < shape->part_milli || dev->column != shape->column ||
            !(shape->models >> dev->model & 1))
            continue;
        whole++;
        if (best == UINT32_MAX || dev->milli < n->devices[best].milli)
            best = d;
    }
    if (whole < (uint32_t)shape->devices)
        return false;
    n->cpu_milli -= shape->cpu_milli;
    if (shape->devices == 1) {
        n->devices[best].milli -= shape->part_milli;
        return true;
    }
    for (uint32_t d = 0, left = (uint32_t)shape->devices; left > 0; d++)
        if (n->devices[d].milli >= shape->part_milli && n->devices[d].column == shape->column &&
            (shape->models >> n->devices[d].model & 1)) {
            n->devices[d].milli -= shape->part_milli;
            left--;
        }
    return true;
}

/* The mean of what the streams leave free. */
static double leftover(const struct fragmentation *f, const struct contents *n, int64_t free_milli)
{
    int64_t sum = 0;

    for (size_t s = 0; s < STREAMS && free_milli > 0; s++) {
        struct free_device devices[DEVICES_MAX];
        struct contents copy = { n->cpu_milli, n->device_count, devices };
        int64_t left = free_milli;

        memcpy(devices, n->devices, n->device_count * sizeof(*devices));
        for (size_t t = 0; t < STREAM_LENGTH && left > 0; t++)
            if (pour(&copy, &f->streams[s][t]))
                left -= f->streams[s][t].devices * f->streams[s][t].part_milli;
        sum += left;
    }
    return (double)sum / STREAMS;
}

static double compute(const struct fragmentation *f, const struct contents *n)
{
    int64_t free_milli = 0;
    double whole = 0, partly = 0, served;

    for (uint32_t d = 0; d < n->device_count; d++) {
        free_milli += n->devices[d].milli;
        whole += n->devices[d].milli == 1000;
        partly += n->devices[d].milli > 0 && n->devices[d].milli < 1000;
    }
    served = f->rate > 0 ? (double)n->cpu_milli / f->rate : (double)free_milli;
    return weights.unserved * fmax(0, (double)free_milli - served) +
           weights.unused_cpu * fmax(0, served - (double)free_milli) - weights.whole * whole * whole / 64 -
           weights.partly * partly + weights.leftover * leftover(f, n, free_milli);
}

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static double potential(struct fragmentation *f, const struct contents *n)
{
    uint64_t key = mix_word(f->looks, (uint64_t)n->cpu_milli);
    struct cached *cached;

    for (uint32_t d = 0; d < n->device_count; d++)
        key = mix_word(key, (uint64_t)n->devices[d].milli << 32 |
                                (uint64_t)n->devices[d].column << 16 | n->devices[d].model);
    key |= 1;
    cached = &f->cache[key >> 40 & (CACHE_SIZE - 1)];
    if (cached->key != key)
        *cached = (struct cached){ key, compute(f, n) };
    return cached->potential;
}

/* ---- the score ---- */

static void read_contents(const struct cluster *c, const struct node_state *s, struct contents *ret)
{
    ret->cpu_milli = c->cpu_column == SIZE_MAX ? 0
                                               : s->free[c->cpu_column] / (AMOUNT_ONE / 1000);
    ret->device_count = AQ_MIN((uint32_t)s->device_count, (uint32_t)DEVICES_MAX);
    for (uint32_t d = 0; d < ret->device_count; d++)
        ret->devices[d] = (struct free_device){
            (int32_t)AQ_MAX(s->devices[d].free * 1000 / s->devices[d].capacity, INT64_C(0)),
            s->devices[d].column, s->devices[d].model };
}

/* Keep the devices sorted after one has less. */
static void lower(struct free_device *devices, uint32_t at, int32_t milli)
{
    struct free_device d = devices[at];

    d.milli -= milli;
    for (; at > 0 && devices[at - 1].column == d.column && devices[at - 1].model == d.model &&
           devices[at - 1].milli > d.milli; at--)
        devices[at] = devices[at - 1];
    devices[at] = d;
}

/* With the amount of a single part taken from each device that would do. */
static double best_device(struct fragmentation *f, const struct contents *before,
                          const struct shape *shape, int32_t *ret_device)
{
    struct free_device devices[DEVICES_MAX];
    struct contents after = { before->cpu_milli - shape->cpu_milli, before->device_count, devices };
    double least = INFINITY;

    for (uint32_t d = 0; d < before->device_count; d++) {
        double now;

        if (before->devices[d].milli < shape->part_milli ||
            before->devices[d].column != shape->column ||
            !(shape->models >> before->devices[d].model & 1) ||
            (d > 0 && memcmp(&before->devices[d], &before->devices[d - 1],
                             sizeof(*devices)) == 0 && *ret_device >= 0))
            continue;
        memcpy(devices, before->devices, before->device_count * sizeof(*devices));
        lower(devices, d, shape->part_milli);
        now = potential(f, &after);
        if (now < least) {
            least = now;
            *ret_device = (int32_t)d;
        }
    }
    return least;
}

static double potential_with(struct fragmentation *f, const struct request *req,
                             const struct node_state *s, const struct contents *before,
                             const struct shape *shape)
{
    struct free_device devices[DEVICES_MAX];
    struct contents after = { before->cpu_milli - shape->cpu_milli, before->device_count, devices };
    struct part parts[DEVICES_MAX];
    int count = s->device_count <= DEVICES_MAX
                    ? state_choose_devices(req, s->devices, s->device_count, -1, parts)
                    : 0;

    memcpy(devices, before->devices, before->device_count * sizeof(*devices));
    /* from the front, so that places behind stay what they were */
    for (uint32_t d = 0; d < before->device_count; d++)
        for (int i = 0; i < count; i++)
            if (parts[i].device == d)
                lower(devices, d, (int32_t)(parts[i].amount * 1000 / s->devices[d].capacity));
    return potential(f, &after);
}

static double score_fragmentation(void *data, const struct cluster *c, const struct request *req,
                                  const struct node_state *s, int32_t *ret_device)
{
    struct fragmentation *f = data;
    struct free_device devices[DEVICES_MAX];
    struct contents before = { .devices = devices };
    struct shape shape;
    double after;

    if (!shape_of(c, req, &shape))
        return 0;
    read_contents(c, s, &before);
    if (shape.devices == 1 && s->device_count <= DEVICES_MAX)
        after = best_device(f, &before, &shape, ret_device);
    else
        after = potential_with(f, req, s, &before, &shape);
    return potential(f, &before) - after;
}

const struct selector_ops sched_fragmentation = { .name = "fragmentation",
    .open = open_fragmentation, .close = close_fragmentation, .score = score_fragmentation,
    .arrive = note_arrival };
