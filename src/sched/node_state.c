/* SPDX-License-Identifier: Apache-2.0 */
/* node_state.c - the states that agents are in: a hash table of what is free
 *
 * An agent that changes enters the state of its new contents before it leaves
 * the old one, so that a lack of memory leaves it where it was.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/cluster_internal.h"

void node_state_reserve_scratch(struct cluster *c, size_t devices)
{
    vec_grow(&c->scratch, &c->scratch_cap, devices + 1, sizeof(*c->scratch));
}

/* ---- contents ---- */

static int node_state_compare_devices(const struct cluster_device *a,
                                      const struct cluster_device *b)
{
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    if (a->model != b->model)
        return a->model < b->model ? -1 : 1;
    if (a->capacity != b->capacity)
        return a->capacity < b->capacity ? -1 : 1;
    if (a->quantum != b->quantum)
        return a->quantum < b->quantum ? -1 : 1;
    return (a->free > b->free) - (a->free < b->free);
}

/* Devices of a node come almost sorted: one changes at a time. */
void cluster_sort_devices(struct cluster_device *devices, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct cluster_device d = devices[i];
        size_t j = i;

        for (; j > 0 && node_state_compare_devices(&d, &devices[j - 1]) < 0; j--)
            devices[j] = devices[j - 1];
        devices[j] = d;
    }
}

