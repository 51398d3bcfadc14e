/* SPDX-License-Identifier: Apache-2.0 */
/* Random nodes, random kernels coming and going. A model keeps the amounts per
 * device in plain arrays; after every operation the map must say the same.
 */
#include "random.h"
#include "testing.h"

#include <errno.h>

#include "alloc/alloc_map.h"
#include "alloc/resource_txt.h"

#define DEVICES_MAX 48
#define KERNELS_MAX 24

/* The slots a node may have; shares and whole devices of the same hardware. */
static const struct {
    const char *name, *id;
    enum slot_type type;
} kinds[] = {
    { "cuda.shares", "g", SLOT_COUNT },
    { "cuda.device", "g", SLOT_COUNT },
    { "cuda.device:1g-mig", "m", SLOT_UNIQUE },
    { "npu.device", "n", SLOT_COUNT },
    { "cpu", "c", SLOT_COUNT },
    { "mem", "r", SLOT_BYTES },
};
#define KINDS AQ_COUNT(kinds)

static const char *const cuda_set[] = { "cuda.device:*-mig", "cuda.device", "cuda.shares", NULL };
static const char *const *const exclusive_sets[] = { cuda_set, NULL };
static const char *const order[] = { "cuda", "npu", "cpu", "mem", NULL };

struct node {
    struct alloc_slot slots[KINDS];
    struct alloc_device devices[DEVICES_MAX];
    size_t kind[DEVICES_MAX];
    size_t first[KINDS], count[KINDS]; /* ids are numbered within a kind */
    char ids[DEVICES_MAX][24];
    struct alloc_config config;
};

struct model {
    struct node node;
    struct alloc_map *map;
    int64_t allocated[DEVICES_MAX];
    struct alloc_grant kernels[KERNELS_MAX];
    size_t kernel_count;
};

static int64_t unit_of(const struct node *node, size_t kind)
{
    if (node->slots[kind].quantum)
        return node->slots[kind].quantum;
    return kinds[kind].type == SLOT_BYTES ? 1 : AMOUNT_ONE;
}

/* The same of one device, which may differ from others of its slot. */
static int64_t unit_at(const struct node *node, size_t device)
{
    int64_t own = node->devices[device].quantum;

    return own ? own : unit_of(node, node->kind[device]);
}

static int64_t random_capacity(struct test_random *r, size_t kind)
{
    if (kinds[kind].type == SLOT_UNIQUE)
        return AMOUNT_ONE;
    if (kinds[kind].type == SLOT_BYTES)
        return random_below(r, 1 << 20);
    return random_below(r, 4) ? AMOUNT_ONE : random_below(r, 4 * AMOUNT_ONE);
}

static void random_node(struct test_random *r, struct node *node)
{
    static const int64_t quanta[] = { 10000, 100000, 250000, 10, 70000 };
    int nodes = 1 + (int)random_below(r, 4);
    bool is_mixed = random_below(r, 2);

    *node = (struct node){ 0 };
    for (size_t k = 0; k < KINDS; k++) {
        node->first[k] = node->config.device_count;
        node->count[k] = (size_t)random_below(r, k == 4 ? 16 : k == 5 ? 2 : 8);
        node->slots[k] = (struct alloc_slot){ .name = kinds[k].name, .type = kinds[k].type };
        node->slots[k].strategy = random_below(r, 3) ? ALLOC_EVENLY : ALLOC_FILL;
        if (k == 0)
            node->slots[k].quantum = quanta[random_below(r, AQ_COUNT(quanta))];
        for (size_t i = 0; i < node->count[k]; i++) {
            size_t at = node->config.device_count++;

            (void)snprintf(node->ids[at], sizeof(node->ids[at]), "%s%zu", kinds[k].id, i);
            node->kind[at] = k;
            node->devices[at] = (struct alloc_device){ node->ids[at], kinds[k].name,
                                                       random_capacity(r, k),
                                                       (int)random_below(r, nodes), 0 };
            if (k == 0 && is_mixed && random_below(r, 2))
                node->devices[at].quantum = quanta[random_below(r, AQ_COUNT(quanta))];
        }
    }
    node->config.slots = node->slots;
    node->config.slot_count = KINDS;
    node->config.devices = node->devices;
    node->config.allocation_order = order;
    node->config.exclusive = exclusive_sets;
    node->config.affinity = random_below(r, 2) ? ALLOC_SINGLE_NODE : ALLOC_INTERLEAVED;
}

static size_t find(const struct node *node, const char *slot, const char *id)
{
    size_t number = strtoul(id + 1, NULL, 10);

    for (size_t k = 0; k < KINDS; k++)
        if (strcmp(kinds[k].name, slot) == 0 && number < node->count[k])
            return node->first[k] + number;
    return SIZE_MAX;
}

