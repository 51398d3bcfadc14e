/* SPDX-License-Identifier: Apache-2.0 */
/* Small cases against all possible divisions. The oracle knows nothing of how
 * the map works: it tries every amount on every device.
 */
#include "random.h"
#include "testing.h"

#include <errno.h>

#include "alloc/alloc_map.h"

#define DEVICES_MAX 5
#define ROOM_MAX 5 /* quanta */

struct instance {
    size_t count;
    int64_t capacity[DEVICES_MAX], held[DEVICES_MAX]; /* quanta */
    int node[DEVICES_MAX];
    int64_t units;
    int64_t minimum; /* quanta; EVENLY and fractional only */
    bool fractional, forbid;
    enum alloc_strategy strategy;
    enum alloc_affinity affinity;
};

/* What makes one division better than another. */
struct quality {
    int64_t spread; /* largest - smallest part */
    size_t devices, nodes;
};

static struct quality measure(const struct instance *in, const int64_t *parts)
{
    int64_t largest = 0, smallest = INT64_MAX;
    struct quality q = { 0 };
    unsigned nodes = 0;

    for (size_t i = 0; i < in->count; i++) {
        if (parts[i] == 0)
            continue;
        largest = AQ_MAX(largest, parts[i]);
        smallest = AQ_MIN(smallest, parts[i]);
        nodes |= 1u << in->node[i];
        q.devices++;
    }
    q.spread = largest - smallest;
    q.nodes = (size_t)__builtin_popcount(nodes);
    return q;
}

static int64_t room_of(const struct instance *in, size_t i)
{
    int64_t room = in->capacity[i] - in->held[i];

    return room < in->minimum ? 0 : room;
}

/* With fragmentation forbidden: equal parts but for one quantum, and one
 * device if the largest could hold all when empty.
 */
static bool is_allowed(const struct instance *in, struct quality q)
{
    int64_t largest = 0;

    for (size_t i = 0; i < in->count; i++)
        largest = AQ_MAX(largest, in->capacity[i]);
    return !in->forbid || (q.spread <= 1 && (in->units > largest || q.devices == 1));
}

/* Fractional: least spread, fewest devices, fewest nodes. Discrete: most
 * devices, least spread.
 */
static bool is_better(const struct instance *in, struct quality a, struct quality b)
{
    if (!in->fractional)
        return a.devices != b.devices ? a.devices > b.devices : a.spread < b.spread;
    if (a.spread != b.spread)
        return a.spread < b.spread;
    if (a.devices != b.devices)
        return a.devices < b.devices;
    return a.nodes < b.nodes;
}

static void search(const struct instance *in, size_t i, int64_t left, int64_t *parts, bool *found,
                   struct quality *best)
{
    if (i == in->count) {
        struct quality q = measure(in, parts);

        if (left == 0 && is_allowed(in, q) && (!*found || is_better(in, q, *best))) {
            *found = true;
            *best = q;
        }
        return;
    }
    for (parts[i] = 0; parts[i] <= room_of(in, i) && parts[i] <= left; parts[i]++)
        search(in, i + 1, left - parts[i], parts, found, best);
    parts[i] = 0;
}

static struct instance random_instance(struct test_random *r)
{
    struct instance in = { .count = 1 + (size_t)random_below(r, DEVICES_MAX) };
    int64_t room = 0;

    in.fractional = random_below(r, 3) > 0;
    in.strategy = random_below(r, 5) > 0 ? ALLOC_EVENLY : ALLOC_FILL;
    in.affinity = random_below(r, 2) ? ALLOC_SINGLE_NODE : ALLOC_INTERLEAVED;
    for (size_t i = 0; i < in.count; i++) {
        in.capacity[i] = random_below(r, ROOM_MAX + 1);
        in.held[i] = random_below(r, 3) ? 0 : random_below(r, in.capacity[i] + 1);
        in.node[i] = (int)random_below(r, 2);
        room += in.capacity[i] - in.held[i];
    }
    if (in.fractional && random_below(r, 4) == 0)
        in.forbid = true;
    else if (in.fractional && in.strategy == ALLOC_EVENLY && random_below(r, 4) == 0)
        in.minimum = random_below(r, 4);
    in.units = 1 + random_below(r, room + 2);
    return in;
}

