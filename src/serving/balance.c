/* SPDX-License-Identifier: Apache-2.0 */
/* balance.c - see balance.h */
#include "serving/balance.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"

#define PPM INT64_C(1000000)
#define WEIGHT_MAX (INT64_C(1) << 40)
#define IN_FLIGHT_MAX (INT64_C(1) << 20) /* the product with a weight fits in 63 bits */

int64_t balance_weight(int64_t share_ppm, int64_t ratio_ppm)
{
    double weight = (double)share_ppm * (double)ratio_ppm / (double)PPM;

    return weight < 1 ? 1 : weight > (double)WEIGHT_MAX ? WEIGHT_MAX : (int64_t)weight;
}

/* Bits of the last word reach all others (the finalizer of MurmurHash3). */
static uint64_t balance_mix(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

uint64_t balance_hash(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t h = balance_mix(seed ^ len), word;

    for (; len; at += AQ_MIN(len, sizeof(word)), len -= AQ_MIN(len, sizeof(word))) {
        word = 0;
        for (size_t i = 0; i < AQ_MIN(len, sizeof(word)); i++)
            word |= (uint64_t)at[i] << 8 * i;
        h = balance_mix(h ^ word);
    }
    return h;
}

static enum balance_rank balance_best_rank(const struct balance_replica *replicas, size_t count)
{
    enum balance_rank best = BALANCE_CLOSED;

    for (size_t i = 0; i < count; i++)
        best = AQ_MIN(best, replicas[i].rank);
    return best;
}

bool balance_is_open(const struct balance_replica *replicas, size_t count)
{
    return balance_best_rank(replicas, count) != BALANCE_CLOSED;
}

static bool balance_has_room(const struct balance_replica *r)
{
    return !r->cap || r->in_flight < r->cap;
}

static int64_t balance_load(const struct balance_replica *r)
{
    return AQ_MIN(r->in_flight, IN_FLIGHT_MAX) + 1;
}

size_t balance_choose(const struct balance_replica *replicas, size_t count, size_t turn)
{
    enum balance_rank rank = balance_best_rank(replicas, count);
    const struct balance_replica *best = NULL;

    if (rank == BALANCE_CLOSED)
        return BALANCE_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct balance_replica *r = &replicas[(turn + i) % count];

        if (r->rank == rank && balance_has_room(r)
            && (!best || balance_load(r) * best->weight < balance_load(best) * r->weight))
            best = r;
    }
    return best ? (size_t)(best - replicas) : BALANCE_NONE;
}

/* Its place in the order of this key: the larger, the earlier. Among many keys each replica is first
 * for a part that is as large as its part of all weights.
 */
static double balance_score(const struct balance_replica *r, uint64_t key)
{
    uint64_t bits = balance_mix(r->hash ^ balance_mix(key)) >> 11;

    return (double)r->weight / -log(((double)bits + 0.5) / (double)(UINT64_C(1) << 53));
}

size_t balance_choose_by_key(const struct balance_replica *replicas, size_t count, uint64_t key)
{
    enum balance_rank rank = balance_best_rank(replicas, count);
    double load = 1, weight = 0, best_score = 0;
    size_t best = BALANCE_NONE;

    if (rank == BALANCE_CLOSED)
        return BALANCE_NONE;
    for (size_t i = 0; i < count; i++)
        if (replicas[i].rank == rank) {
            load += (double)replicas[i].in_flight;
            weight += (double)replicas[i].weight;
        }
    for (size_t i = 0; i < count; i++) {
        const struct balance_replica *r = &replicas[i];
        double bound = ceil(BALANCE_BOUND * load * (double)r->weight / weight), score;

        if (r->rank != rank || !balance_has_room(r) || (double)balance_load(r) > bound)
            continue;
        score = balance_score(r, key);
        if (best == BALANCE_NONE || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    /* those below the bound may all be at their caps */
    return best == BALANCE_NONE ? balance_choose(replicas, count, (size_t)key) : best;
}