/* Is the hardware held under another slot name? Shares and whole devices of one
 * number are the same GPU.
 */
static bool is_blocked(const struct model *m, size_t i)
{
    size_t kind = m->node.kind[i], number = i - m->node.first[kind];

    return kind < 2 && number < m->node.count[1 - kind]
           && m->allocated[m->node.first[1 - kind] + number] > 0;
}

/* Of the devices with that unit, in it. */
static int64_t free_units(const struct model *m, size_t kind, int64_t unit)
{
    size_t end = m->node.first[kind] + m->node.count[kind];
    int64_t sum = 0;

    for (size_t i = m->node.first[kind]; i < end; i++)
        if (!is_blocked(m, i) && m->allocated[i] < m->node.devices[i].capacity
            && unit_at(&m->node, i) == unit)
            sum += (m->node.devices[i].capacity - m->allocated[i]) / unit;
    return sum;
}

/* Can devices of one unit, which divides the amount, give it? */
static bool has_room(const struct model *m, size_t kind, int64_t amount, bool *ret_divides)
{
    size_t end = m->node.first[kind] + m->node.count[kind];
    bool has = amount == 0;

    *ret_divides = m->node.count[kind] == 0 && amount % unit_of(&m->node, kind) == 0;
    for (size_t i = m->node.first[kind]; i < end; i++) {
        int64_t unit = unit_at(&m->node, i);

        *ret_divides |= amount % unit == 0;
        has |= amount % unit == 0 && free_units(m, kind, unit) >= amount / unit;
    }
    return has;
}

/* The map says what the model says, and no device is beyond its capacity. */
static void check_same(const struct model *m)
{
    struct alloc_device_state state;
    size_t i;

    for (i = 0; alloc_map_device(m->map, i, &state); i++) {
        size_t at = find(&m->node, state.slot_name, state.id);

        assert_true(state.known && at != SIZE_MAX);
        assert_int_equal(state.allocated, m->allocated[at]);
        assert_in_range(state.allocated, 0, state.capacity);
        assert_int_equal(state.held_as != NULL, is_blocked(m, at));
        assert_int_equal(state.quantum, m->node.kind[at] == 0 ? unit_at(&m->node, at) : 0);
    }
    assert_int_equal(i, m->node.config.device_count);
}

static void random_request(struct test_random *r, const struct model *m, struct slots *ret)
{
    for (size_t k = 0; k < KINDS; k++) {
        size_t some = m->node.first[k] + (size_t)random_below(r, m->node.count[k] + 1);
        int64_t unit = some < m->node.first[k] + m->node.count[k] ? unit_at(&m->node, some)
                                                                  : unit_of(&m->node, k);
        int64_t most = free_units(m, k, unit);

        if (random_below(r, 2))
            continue;
        if (k < 3 && random_below(r, 8)
            && (slots_get(ret, "cuda.shares") > 0 || slots_get(ret, "cuda.device") > 0))
            continue; /* mostly no exclusive pairs */
        assert_int_equal(slots_set(ret, kinds[k].name,
                                   kinds[k].type == SLOT_UNIQUE
                                       ? AMOUNT_ONE
                                       : unit * (1 + random_below(r, most + 1 + most / 8))),
                         0);
    }
}

static bool is_exclusive_pair(const struct slots *request)
{
    int n = 0;

    for (size_t k = 0; k < 3; k++)
        n += slots_get(request, kinds[k].name) > 0;
    return n > 1;
}

/* Exactly what was asked for, on distinct devices, in whole quanta. */
static void note_grant(struct model *m, const struct slots *request, const struct alloc_grant *g)
{
    AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
    bool seen[DEVICES_MAX] = { false };

    for (size_t i = 0; i < g->count; i++) {
        size_t at = find(&m->node, g->items[i].slot_name, g->items[i].device_id);

        assert_true(at != SIZE_MAX && !seen[at] && !is_blocked(m, at));
        assert_true(g->items[i].amount > 0);
        assert_int_equal(g->items[i].amount % unit_at(&m->node, at), 0);
        seen[at] = true;
        m->allocated[at] += g->items[i].amount;
    }
    assert_int_equal(alloc_grant_sum(g, &sum), 0);
    assert_true(slots_eq(&sum, request));
}

/* Of one of the slots one device, which gives all; SIZE_MAX = none was chosen. */
static size_t choose_random(struct test_random *r, const struct model *m,
                            const struct slots *request, struct alloc_grant *ret)
{
    size_t at = (size_t)random_below(r, (int64_t)m->node.config.device_count + 1);
    const struct alloc_device *d = &m->node.devices[at];
    int64_t amount = at < m->node.config.device_count ? slots_get(request, d->slot_name) : 0;

    if (amount == 0 || random_below(r, 2))
        return SIZE_MAX;
    assert_int_equal(alloc_grant_add(ret, d->slot_name, kinds[m->node.kind[at]].type, d->id,
                                     strlen(d->id), amount, NULL),
                     0);
    return at;
}

