#include "gpu/cost.h"

#include <string.h>

#define OUTLIER_NS 20000
#define SURE_ENOUGH 4 /* measurements */

struct cost cost_table[1u << COST_TABLE_BITS];

/* The least that a kernel can have taken which began with its process's turn: others
 * have had a turn at most for each that it filled.
 */
static int64_t least(int64_t ns, uint32_t takers)
{
    int64_t round = takers * (int64_t)COST_TURN_NS, rounds = ns / round;
    int64_t others = rounds * (round - COST_TURN_NS);
    int64_t filled = (rounds + (ns % round != 0)) * COST_TURN_NS;

    return ns - others < filled ? ns - others : filled;
}

/* The next estimate: the mean of what the own clock says, within what can be. The clock
 * knows turns only by the agent's ticks, and is off by a part of one on either side;
 * bounds are certain, the lower one only as far as turns are as long as we think.
 */
static int64_t estimate(const struct cost *cost, const struct cost_measure *measure)
{
    int64_t takers = measure->takers < 2 ? 2 : measure->takers, old = cost->ns;
    int64_t own = measure->own_ns, most = measure->ns, slack = own / 4;
    int64_t low = measure->was_idle ? least(most, (uint32_t)takers) : 0;

    if (slack > COST_TURN_NS / 2)
        slack = COST_TURN_NS / 2;
    if (low > own + slack)
        low = own + slack;
    own = own < low ? low : own;
    own = own > most ? most : own;
    if (!cost->measured)
        return own;
    if (old > most)
        return most;
    return old < low ? (old + low) / 2 : old + (own - old) / (cost->measured + 1);
}

int64_t cost_worth(const struct cost *cost, const struct cost_measure *measure,
                   enum cost_quality *ret)
{
    int64_t ns = measure->ns, waited = measure->waited_ns, own = measure->own_ns;
    bool is_sure = cost->measured >= SURE_ENOUGH;

    *ret = COST_AMONG_OTHERS;
    if (is_sure && ns > 4 * (int64_t)cost->ns + 2 * COST_TURN_NS)
        return cost->ns + cost->ns / 4; /* whoever was in between does not show it */
    if (measure->is_alone && (waited <= 0 || own <= 0 || own >= waited - waited / 32)) {
        *ret = COST_ALONE;
        return ns;
    }
    if (ns < COST_TURN_NS || (is_sure && cost->ns < COST_TURN_NS))
        return ns;
    *ret = COST_CORRECTED;
    if (own >= waited || own <= 0)
        return ns;
    if (measure->is_beside)
        return (int64_t)((double)ns * ((double)own / (double)waited));
    *ret = COST_ESTIMATE;
    return estimate(cost, measure);
}

void cost_learn(uint64_t key, int64_t ns, enum cost_quality quality)
{
    static const int up[] = { 8, 64, 8, 1 }, down[] = { 2, 2, 8, 1 };
    struct cost *cost = cost_find(key);
    int64_t old = cost->ns, most = old * 4 + OUTLIER_NS;

    cost->pending = 0;
    if (ns < 1)
        ns = 1;
    if (old && ns > most)
        ns = most;
    if (old)
        ns = old + (ns < old ? (ns - old) / down[quality] : (ns - old) / up[quality]);
    if (cost->measured < COST_SURE)
        cost->measured++;
    cost->ns = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns ? ns : 1);
}

void cost_forget(void)
{
    memset(cost_table, 0, sizeof(cost_table));
}

void cost_forget_key(uint64_t key)
{
    struct cost *cost = &cost_table[key >> (64 - COST_TABLE_BITS)];

    if (cost->key == key)
        memset(cost, 0, sizeof(*cost));
}
