#include "gpu/cost.h"

#include <string.h>

#define OUTLIER_NS 20000

struct cost cost_table[1u << COST_TABLE_BITS];

void cost_learn(uint64_t key, int64_t ns)
{
    struct cost *cost = cost_find(key);
    int64_t old = cost->ns, most = old * 4 + OUTLIER_NS;

    cost->pending = 0;
    if (ns < 1)
        ns = 1;
    if (old && ns > most)
        ns = most;
    if (old)
        ns = old + (ns < old ? (ns - old) / 2 : (ns - old) / 8);
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