/* Of words only; no untrusted input is in them, and equal in every process. */
static uint64_t node_state_hash_words(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word;

        memcpy(&word, at + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool node_state_equals(const struct cluster *c, const struct node_state *s,
                              const struct cluster_node *n, uint64_t hash)
{
    return s->hash == hash && s->booking == n->booking && s->architecture == n->architecture
           && s->volumes == n->volumes && s->device_count == n->device_count
           && memcmp(s->free, n->free, c->width * sizeof(*n->free)) == 0
           && memcmp(s->devices, c->scratch, n->device_count * sizeof(*c->scratch)) == 0;
}

/* ---- the table ---- */

static void node_state_index_grow(struct cluster *c)
{
    size_t size = c->index_size ? c->index_size * 2 : 64;
    uint32_t *index = aq_alloc_array(size, sizeof(*index));

    for (size_t i = 0; i < c->state_count; i++)
        if (c->states[i].member_count) {
            size_t at = c->states[i].hash & (size - 1);

            while (index[at])
                at = (at + 1) & (size - 1);
            index[at] = (uint32_t)i + 1;
        }
    free(c->index);
    c->index = index;
    c->index_size = size;
}

/* Close the gap, so that no search ends too early. */
static void node_state_index_remove(struct cluster *c, uint32_t state)
{
    size_t mask = c->index_size - 1, gap = c->states[state].hash & mask;

    while (c->index[gap] != state + 1)
        gap = (gap + 1) & mask;
    for (size_t at = (gap + 1) & mask; c->index[at]; at = (at + 1) & mask) {
        size_t home = c->states[c->index[at] - 1].hash & mask;

        if (((at - home) & mask) >= ((at - gap) & mask)) {
            c->index[gap] = c->index[at];
            gap = at;
        }
    }
    c->index[gap] = 0;
}

static void node_state_table_set(struct cluster *c, uint32_t state, const int64_t *free)
{
    for (size_t i = 0; i < c->width; i++)
        c->free_table[i * c->free_table_cap + state] = free ? free[i] : SCHED_ABSENT;
}

/* As many columns as before, longer ones. */
static void node_state_table_grow(struct cluster *c)
{
    int64_t *grown;

    if (c->free_table_cap >= c->state_cap)
        return;
    grown = aq_alloc(c->state_cap * c->width * sizeof(*grown));
    for (size_t i = 0; c->free_table && i < c->width; i++)
        memcpy(&grown[i * c->state_cap], cluster_free(c, i), c->free_table_cap * sizeof(*grown));
    free(c->free_table);
    c->free_table = grown;
    c->free_table_cap = c->state_cap;
}

static uint32_t node_state_place_new(struct cluster *c)
{
    if (c->free_state_count)
        return c->free_states[--c->free_state_count];
    vec_grow(&c->states, &c->state_cap, c->state_count + 1, sizeof(*c->states));
    node_state_table_grow(c);
    assert(c->free_table_cap > c->state_count);
    c->states[c->state_count] = (struct node_state){ 0 };
    return (uint32_t)c->state_count++;
}

static uint32_t state_new(struct cluster *c, const struct cluster_node *n, uint64_t hash)
{
    size_t amounts = c->width * sizeof(*n->free), devices = n->device_count * sizeof(*n->devices);
    int64_t *block;
    uint32_t state;
    struct node_state *s;

    if ((c->used_state_count + 1) * 2 > c->index_size)
        node_state_index_grow(c);
    block = aq_alloc(amounts + devices);
    state = node_state_place_new(c);
    s = &c->states[state];
    free(s->free);
    s->free = block;
    s->devices = (struct cluster_device *)(void *)(block + c->width);
    memcpy(s->free, n->free, amounts);
    memcpy(s->devices, c->scratch, devices);
    s->hash = hash;
    s->generation = c->next_generation++;
    s->booking = n->booking;
    s->architecture = n->architecture;
    s->volumes = n->volumes;
    s->device_count = n->device_count;
    node_state_table_set(c, state, n->free);
    return state;
}

/* ---- members ---- */

static size_t node_state_find_member(const struct cluster *c, const struct node_state *s,
                                     const char *id)
{
    size_t low = 0, high = s->member_count;

    /* who comes last in a list that is read in order */
    if (high && strcmp(c->nodes[s->members[high - 1]].id, id) < 0)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (strcmp(c->nodes[s->members[middle]].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void node_state_add_member(struct cluster *c, struct node_state *s, const char *id,
                                  uint32_t node)
{
    size_t at = node_state_find_member(c, s, id);

    if (s->member_count == s->member_cap) {
        uint32_t cap = s->member_cap ? s->member_cap * 2 : 4;
        uint32_t *grown = aq_realloc(s->members, cap * sizeof(*grown));

        s->members = grown;
        s->member_cap = cap;
    }
    memmove(&s->members[at + 1], &s->members[at], (s->member_count - at) * sizeof(*s->members));
    s->members[at] = node;
    s->member_count++;
}

uint32_t node_state_enter(struct cluster *c, const struct cluster_node *n, uint32_t node)
{
    struct {
        uint64_t booking, architecture, devices, volumes;
    } head = { n->booking, n->architecture, n->device_count, n->volumes };
    uint64_t hash = node_state_hash_words(0, &head, sizeof(head));
    uint32_t state = CLUSTER_NONE;
    bool is_new;

    memcpy(c->scratch, n->devices, n->device_count * sizeof(*n->devices));
    cluster_sort_devices(c->scratch, n->device_count);
    hash = node_state_hash_words(hash, n->free, c->width * sizeof(*n->free));
    hash = node_state_hash_words(hash, c->scratch, n->device_count * sizeof(*c->scratch));
    hash ^= hash >> 32;
    for (size_t at = hash & (c->index_size - 1); c->index_size && c->index[at];
         at = (at + 1) & (c->index_size - 1))
        if (node_state_equals(c, &c->states[c->index[at] - 1], n, hash)) {
            state = c->index[at] - 1;
            break;
        }
    is_new = state == CLUSTER_NONE;
    if (is_new)
        state = state_new(c, n, hash);
    node_state_add_member(c, &c->states[state], n->id, node);
    if (is_new) {
        size_t at = hash & (c->index_size - 1);

        while (c->index[at])
            at = (at + 1) & (c->index_size - 1);
        c->index[at] = state + 1;
        c->used_state_count++;
    }
    return state;
}

void node_state_leave(struct cluster *c, uint32_t state, uint32_t node)
{
    struct node_state *s = &c->states[state];
    size_t at = node_state_find_member(c, s, c->nodes[node].id);

    if (at == s->member_count)
        at--; /* it was the last, and alone in its id */
    assert(s->members[at] == node);
    memmove(&s->members[at], &s->members[at + 1], (s->member_count - at - 1) * sizeof(*s->members));
    s->member_count--;
    if (s->member_count == 0) {
        node_state_index_remove(c, state);
        node_state_table_set(c, state, NULL);
        c->used_state_count--;
        vec_grow(&c->free_states, &c->free_state_cap, c->free_state_count + 1,
                 sizeof(*c->free_states));
        c->free_states[c->free_state_count++] = state;
    }
}

void node_states_done(struct cluster *c)
{
    for (size_t i = 0; i < c->state_count; i++) {
        free(c->states[i].free);
        free(c->states[i].members);
    }
    free(c->states);
    free(c->free_states);
    free(c->free_table);
    free(c->index);
}