static const char *const ids[DEVICES_MAX] = { "a", "b", "c", "d", "e" };

static struct alloc_map *instance_map(const struct instance *in, int64_t quantum)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant held = { 0 };
    struct alloc_slot slot = { .name = "x.shares",
                               .strategy = in->strategy,
                               .quantum = in->fractional ? quantum : 0,
                               .minimum = in->minimum * quantum };
    struct alloc_device devices[DEVICES_MAX];
    struct alloc_config config = { .slots = &slot,
                                   .slot_count = 1,
                                   .devices = devices,
                                   .device_count = in->count,
                                   .affinity = in->affinity };
    struct alloc_map *map = NULL;

    for (size_t i = 0; i < in->count; i++) {
        devices[i] = (struct alloc_device){ ids[i], slot.name, in->capacity[i] * quantum,
                                            in->node[i], 0 };
        if (in->held[i])
            assert_int_equal(alloc_grant_add(&held, slot_name_intern(slot.name, 8), SLOT_COUNT,
                                             ids[i], 1, in->held[i] * quantum, NULL),
                             0);
    }
    assert_int_equal(alloc_map_new(&config, &map, NULL), 0);
    assert_int_equal(alloc_map_apply(map, &held, NULL), 0);
    return map;
}

static void grant_parts(const struct alloc_grant *grant, int64_t quantum, int64_t *parts)
{
    for (size_t i = 0; i < grant->count; i++)
        parts[grant->items[i].device_id[0] - 'a'] = grant->items[i].amount / quantum;
}

/* A single part goes to the least free device that has room for it. */
static void check_best_fit(const struct instance *in, const int64_t *parts)
{
    int64_t chosen = 0;

    for (size_t i = 0; i < in->count; i++)
        if (parts[i])
            chosen = in->capacity[i] - in->held[i];
    for (size_t i = 0; i < in->count; i++) {
        int64_t room = room_of(in, i);

        assert_false(room >= in->units && room < chosen);
    }
}

static void check_instance(const struct instance *in)
{
    int64_t quantum = in->fractional ? AMOUNT_ONE / 10 : AMOUNT_ONE;
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = instance_map(in, quantum);
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    struct alloc_request request = { .slots = &slots, .forbid_fragmentation = in->forbid };
    int64_t parts[DEVICES_MAX] = { 0 }, tried[DEVICES_MAX] = { 0 }, sum = 0;
    struct aq_error err = { 0 };
    struct quality best = { 0 }, got;
    bool feasible = false;
    int r;

    assert_int_equal(slots_set(&slots, "x.shares", in->units * quantum), 0);
    search(in, 0, in->units, tried, &feasible, &best);
    r = alloc_map_allocate(map, &request, &grant, &err);
    assert_int_equal(r, feasible ? 0 : -ENOSPC);
    if (!feasible) {
        assert_string_equal(err.kind, in->forbid ? "fractional-resource-fragmented"
                                                 : "insufficient-resource");
        return;
    }
    grant_parts(&grant, quantum, parts);
    for (size_t i = 0; i < in->count; i++) {
        assert_in_range(parts[i], 0, room_of(in, i));
        sum += parts[i];
    }
    assert_int_equal(sum, in->units);
    if (in->strategy == ALLOC_FILL)
        return;
    got = measure(in, parts);
    assert_int_equal(got.spread, best.spread);
    assert_int_equal(got.devices, best.devices);
    if (in->fractional && in->affinity == ALLOC_SINGLE_NODE)
        assert_int_equal(got.nodes, best.nodes);
    if (in->fractional && got.devices == 1)
        check_best_fit(in, parts);
}

static void test_divisions(void **state)
{
    struct test_random r = random_begin("divisions");
    uint64_t rounds = random_scaled(300000);

    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        struct instance in = random_instance(&r);

        check_instance(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_divisions) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