static bool can_give(const struct model *m, size_t at, int64_t amount)
{
    int64_t unit = unit_at(&m->node, at);

    return !is_blocked(m, at) && amount % unit == 0
           && (m->node.devices[at].capacity - m->allocated[at]) / unit >= amount / unit;
}

static void check_refusal(const struct model *m, const struct slots *request, int r,
                          const struct aq_error *err)
{
    bool short_of = false, divides, is_uneven = false;

    for (size_t k = 0; k < KINDS; k++) {
        short_of |= !has_room(m, k, slots_get(request, kinds[k].name), &divides);
        is_uneven |= !divides;
    }
    if (is_uneven && strcmp(err->kind, "not-multiple-of-quantum") == 0)
        return;
    if (is_exclusive_pair(request)) {
        assert_string_equal(err->kind, "invalid-resource-combination");
        return;
    }
    assert_false(is_uneven);
    assert_int_equal(r, -ENOSPC);
    assert_string_equal(err->kind, "insufficient-resource");
    assert_true(short_of);
    assert_true(slots_get(request, err->field) > 0);
}

/* What a file records of a grant is what was granted. */
static void check_recorded(const struct slots *request, const struct alloc_grant *grant)
{
    struct resource_txt rt = { .slots = *request, .grant = *grant };
    AQ_CLEANUP(resource_txt_donep) struct resource_txt back = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    assert_int_equal(resource_txt_write(&rt, NULL, &out, NULL), 0);
    assert_int_equal(resource_txt_read(out.data, out.len, NULL, &back, NULL), 0);
    assert_true(slots_eq(&back.slots, request));
    assert_int_equal(back.grant.count, grant->count);
    for (size_t i = 0; i < grant->count; i++) {
        assert_ptr_equal(back.grant.items[i].slot_name, grant->items[i].slot_name);
        assert_string_equal(back.grant.items[i].device_id, grant->items[i].device_id);
        assert_int_equal(back.grant.items[i].amount, grant->items[i].amount);
    }
}

static void allocate_random(struct test_random *r, struct model *m)
{
    AQ_CLEANUP(slots_donep) struct slots request = { 0 };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant chosen = { 0 };
    struct alloc_grant *grant = &m->kernels[m->kernel_count];
    struct aq_error err = { 0 };
    size_t at;
    int result;

    random_request(r, m, &request);
    at = choose_random(r, m, &request, &chosen);
    result = alloc_map_allocate(
        m->map, &(struct alloc_request){ .slots = &request, .chosen = &chosen }, grant, &err);
    if (result == -ENOSPC && at != SIZE_MAX && strcmp(err.field, chosen.items[0].slot_name) == 0) {
        assert_false(can_give(m, at, chosen.items[0].amount));
        return;
    }
    if (result < 0) {
        check_refusal(m, &request, result, &err);
        return;
    }
    assert_false(is_exclusive_pair(&request));
    for (size_t i = 0; at != SIZE_MAX && i < grant->count; i++)
        assert_true(strcmp(grant->items[i].slot_name, chosen.items[0].slot_name) != 0
                    || strcmp(grant->items[i].device_id, chosen.items[0].device_id) == 0);
    note_grant(m, &request, grant);
    m->kernel_count++;
    if (random_below(r, 64) == 0)
        check_recorded(&request, grant);
}

static void release_one(struct model *m, size_t i)
{
    struct alloc_grant grant = m->kernels[i];

    assert_int_equal(alloc_map_release(m->map, &grant, NULL), 0);
    for (size_t j = 0; j < grant.count; j++)
        m->allocated[find(&m->node, grant.items[j].slot_name, grant.items[j].device_id)] -=
            grant.items[j].amount;
    m->kernels[i] = m->kernels[--m->kernel_count];
    m->kernels[m->kernel_count] = grant; /* keep its room */
}

/* A map rebuilt from what the kernels hold is the same map. */
static void restart(struct model *m)
{
    alloc_map_free(m->map);
    assert_int_equal(alloc_map_new(&m->node.config, &m->map, NULL), 0);
    for (size_t i = 0; i < m->kernel_count; i++)
        assert_int_equal(alloc_map_apply(m->map, &m->kernels[i], NULL), 0);
}

