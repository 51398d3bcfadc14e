/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the agents: their columns, their devices, and what is held on them */
#include "sched/cluster.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/cluster_internal.h"

static void cluster_node_done(struct cluster_node *n)
{
    free(n->id);
    free(n->topology);
    free(n->free);
    free(n->capacity);
    free(n->devices);
    free(n->shared);
    *n = (struct cluster_node){ 0 };
}

void cluster_done(struct cluster *c)
{
    for (size_t i = 0; i < c->node_count; i++)
        cluster_node_done(&c->nodes[i]);
    free(c->nodes);
    free(c->free_parts);
    map_done(&c->nodes_by_id);
    node_states_done(c);
    slot_requests_done(c);
    for (size_t i = 1; i < c->model_count; i++)
        free((char *)(uintptr_t)c->models[i]);
    for (size_t i = 0; i < c->volume_count; i++)
        free((char *)(uintptr_t)c->volumes[i]);
    for (size_t i = 0; i < c->architecture_count; i++)
        free(c->architectures[i]);
    free(c->architectures);
    for (size_t i = 0; i < c->network_count; i++)
        free(c->networks[i]);
    free(c->networks);
    topology_forget(c);
    reach_done(c);
    free(c->scratch);
    free(c->names);
    free(c->device_capacity);
    strbuf_done(&c->key);
}

void cluster_init(struct cluster *c, const struct slot_types *types,
                  const char *const *slot_priority, size_t slot_priority_count)
{
    *c = (struct cluster){ .key = STRBUF_INIT,
                           .slot_priority = slot_priority,
                           .slot_priority_count = slot_priority_count,
                           .free_version = 1,
                           .next_generation = 1,
                           .epoch = 1,
                           .model_count = 1,
                           .models = { "" },
                           .quantum_count = 1 };
    c->columns = types ? slot_types_count(types) : 0;
    c->width = c->columns + 1;
    c->names = aq_alloc_array(c->width, sizeof(*c->names));
    c->device_capacity = aq_alloc_array(c->width, sizeof(*c->device_capacity));
    for (size_t i = 0; i < c->columns; i++)
        c->names[i] = slot_types_name(types, i, NULL);
    c->cpu_column = cluster_column(c, slot_name_find("cpu", strlen("cpu")));
}

/* Columns are few: a scan over interned pointers beats a hash. */
size_t cluster_column(const struct cluster *c, const char *slot_name)
{
    for (size_t i = 0; i < c->columns; i++)
        if (c->names[i] == slot_name)
            return i;
    return SIZE_MAX;
}

void cluster_fill_row(const struct cluster *c, const struct slots *slots, int64_t absent,
                      int64_t *row)
{
    for (size_t i = 0; i < c->columns; i++)
        row[i] = absent;
    for (size_t i = 0; slots && i < slots->count; i++) {
        size_t column = cluster_column(c, slots->items[i].name);

        if (column != SIZE_MAX)
            row[column] = slots->items[i].amount;
    }
}

/* ---- words ---- */

/* The index of a word among at most 'max', where it is added if it is new. 0 or -ENOSPC. */
static int cluster_number_word(const char **words, size_t *count, size_t max, const char *word,
                               uint8_t *ret)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(words[i], word) == 0) {
            *ret = (uint8_t)i;
            return 0;
        }
    if (*count == max)
        return -ENOSPC;
    words[*count] = aq_strdup(word);
    *ret = (uint8_t)(*count)++;
    return 0;
}

int cluster_model(struct cluster *c, const char *model, uint8_t *ret)
{
    return cluster_number_word(c->models, &c->model_count, CLUSTER_MODELS_MAX, model ? model : "",
                               ret);
}

uint64_t cluster_volumes(struct cluster *c, const char *const *volumes, size_t count)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < count; i++) {
        uint8_t volume;
        int r = cluster_number_word(c->volumes, &c->volume_count, CLUSTER_VOLUMES_MAX - 1,
                                    volumes[i], &volume);

        bits |= UINT64_C(1) << (r == 0 ? volume : CLUSTER_VOLUMES_MAX - 1);
    }
    return bits;
}

static int cluster_quantum(struct cluster *c, int64_t quantum, uint8_t *ret)
{
    size_t i = 0;

    while (i < c->quantum_count && c->quanta[i] != quantum)
        i++;
    if (i == CLUSTER_QUANTA_MAX)
        return -ENOSPC;
    if (i == c->quantum_count)
        c->quanta[c->quantum_count++] = quantum;
    *ret = (uint8_t)i;
    return 0;
}

/* The number of a word in a list, from 1, where it is added if it is new; 0 for NULL. 0 or -ENOSPC.
 */
