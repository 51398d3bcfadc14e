#include "gpu/cost.h"

#include <string.h>

#define OUTLIER_NS 20000
#define SURE_ENOUGH 4 /* measurements */
#define FORGET 512    /* so many measurements until the shortest has lost most of its weight */
#define TRUST 4       /* see most_by_turns */

struct cost cost_table[1u << COST_TABLE_BITS];

/* The least that a kernel can have taken which began with its process's turn: others
 * have had a turn at most for each that it filled.
 */
static int64_t least(int64_t ns, int64_t takers)
{
    int64_t rounds = ns / (takers * COST_TURN_NS), rest = ns % (takers * COST_TURN_NS);

    return rounds * COST_TURN_NS + (rest < COST_TURN_NS ? rest : COST_TURN_NS);
}

/* The most by turns, in the light of the clock: as little as there can be where it says
 * that the others took all of their turns, and all of the time between the events where it
 * says that they left a quarter of them or more: it is coarse.
 */
static int64_t most_by_turns(const struct cost_measure *measure, int64_t low, int64_t takers)
{
    double turn = 1.0 / (double)takers, part = (double)measure->own_ns / (double)measure->waited_ns;
    double more = TRUST * (part - turn) / (1 - turn);

    more = more < 0 ? 0 : more > 1 ? 1 : more;
    return low + (int64_t)((double)(measure->ns - low) * more);
}

/* What one measurement says: the own clock's time, within what can be. The clock
 * knows turns only by the agent's ticks, and is off by a part of one on either side;
 * bounds are certain, the lower one only as far as turns are as long as we think.
 */
static int64_t by_clock(const struct cost_measure *measure, int64_t *ret_low)
{
    int64_t takers = measure->takers < 2 ? 2 : measure->takers, own = measure->own_ns;
    int64_t low = measure->was_idle ? least(measure->ns, takers) : 0;
    int64_t most = measure->was_idle ? most_by_turns(measure, low, takers) : measure->ns;

    if (low > own + COST_TURN_NS / 2)
        low = own + COST_TURN_NS / 2;
    own = own > most ? most : own;
    own = own < low ? low : own;
    *ret_low = low;
    return own > measure->ns ? measure->ns : own;
}

static uint32_t fit(int64_t ns)
{
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* The shortest measurement is the most that a kernel can take, as others only make it
 * longer. It is forgotten slowly, and at once where one shows that it takes longer now.
 * False = it does, or there was none.
 */
static bool keep_most(struct cost *cost, int64_t ns, int64_t low)
{
    int64_t most = (int64_t)cost->most_ns + cost->most_ns / FORGET;
    bool is_known = cost->most_ns && low <= (int64_t)cost->most_ns + cost->most_ns / 8;

    cost->most_ns = fit(is_known && most < ns ? most : ns);
    return is_known;
}

/* The next estimate: the mean of what the measurements say, within those bounds. The first
 * ones may be from before the agent has seen who else is there.
 */
static int64_t estimate(struct cost *cost, const struct cost_measure *measure)
{
    bool was_bounded = cost->most_ns;
    int64_t low, ns = by_clock(measure, &low), old = cost->ns;

    if (!keep_most(cost, measure->ns, low) && (was_bounded || cost->measured < SURE_ENOUGH))
        cost->measured = 0;
    if (cost->measured)
        ns = old < low ? (old + low) / 2 : old + (ns - old) / (cost->measured + 1);
    return ns > cost->most_ns && cost->most_ns < UINT32_MAX ? cost->most_ns : ns;
}

/* What a known kernel can be measured at with all turns of others in it, and then some. */
static int64_t longest(const struct cost *cost, uint32_t takers)
{
    int64_t times = takers < 4 ? 4 : takers;

    return times * cost->ns + (takers < 2 ? 2 : takers) * (int64_t)COST_TURN_NS;
}

int64_t cost_worth(struct cost *cost, const struct cost_measure *measure,
                   enum cost_quality *ret)
{
    int64_t ns = measure->ns, waited = measure->waited_ns, own = measure->own_ns;
    bool is_sure = cost->measured >= SURE_ENOUGH;

    *ret = COST_AMONG_OTHERS;
    if (is_sure && ns > longest(cost, measure->takers))
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
    cost->ns = fit(ns ? ns : 1);
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
