/* room.c - whether amounts and devices have room for a request */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/cluster_private.h"
#include "sched/select.h"

/* ---- devices ---- */

struct division {
    size_t parts;
    int64_t each, rest; /* the first 'rest' parts are one unit larger */
    int64_t unit;
    uint8_t quantum;    /* of the devices */
};

static bool is_usable(const struct request *req, const struct device *d, uint8_t quantum)
{
    return (req->models >> d->model & 1) && d->quantum == quantum;
}

/* Of 'amount' over the devices [from, to) of one slot that have the quantum; parts = SIZE_MAX: it
 * does not divide it, or there are none.
 */
static struct division divide(const struct cluster *c, const struct request *req,
                              const struct device *devices, size_t from, size_t to, int64_t amount,
                              uint8_t quantum)
{
    struct division d = { .parts = 1, .quantum = quantum, .unit = quantum ? c->quanta[quantum] : 1 };
    int64_t capacity = 0;

    for (size_t i = from; i < to; i++)
        if (is_usable(req, &devices[i], quantum))
            capacity = AQ_MAX(capacity, devices[i].capacity);
    if (quantum)
        capacity -= capacity % d.unit;
    if (capacity == 0 || (quantum && amount % d.unit))
        d.parts = SIZE_MAX;
    else if (amount > capacity)
        d.parts = (size_t)((amount - 1) / capacity + 1);
    return d;
}

static void set_parts(struct division *d, int64_t amount)
{
    int64_t units = amount / d->unit;

    d->each = units / (int64_t)d->parts * d->unit;
    d->rest = units % (int64_t)d->parts;
}

static size_t count_fitting(const struct request *req, const struct device *devices, size_t from,
                            size_t to, int64_t amount, uint8_t quantum)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        count += is_usable(req, &devices[i], quantum) && devices[i].free >= amount;
    return count;
}

/* The least devices of one quantum that can hold equal parts; with may_split more than needed if
 * those are short. parts = SIZE_MAX: none.
 */
static struct division find_equal(const struct cluster *c, const struct request *req,
                                  const struct device *devices, size_t from, size_t to,
                                  int64_t amount, uint8_t quantum)
{
    struct division d = divide(c, req, devices, from, to, amount, quantum);

    for (; d.parts <= to - from; d.parts++) {
        set_parts(&d, amount);
        if (count_fitting(req, devices, from, to, d.each + (d.rest > 0) * d.unit, quantum) >=
            d.parts)
            return d;
        if (!req->may_split)
            break;
    }
    d.parts = SIZE_MAX;
    return d;
}

/* The largest quantum of the devices that is below '*below', which it replaces. */
static bool next_quantum(const struct cluster *c, const struct device *devices, size_t from,
                         size_t to, int64_t *below, uint8_t *ret)
{
    int64_t found = -1;

    for (size_t i = from; i < to; i++) {
        int64_t quantum = c->quanta[devices[i].quantum];

        if (quantum < *below && quantum > found) {
            found = quantum;
            *ret = devices[i].quantum;
        }
    }
    *below = found;
    return found >= 0;
}

/* From the devices of the largest quantum that have room. */
static struct division find_division(const struct cluster *c, const struct request *req,
                                     const struct device *devices, size_t from, size_t to,
                                     int64_t amount)
{
    struct division d = { .parts = SIZE_MAX };
    int64_t below = INT64_MAX;
    uint8_t quantum = 0;

    if (c->quantum_count <= 1) /* nowhere is there one */
        return find_equal(c, req, devices, from, to, amount, 0);
    while (d.parts == SIZE_MAX && next_quantum(c, devices, from, to, &below, &quantum))
        d = find_equal(c, req, devices, from, to, amount, quantum);
    return d;
}

/* The places [from, to) of a column; devices are sorted by it. */
static size_t column_end(const struct device *devices, size_t count, size_t from)
{
    size_t to = from;

    while (to < count && devices[to].column == devices[from].column)
        to++;
    return to;
}

static bool devices_have_room(const struct cluster *c, const struct request *req,
                              const struct device *devices, size_t count)
{
    for (size_t from = 0, to; from < count; from = to) {
        int64_t amount = req->amounts[devices[from].column];

        to = column_end(devices, count, from);
        if (amount > 0 && find_division(c, req, devices, from, to, amount).parts == SIZE_MAX)
            return false;
    }
    return true;
}

