#include "gpu/cost.h"

#include <string.h>

#define OUTLIER_NS 20000
#define SURE_ENOUGH 4 /* measurements */

struct cost cost_table[1u << COST_TABLE_BITS];

int64_t cost_worth(const struct cost *cost, const struct cost_measure *measure,
                   enum cost_quality *ret)
{
    int64_t ns = measure->ns, waited = measure->waited_ns, own = measure->own_ns;
    bool is_sure = cost->measured >= SURE_ENOUGH;
    double part;

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
    part = (double)own / (double)waited;
    /* who comes to an idle queue begins with its own turn: the others have half a turn less */
    return (int64_t)((double)ns * part
                     + (measure->was_idle ? (1 - part) * COST_TURN_NS / 2 : 0));
}

void cost_learn(uint64_t key, int64_t ns, enum cost_quality quality)
{
    static const int up[] = { 8, 64, 8 }, down[] = { 2, 2, 8 };
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
