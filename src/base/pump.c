/* SPDX-License-Identifier: Apache-2.0 */
/* pump.c - bytes between a client and a kernel, both ways, at the pace of the slower side */
#include "base/pump.h"

#include <errno.h>

/* Of an end that is not open: more than a giver has under way when it is paused, a WebSocket's
 * message at most.
 */
#define EARLY_MAX ((size_t)8 << 20)

static struct pump_end *pump_other(struct pump *pump, enum pump_side side)
{
    return &pump->ends[side == PUMP_CLIENT ? PUMP_KERNEL : PUMP_CLIENT];
}

void pump_init(struct pump *pump)
{
    *pump = (struct pump){ 0 };
    for (int side = 0; side < PUMP_SIDES; side++)
        strbuf_init(&pump->ends[side].early);
}

void pump_done(struct pump *pump)
{
    for (int side = 0; side < PUMP_SIDES; side++)
        strbuf_done(&pump->ends[side].early);
}

/* Who gives for 'side' waits, or goes on. */
static void pump_set_full(struct pump *pump, enum pump_side side, bool is_full)
{
    const struct pump_end *giver = pump_other(pump, side);

    if (pump->ends[side].is_full == is_full)
        return;
    pump->ends[side].is_full = is_full;
    if (giver->ops)
        giver->ops->pause(giver->data, is_full);
}

void pump_join(struct pump *pump, enum pump_side side, const struct pump_ops *ops, void *end)
{
    pump->ends[side].ops = ops;
    pump->ends[side].data = end;
    if (pump_other(pump, side)->is_full)
        ops->pause(end, true);
}

void pump_part(struct pump *pump, enum pump_side side)
{
    pump->ends[side].ops = NULL;
}

void pump_set_early(struct pump *pump, enum pump_side side, size_t high)
{
    pump->ends[side].early_high = high;
}

static int pump_put(struct pump *pump, enum pump_side side, const char *bytes, size_t len)
{
    const struct pump_end *end = &pump->ends[side];

    return !end->ops ? -EPIPE : len ? end->ops->put(end->data, bytes, len) : 0;
}

int pump_open(struct pump *pump, enum pump_side side)
{
    struct pump_end *end = &pump->ends[side];
    int r;

    end->is_open = true;
    r = pump_put(pump, side, end->early.data, end->early.len);
    strbuf_done(&end->early);
    if (r >= 0 && end->is_finished && end->ops->finish)
        end->ops->finish(end->data);
    pump_set_full(pump, side, r == 1); /* last: the giver may go on at once */
    return AQ_MIN(r, 0);
}

int pump_give(struct pump *pump, enum pump_side from, const char *bytes, size_t len)
{
    enum pump_side side = from == PUMP_CLIENT ? PUMP_KERNEL : PUMP_CLIENT;
    struct pump_end *end = &pump->ends[side];
    int r;

    if (end->is_open) {
        r = pump_put(pump, side, bytes, len);
        if (r == 1)
            pump_set_full(pump, side, true);
        return AQ_MIN(r, 0);
    }
    if (len > EARLY_MAX || end->early.len > EARLY_MAX - len)
        return -ENOBUFS;
    strbuf_add(&end->early, bytes, len);
    if (end->early.len >= end->early_high)
        pump_set_full(pump, side, true);
    return 0;
}

void pump_drained(struct pump *pump, enum pump_side side)
{
    if (pump->ends[side].is_open)
        pump_set_full(pump, side, false);
}

void pump_finish(struct pump *pump, enum pump_side from)
{
    struct pump_end *end = pump_other(pump, from);

    if (end->is_finished)
        return;
    end->is_finished = true;
    if (end->is_open && end->ops && end->ops->finish)
        end->ops->finish(end->data);
}