bool row_has_room(const struct cluster *c, const struct request *req, const int64_t *free,
                  const struct device *devices, size_t device_count)
{
    if (req->unknown)
        return false;
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0 && free[i] < req->amounts[i])
            return false;
    return devices_have_room(c, req, devices, device_count);
}

/* The fitting device with the least free that is not taken yet. */
static size_t best_fit(const struct request *req, const struct device *devices, size_t from,
                       size_t to, int64_t amount, uint8_t quantum, const struct part *taken,
                       size_t taken_count)
{
    size_t best = SIZE_MAX;

    for (size_t i = from; i < to; i++) {
        bool is_taken = false;

        if (!is_usable(req, &devices[i], quantum) || devices[i].free < amount ||
            (best != SIZE_MAX && devices[i].free >= devices[best].free))
            continue;
        for (size_t t = 0; t < taken_count && !is_taken; t++)
            is_taken = taken[t].device == i;
        if (!is_taken)
            best = i;
    }
    return best;
}

int state_choose_devices(const struct cluster *c, const struct request *req,
                         const struct device *devices, size_t count, int device, struct part *ret)
{
    size_t taken = 0;

    for (size_t from = 0, to; from < count; from = to) {
        int64_t amount = req->amounts[devices[from].column];
        struct division d;

        to = column_end(devices, count, from);
        if (amount <= 0)
            continue;
        d = find_division(c, req, devices, from, to, amount);
        if (d.parts == SIZE_MAX)
            return -ENOSPC;
        for (size_t p = 0; p < d.parts; p++) {
            int64_t part = d.each + ((int64_t)p < d.rest) * d.unit;
            size_t at = d.parts == 1 && device >= (int)from && device < (int)to &&
                                devices[device].quantum == d.quantum
                            ? (size_t)device
                            : best_fit(req, devices, from, to, part, d.quantum, ret, taken);

            if (at == SIZE_MAX)
                return -ENOSPC;
            ret[taken++] = (struct part){ (uint32_t)at, part };
        }
    }
    return (int)taken;
}

static bool has_room(const struct cluster *c, const struct request *req, const struct node_state *s)
{
    return (!req->architecture || !s->architecture || req->architecture == s->architecture) &&
           row_has_room(c, req, s->free, s->devices, s->device_count);
}

/* Slots that are free and not wanted. */
static int count_unutilized(const struct cluster *c, const struct request *req,
                            const struct node_state *s)
{
    int count = 0;

    for (size_t i = 0; i < c->columns; i++)
        count += s->free[i] > 0 && req->amounts[i] == 0;
    return count;
}

static struct fit *find_fit(const struct cluster *c, struct request *req, uint32_t state)
{
    if (state >= req->fit_count) {
        uint32_t count = AQ_MAX(state + 1, (uint32_t)AQ_MIN(c->state_cap, (size_t)req->fit_count * 2));
        struct fit *grown = realloc(req->fits, count * sizeof(*grown));

        if (!grown)
            return NULL;
        memset(grown + req->fit_count, 0, (count - req->fit_count) * sizeof(*grown));
        req->fits = grown;
        req->fit_count = count;
    }
    return &req->fits[state];
}

const struct fit *cluster_look(const struct cluster *c, struct request *req, uint32_t state,
                               const struct selector *selector)
{
    const struct node_state *s = &c->states[state];
    const struct selector_ops *ops = selector->ops;
    struct fit *fit = find_fit(c, req, state);

    if (!fit)
        return NULL;
    *fit = (struct fit){ .birth = s->birth, .epoch = c->epoch, .device = -1,
        .has_room = has_room(c, req, s) };
    if (!fit->has_room)
        return fit;
    fit->is_bound = ops->bound != NULL;
    if (ops->bound)
        fit->score = ops->bound(selector->data, c, req, s);
    else if (ops->score)
        fit->score = ops->score(selector->data, c, req, s, &fit->device);
    else if (ops->compare)
        fit->score = count_unutilized(c, req, s);
    return fit;
}

const struct fit *cluster_fit(const struct cluster *c, struct request *req, uint32_t state,
                              const struct selector *selector)
{
    struct fit *fit = (struct fit *)(uintptr_t)cluster_fit_bound(c, req, state, selector);

    if (fit && fit->is_bound) {
        fit->score = selector->ops->score(selector->data, c, req, &c->states[state], &fit->device);
        fit->is_bound = false;
    }
    return fit;
}