static void run_node(struct test_random *r, uint64_t operations)
{
    static struct model m;

    random_node(r, &m.node);
    memset(m.allocated, 0, sizeof(m.allocated));
    assert_int_equal(alloc_map_new(&m.node.config, &m.map, NULL), 0);
    for (uint64_t i = 0; i < operations; i++) {
        if (random_below(r, 256) == 0)
            restart(&m);
        else if (m.kernel_count == KERNELS_MAX || (m.kernel_count && random_below(r, 2)))
            release_one(&m, (size_t)random_below(r, (int64_t)m.kernel_count));
        else
            allocate_random(r, &m);
        if (i % 8 == 0)
            check_same(&m);
    }
    while (m.kernel_count)
        release_one(&m, m.kernel_count - 1);
    check_same(&m);
    for (size_t i = 0; i < m.node.config.device_count; i++)
        assert_int_equal(m.allocated[i], 0);
    alloc_map_free(m.map);
    for (size_t i = 0; i < KERNELS_MAX; i++)
        alloc_grant_done(&m.kernels[i]);
}

static void test_operations(void **state)
{
    struct test_random r = random_begin("operations");
    uint64_t nodes = random_scaled(2000);

    (void)state;
    for (uint64_t i = 0; i < nodes; i++)
        run_node(&r, 1000);
}

/* Declare devices of different slots in another mixture, and those of a slot
 * that nobody asks for in another order.
 */
static void permute(struct test_random *r, const struct node *from, struct node *to)
{
    size_t next[KINDS] = { 0 }, n = from->config.device_count;
    bool used[DEVICES_MAX] = { false };

    *to = *from;
    for (size_t i = 0; i < n; i++) {
        size_t kind = from->kind[random_below(r, (int64_t)n)], at;

        for (;; kind = (kind + 1) % KINDS) {
            for (at = next[kind]; at < n && from->kind[at] != kind; at++)
                ;
            if (at < n)
                break;
        }
        next[kind] = at + 1;
        if (kind == 3) /* npu: any order */
            for (at = (size_t)random_below(r, (int64_t)n); used[at] || from->kind[at] != 3;)
                at = (at + 1) % n;
        used[at] = true;
        to->devices[i] = from->devices[at];
        to->kind[i] = kind;
    }
    to->config.slots = to->slots;
    to->config.devices = to->devices;
}

static void compare_grants(const struct alloc_grant *a, const struct alloc_grant *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_ptr_equal(a->items[i].slot_name, b->items[i].slot_name);
        assert_string_equal(a->items[i].device_id, b->items[i].device_id);
        assert_int_equal(a->items[i].amount, b->items[i].amount);
    }
}

/* Three maps of the same node, one with unrelated devices permuted, one that
 * has been used before: the same requests get the same grants.
 */
static void test_same_results(void **state)
{
    struct test_random r = random_begin("same results");
    uint64_t nodes = random_scaled(1500);
    static struct model m;
    static struct node other;

    (void)state;
    for (uint64_t i = 0; i < nodes; i++) {
        AQ_CLEANUP(alloc_map_freep) struct alloc_map *permuted = NULL;
        AQ_CLEANUP(alloc_map_freep) struct alloc_map *used = NULL;

        random_node(&r, &m.node);
        memset(m.allocated, 0, sizeof(m.allocated));
        permute(&r, &m.node, &other);
        assert_int_equal(alloc_map_new(&m.node.config, &m.map, NULL), 0);
        assert_int_equal(alloc_map_new(&m.node.config, &used, NULL), 0);
        assert_int_equal(alloc_map_new(&other.config, &permuted, NULL), 0);
        for (int j = 0; j < 60; j++) {
            AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
            struct alloc_request request = { .slots = &slots };
            struct alloc_grant *grant = &m.kernels[0], *second = &m.kernels[1];
            struct alloc_grant *third = &m.kernels[2];
            int result;

            random_request(&r, &m, &slots);
            if (slots_has(&slots, "npu.device"))
                assert_int_equal(slots_set(&slots, "npu.device", 0), 0);
            result = alloc_map_allocate(m.map, &request, grant, NULL);
            assert_int_equal(alloc_map_allocate(permuted, &request, second, NULL), result);
            assert_int_equal(alloc_map_allocate(used, &request, third, NULL), result);
            if (result < 0)
                continue;
            compare_grants(grant, second);
            compare_grants(grant, third);
            /* give it back and ask again: nothing remembers */
            assert_int_equal(alloc_map_release(used, third, NULL), 0);
            assert_int_equal(alloc_map_allocate(used, &request, third, NULL), 0);
            compare_grants(grant, third);
            if (random_below(&r, 3) == 0) {
                assert_int_equal(alloc_map_release(m.map, grant, NULL), 0);
                assert_int_equal(alloc_map_release(used, grant, NULL), 0);
                assert_int_equal(alloc_map_release(permuted, grant, NULL), 0);
            }
        }
        alloc_map_free(m.map);
    }
    for (size_t i = 0; i < 3; i++)
        alloc_grant_done(&m.kernels[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_same_results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