static int cluster_list_word(char ***words, size_t *count, size_t *cap, const char *word,
                             uint16_t *ret)
{
    *ret = 0;
    if (!word)
        return 0;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*words)[i], word) == 0) {
            *ret = (uint16_t)(i + 1);
            return 0;
        }
    if (*count == UINT16_MAX - 1)
        return -ENOSPC;
    vec_grow(words, cap, *count + 1, sizeof(**words));
    (*words)[*count] = aq_strdup(word);
    *ret = (uint16_t)++ * count;
    return 0;
}

int cluster_architecture(struct cluster *c, const char *architecture, uint16_t *ret)
{
    return cluster_list_word(&c->architectures, &c->architecture_count, &c->architecture_cap,
                             architecture, ret);
}

/* ---- agents ---- */

static int cluster_read_device(struct cluster *c, const struct sched_agent *agent, size_t i,
                               struct cluster_device *ret, struct aq_error *err)
{
    const struct sched_device *d = &agent->devices[i];
    size_t column = cluster_column(c, d->slot_name);

    if (column == SIZE_MAX || d->capacity <= 0 || d->free < 0 || d->free > d->capacity
        || d->quantum < 0)
        return aq_fail_field(
            err, EINVAL, "devices", "device %zu of agent '%s': %s; the agent's report is wrong", i,
            agent->id, column == SIZE_MAX ? "its slot is not known" : "its amounts cannot be");
    *ret = (struct cluster_device){ .free = d->free,
                                    .capacity = d->capacity,
                                    .column = (uint16_t)column };
    c->device_capacity[column] = AQ_MAX(c->device_capacity[column], d->capacity);
    if (cluster_quantum(c, d->quantum, &ret->quantum) < 0)
        return aq_fail_field(err, EINVAL, "devices", "more than %d different quanta of devices",
                             CLUSTER_QUANTA_MAX - 1);
    if (cluster_model(c, d->model, &ret->model) < 0)
        return aq_fail_field(err, EINVAL, "devices", "more than %d models of devices",
                             CLUSTER_MODELS_MAX - 1);
    return 0;
}

