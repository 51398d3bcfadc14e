/* SPDX-License-Identifier: Apache-2.0 */
/* launch_cost.c - estimates of what launches cost, learned from measurements */
#include "gpu/launch_cost.h"

#include <string.h>

#define OUTLIER_NS 20000
#define SURE_ENOUGH 4 /* measurements */
#define FORGET 512    /* so many measurements until the shortest has lost most of its weight */
#define TRUST 4       /* see most_by_turns */

struct launch_cost launch_cost_table[1u << LAUNCH_COST_TABLE_BITS];

/* The least that a GPU kernel can have taken which began with its process's turn: others
 * have had a turn at most for each that it filled.
 */
static int64_t launch_cost_min(int64_t ns, int64_t contenders)
{
    int64_t rounds = ns / (contenders * LAUNCH_COST_TURN_NS),
            rest = ns % (contenders * LAUNCH_COST_TURN_NS);

    return rounds * LAUNCH_COST_TURN_NS + (rest < LAUNCH_COST_TURN_NS ? rest : LAUNCH_COST_TURN_NS);
}

/* The most by turns, in the light of the clock: as little as there can be where it says
 * that the others took all of their turns, and all of the time between the events where it
 * says that they left a quarter of them or more: it is coarse.
 */
static int64_t launch_cost_max_by_turns(const struct launch_cost_measure *measure, int64_t low,
                                        int64_t contenders)
{
    double turn = 1.0 / (double)contenders,
           part = (double)measure->own_ns / (double)measure->waited_ns;
    double more = TRUST * (part - turn) / (1 - turn);

    more = more < 0 ? 0 : more > 1 ? 1 : more;
    return low + (int64_t)((double)(measure->ns - low) * more);
}

/* What one measurement says: the own clock's time, within what can be. The clock
 * knows turns only by the agent's ticks, and is off by a part of one on either side;
 * bounds are certain, the lower one only as far as turns are as long as we think.
 */
static int64_t launch_cost_by_clock(const struct launch_cost_measure *measure, int64_t *ret_low)
{
    int64_t contenders = measure->contenders < 2 ? 2 : measure->contenders, own = measure->own_ns;
    int64_t low = measure->was_idle ? launch_cost_min(measure->ns, contenders) : 0;
    int64_t most = measure->was_idle ? launch_cost_max_by_turns(measure, low, contenders)
                                     : measure->ns;

    if (low > own + LAUNCH_COST_TURN_NS / 2)
        low = own + LAUNCH_COST_TURN_NS / 2;
    own = own > most ? most : own;
    own = own < low ? low : own;
    *ret_low = low;
    return own > measure->ns ? measure->ns : own;
}

static uint32_t launch_cost_fit(int64_t ns)
{
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* The shortest measurement is the most that a GPU kernel can take, as others only make it
 * longer. It is forgotten slowly, and at once where one shows that it takes longer now.
 * False = it does, or there was none.
 */
static bool launch_cost_keep_max(struct launch_cost *cost, int64_t ns, int64_t low)
{
    int64_t most = (int64_t)cost->most_ns + cost->most_ns / FORGET;
    bool is_known = cost->most_ns && low <= (int64_t)cost->most_ns + cost->most_ns / 8;

    cost->most_ns = launch_cost_fit(is_known && most < ns ? most : ns);
    return is_known;
}

/* The next estimate: the mean of what the measurements say, within those bounds. The first
 * ones may be from before the agent has seen who else is there.
 */
static int64_t launch_cost_estimate(struct launch_cost *cost,
                                    const struct launch_cost_measure *measure)
{
    bool was_bounded = cost->most_ns;
    int64_t low, ns = launch_cost_by_clock(measure, &low), old = cost->ns;

    if (!launch_cost_keep_max(cost, measure->ns, low)
        && (was_bounded || cost->measured < SURE_ENOUGH))
        cost->measured = 0;
    if (cost->measured)
        ns = old < low ? (old + low) / 2 : old + (ns - old) / (cost->measured + 1);
    return ns > cost->most_ns && cost->most_ns < UINT32_MAX ? cost->most_ns : ns;
}

/* What a known GPU kernel can be measured at with all turns of others in it, and then some. */
static int64_t launch_cost_longest(const struct launch_cost *cost, uint32_t contenders)
{
    int64_t times = contenders < 4 ? 4 : contenders;

    return times * cost->ns + (contenders < 2 ? 2 : contenders) * (int64_t)LAUNCH_COST_TURN_NS;
}

int64_t launch_cost_worth(struct launch_cost *cost, const struct launch_cost_measure *measure,
                          enum launch_cost_quality *ret)
{
    int64_t ns = measure->ns, waited = measure->waited_ns, own = measure->own_ns;
    bool is_sure = cost->measured >= SURE_ENOUGH;

    *ret = LAUNCH_COST_AMONG_OTHERS;
    if (is_sure && ns > launch_cost_longest(cost, measure->contenders))
        return cost->ns + cost->ns / 4; /* a process in between does not show it */
    if (measure->is_uncontended && (waited <= 0 || own <= 0 || own >= waited - waited / 32)) {
        *ret = LAUNCH_COST_ALONE;
        return ns;
    }
    if (ns < LAUNCH_COST_TURN_NS || (is_sure && cost->ns < LAUNCH_COST_TURN_NS))
        return ns;
    *ret = LAUNCH_COST_CORRECTED;
    if (own >= waited || own <= 0)
        return ns;
    if (measure->is_beside)
        return (int64_t)((double)ns * ((double)own / (double)waited));
    *ret = LAUNCH_COST_ESTIMATE;
    return launch_cost_estimate(cost, measure);
}

void launch_cost_learn(uint64_t key, int64_t ns, enum launch_cost_quality quality)
{
    static const int up[] = { 8, 64, 8, 1 }, down[] = { 2, 2, 8, 1 };
    struct launch_cost *cost = launch_cost_find(key);
    int64_t old = cost->ns, most = old * 4 + OUTLIER_NS;

    cost->pending = 0;
    if (ns < 1)
        ns = 1;
    if (old && ns > most)
        ns = most;
    if (old)
        ns = old + (ns < old ? (ns - old) / down[quality] : (ns - old) / up[quality]);
    if (cost->measured < LAUNCH_COST_SURE)
        cost->measured++;
    cost->ns = launch_cost_fit(ns ? ns : 1);
}

void launch_cost_drop_all(void)
{
    memset(launch_cost_table, 0, sizeof(launch_cost_table));
}

void launch_cost_drop(uint64_t key)
{
    struct launch_cost *cost = &launch_cost_table[key >> (64 - LAUNCH_COST_TABLE_BITS)];

    if (cost->key == key)
        memset(cost, 0, sizeof(*cost));
}
