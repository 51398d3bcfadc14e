/* SPDX-License-Identifier: Apache-2.0 */
/* balance.h - which replica takes a request
 *
 * Replicas have different shares of a GPU, which are known, so the choice needs no measured latency:
 * the replica with the least (requests under way + 1) / (share x traffic ratio) takes the request.
 * With a key, the replicas are ranked for it by weighted rendezvous hashing, and the first takes the
 * request that is not loaded above BALANCE_BOUND times its part of all. Pure.
 */
#ifndef AQ_SERVING_BALANCE_H
#define AQ_SERVING_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BALANCE_NONE SIZE_MAX
#define BALANCE_BOUND 1.25

enum balance_rank {
    BALANCE_GOOD,
    BALANCE_UNHEALTHY, /* only if no replica is good */
    BALANCE_EJECTED,   /* only if all are */
    BALANCE_CLOSED,    /* takes nothing */
};

struct balance_replica {
    uint64_t hash;     /* of its identity: the same in every proxy */
    int64_t weight;    /* share x traffic ratio in millionths, at least 1 */
    int64_t in_flight; /* requests */
    int64_t cap;       /* of these; 0 = no limit */
    enum balance_rank rank;
};

/* share_ppm x ratio_ppm as a weight. */
int64_t balance_weight(int64_t share_ppm, int64_t ratio_ppm);

/* The index of the replica, among those of the best rank that any has; BALANCE_NONE if these are all
 * at their caps, or none is open. Equal ones take turns by 'turn', which the caller counts up.
 */
size_t balance_choose(const struct balance_replica *replicas, size_t count, size_t turn);

/* The same for a key: equal keys lead to the same replica as long as it is not overloaded. */
size_t balance_choose_by_key(const struct balance_replica *replicas, size_t count, uint64_t key);

/* Is any open, at its cap or not? */
bool balance_is_open(const struct balance_replica *replicas, size_t count);

/* A hash that is the same in every process; 'seed' chains pieces. */
uint64_t balance_hash(uint64_t seed, const void *bytes, size_t len);

#endif