/* Everything of 'agent' but its state. */
static int cluster_read_agent(struct cluster *c, const struct sched_agent *agent,
                              struct cluster_node *ret, struct aq_error *err)
{
    if (agent->device_count > UINT16_MAX)
        return aq_fail_field(err, EINVAL, "devices", "more than %d devices", UINT16_MAX);
    ret->free = aq_alloc_array(c->width, sizeof(*ret->free));
    ret->capacity = aq_alloc_array(c->width, sizeof(*ret->capacity));
    ret->devices = aq_alloc_array(agent->device_count + 1, sizeof(*ret->devices));
    ret->id = aq_strdup(agent->id);
    if (cluster_architecture(c, agent->architecture, &ret->architecture) < 0)
        return aq_fail_field(err, EINVAL, "architecture", "more than %d architectures",
                             UINT16_MAX - 1);
    if (cluster_list_word(&c->networks, &c->network_count, &c->network_cap, agent->network,
                          &ret->network)
        < 0)
        return aq_fail_field(err, EINVAL, "network", "more than %d classes of networks",
                             UINT16_MAX - 1);
    ret->topology = aq_strdup(agent->topology);
    ret->volumes = cluster_volumes(c, agent->volumes, agent->volume_count)
                   & ~CLUSTER_VOLUME_UNKNOWN;
    cluster_fill_row(c, agent->free, SCHED_ABSENT, ret->free);
    cluster_fill_row(c, agent->capacity ? agent->capacity : agent->free, 0, ret->capacity);
    ret->is_capacity_known = agent->capacity != NULL;
    ret->agent = cluster_find_agent(c, agent->id);
    ret->number = ret->agent == CLUSTER_NONE ? c->agent_count : c->nodes[ret->agent].number;
    ret->first_part = ret->agent == CLUSTER_NONE ? CLUSTER_NONE : c->nodes[ret->agent].first_part;
    ret->next_part = CLUSTER_NONE;
    ret->free[c->columns] = agent->is_closed     ? SCHED_ABSENT
                            : agent->kernels_max ? (int64_t)agent->kernels_max - agent->kernels
                                                 : AMOUNT_INFINITE;
    ret->device_count = (uint16_t)agent->device_count;
    for (size_t i = 0; i < agent->device_count; i++) {
        int r = cluster_read_device(c, agent, i, &ret->devices[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static uint32_t cluster_add_place(struct cluster *c)
{
    vec_grow(&c->nodes, &c->node_cap, c->node_count + 1, sizeof(*c->nodes));
    c->nodes[c->node_count] = (struct cluster_node){ 0 };
    return (uint32_t)c->node_count++;
}

static bool cluster_is_elsewhere(const struct cluster_node *a, const struct cluster_node *b)
{
    return strcmp(a->topology ? a->topology : "", b->topology ? b->topology : "") != 0;
}

static void cluster_take_in(struct cluster *c, struct cluster_node *n, uint32_t place, bool is_new)
{
    if (is_new || cluster_is_elsewhere(n, &c->nodes[place]))
        topology_forget(c);
    node_state_reserve_scratch(c, n->device_count);
    n->state = node_state_enter(c, n, place);
    if (is_new) {
        map_sets(&c->nodes_by_id, n->id, (void *)((uintptr_t)place + 1));
    } else {
        node_state_leave(c, c->nodes[place].state, place);
        cluster_node_done(&c->nodes[place]);
    }
    c->nodes[place] = *n;
    c->free_version++;
    c->agents_changed++;
}

int cluster_set_agent(struct cluster *c, const struct sched_agent *agent, uint32_t *ret_node,
                      struct aq_error *err)
{
    struct cluster_node n = { 0 };
    bool is_new;
    int r = cluster_read_agent(c, agent, &n, err);

    if (r < 0) {
        cluster_node_done(&n);
        return r;
    }
    *ret_node = cluster_find_agent(c, agent->id);
    is_new = *ret_node == CLUSTER_NONE;
    if (is_new) {
        *ret_node = n.agent = cluster_add_place(c);
        c->agent_count++;
    }
    cluster_take_in(c, &n, *ret_node, is_new);
    return 0;
}

uint32_t cluster_find_agent(const struct cluster *c, const char *id)
{
    return (uint32_t)((uintptr_t)map_gets(&c->nodes_by_id, id) - 1);
}

bool cluster_matches(const struct cluster *c, const struct slot_request *req, uint32_t node)
{
    uint16_t architecture = c->nodes[node].architecture;

    return req->booking == c->nodes[node].booking
           && (!req->architecture || !architecture || architecture == req->architecture)
           && !(req->volumes & ~c->nodes[node].volumes);
}

/* ---- parts of agents ---- */

/* Into the state that the node is in now. */
static void cluster_move(struct cluster *c, uint32_t node)
{
    struct cluster_node *n = &c->nodes[node];
    uint32_t state = node_state_enter(c, n, node);

    node_state_leave(c, n->state, node);
    n->state = state;
}

static bool cluster_has_devices(const struct cluster_node *n, size_t column)
{
    for (uint32_t d = 0; d < n->device_count; d++)
        if (n->devices[d].column == column)
            return true;
    return false;
}

uint32_t cluster_open_part(struct cluster *c, uint32_t agent, uint32_t booking,
                           const int64_t *amounts, const bool *named,
                           const struct device_part *parts, uint32_t count)
{
    uint32_t place = c->free_part_count ? c->free_parts[--c->free_part_count]
                                        : cluster_add_place(c);
    const struct cluster_node *a = &c->nodes[agent];
    struct cluster_node n = *a, *old = &c->nodes[place];

    n.booking = booking;
    n.first_part = CLUSTER_NONE;
    n.next_part = a->first_part;
    n.is_capacity_known = true;
    n.id = aq_strdup(a->id);
    n.topology = aq_strdup(a->topology);
    n.free = aq_alloc_array(c->width, sizeof(*n.free));
    n.capacity = aq_alloc_array(c->width, sizeof(*n.capacity));
    n.devices = aq_alloc_array(a->device_count + 1u, sizeof(*n.devices));
    n.shared = aq_alloc_array(c->width, sizeof(*n.shared));
    for (size_t i = 0; i < c->columns; i++) {
        n.shared[i] = !named[i] && !cluster_has_devices(a, i);
        n.free[i] = n.shared[i] || a->free[i] == SCHED_ABSENT ? a->free[i] : amounts[i];
        n.capacity[i] = n.shared[i] ? a->capacity[i] : amounts[i];
    }
    n.free[c->columns] = a->free[c->columns];
    n.shared[c->columns] = true; /* kernels */
    memcpy(n.devices, a->devices, a->device_count * sizeof(*n.devices));
    for (uint32_t d = 0; d < a->device_count; d++)
        n.devices[d].free = 0;
    for (uint32_t i = 0; i < count; i++)
        if (parts[i].device < a->device_count)
            n.devices[parts[i].device].free += parts[i].amount;
    topology_forget(c);
    node_state_reserve_scratch(c, n.device_count);
    n.state = node_state_enter(c, &n, place);
    if (old->id)
        node_state_leave(c, old->state, place);
    cluster_node_done(old);
    *old = n;
    c->nodes[agent].first_part = place;
    c->free_version++;
    c->agents_changed++;
    return place;
}

void cluster_close_part(struct cluster *c, uint32_t part)
{
    struct cluster_node *n = &c->nodes[part];
    uint32_t *link = &c->nodes[n->agent].first_part;

    assert(n->booking != 0);
    while (*link != part)
        link = &c->nodes[*link].next_part;
    *link = n->next_part;
    free(AQ_TAKE(n->shared));
    n->free[c->columns] = SCHED_ABSENT;
    cluster_move(c, part);
    vec_grow(&c->free_parts, &c->free_part_cap, c->free_part_count + 1, sizeof(*c->free_parts));
    c->free_parts[c->free_part_count++] = part;
    c->agents_changed++;
}

/* ---- holding ---- */

static void cluster_add_amounts(const struct cluster *c, int64_t *free,
                                const struct slot_request *req, int sign)
{
    for (size_t i = 0; i < c->width; i++)
        if (free[i] != SCHED_ABSENT && free[i] != AMOUNT_INFINITE)
            free[i] += sign * req->amounts[i];
}

static void cluster_add_parts(struct cluster_node *n, const struct device_part *parts, size_t count,
                              int sign)
{
    for (size_t i = 0; i < count; i++)
        n->devices[parts[i].device].free += sign * parts[i].amount;
}

/* From places in the state's order of devices to places in the agent's. */
static void cluster_find_devices(const struct cluster_node *n, const struct node_state *s,
                                 struct device_part *parts, size_t count)
{
    uint64_t taken[(UINT16_MAX + 1) / 64];

    memset(taken, 0, (size_t)(n->device_count / 64 + 1) * sizeof(*taken));
    for (size_t p = 0; p < count; p++)
        for (uint32_t d = 0; d < n->device_count; d++)
            if (!(taken[d / 64] >> d % 64 & 1)
                && memcmp(&n->devices[d], &s->devices[parts[p].device], sizeof(*n->devices)) == 0) {
                parts[p].device = d;
                taken[d / 64] |= UINT64_C(1) << d % 64;
                break;
            }
}

/* What changed on a part of an agent, or on the agent, changed on all of these where it is shared. */
static void cluster_share(struct cluster *c, uint32_t node, const struct slot_request *req,
                          int sign)
{
    uint32_t agent = c->nodes[node].agent;
    int64_t *free = c->nodes[agent].free;

    for (size_t i = 0; node != agent && i < c->width; i++)
        if (c->nodes[node].shared[i] && free[i] != SCHED_ABSENT && free[i] != AMOUNT_INFINITE)
            free[i] += sign * req->amounts[i];
    if (node != agent)
        cluster_move(c, agent);
    for (uint32_t part = c->nodes[agent].first_part; part != CLUSTER_NONE;
         part = c->nodes[part].next_part) {
        for (size_t i = 0; i < c->width; i++)
            if (c->nodes[part].shared[i])
                c->nodes[part].free[i] = free[i];
        cluster_move(c, part);
    }
}

/* Add (1) or take off (-1), and let the node move. */
static void cluster_change(struct cluster *c, uint32_t node, const struct slot_request *req,
                           const struct device_part *parts, uint32_t count, int sign)
{
    struct cluster_node *n = &c->nodes[node];

    assert(node < c->node_count);
    for (uint32_t i = 0; i < count; i++)
        assert(parts[i].device < n->device_count && parts[i].amount >= 0);
    cluster_add_amounts(c, n->free, req, sign);
    cluster_add_parts(n, parts, count, sign);
    cluster_move(c, node);
    if (n->shared || n->first_part != CLUSTER_NONE)
        cluster_share(c, node, req, sign);
}

void cluster_hold_parts(struct cluster *c, uint32_t node, const struct slot_request *req,
                        const struct device_part *parts, uint32_t count)
{
    cluster_change(c, node, req, parts, count, -1);
}

void cluster_hold(struct cluster *c, uint32_t node, const struct slot_request *req, int device,
                  struct device_part **ret_parts, uint32_t *ret_count)
{
    struct cluster_node *n = &c->nodes[node];
    const struct node_state *s = &c->states[n->state];
    struct device_part *parts = NULL;
    int count = 0;

    if (n->device_count) {
        parts = aq_alloc_array(n->device_count, sizeof(*parts));
        count = fit_choose_devices(c, req, s->devices, s->device_count, device, parts);
        count = AQ_MAX(count, 0);
        cluster_find_devices(n, s, parts, (size_t)count);
    }
    cluster_change(c, node, req, parts, (uint32_t)count, -1);
    if (count == 0)
        free(AQ_TAKE(parts));
    *ret_parts = parts;
    *ret_count = (uint32_t)count;
}

void cluster_release(struct cluster *c, uint32_t node, const struct slot_request *req,
                     const struct device_part *parts, uint32_t count)
{
    cluster_change(c, node, req, parts, count, 1);
    c->free_version++;
}
