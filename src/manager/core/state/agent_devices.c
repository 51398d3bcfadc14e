/* SPDX-License-Identifier: Apache-2.0 */
/* agent_devices.c - the accelerators of an agent and what of each is free
 *
 * An agent says which devices it has; its kernels' reports say who holds what
 * of them. For a kernel that has not reported yet, the code that the
 * agent will use predicts it. Only for the scheduler: sums of what is held are
 * the ledger's.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/allocations.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define CARDS_MAX 8192

struct agent_devices {
    struct arena arena; /* owns all texts and arrays */
    struct alloc_slot *slots;
    size_t slot_count;
    struct alloc_device *devices; /* by slot */
    const char **models;          /* of each */
    const char **ids;             /* of each of 'items' that is no missing one */
    bool *is_elsewhere;           /* the same hardware is held under another slot's name */
    size_t count;
    struct sched_device *items; /* the answer: those, then the missing ones */
    size_t item_count;
    bool has_twins;             /* several slots of one kind: perhaps names of the same hardware */
    bool is_listed;             /* the agent says which devices it has, cores included */
    struct sched_device *every; /* also those that are not healthy now */
    size_t every_count;
    struct slots capacity; /* what the agent offers with all of these */
};

void agent_devices_free(struct agent_devices *known)
{
    if (!known)
        return;
    arena_done(&known->arena);
    slots_done(&known->capacity);
    free(known);
}

/* ---- what the agent has ---- */

static bool devices_is_offered(const json_t *device)
{
    const char *status = json_string_value(json_object_get(device, "status"));

    return !status || strcmp(status, "healthy") == 0 || strcmp(status, "degraded") == 0;
}

static int64_t agent_devices_get_amount(const json_t *device, const char *key,
                                        const char *slot_name, enum slot_type type)
{
    const char *text = json_string_value(json_object_get(device, key));
    int64_t amount = 0;

    if (text && slot_amount_parse(text, strlen(text), type, false, slot_name, &amount, NULL) < 0)
        return -1;
    return amount;
}

static void devices_add_slot(struct agent_devices *known, const char *name, enum slot_type type,
                             int64_t quantum)
{
    size_t len = slot_name_device_len(name);
    bool is_twin = false;

    for (size_t i = 0; i < known->slot_count; i++) {
        if (known->slots[i].name == name)
            return;
        is_twin |= slot_name_device_len(known->slots[i].name) == len
                   && strncmp(known->slots[i].name, name, len) == 0;
    }
    known->has_twins |= is_twin;
    known->slots[known->slot_count++] = (struct alloc_slot){ .name = name,
                                                             .type = type,
                                                             .quantum = quantum };
}

/* One device; what cannot be used is left out, also of a slot that no agent has offered. */
static void agent_devices_add_device(struct agent_devices *known, const struct slot_types *types,
                                     const json_t *device)
{
    const char *id = json_string_value(json_object_get(device, "id"));
    const char *slot = json_string_value(json_object_get(device, "slot"));
    const char *model = json_string_value(json_object_get(device, "model"));
    const char *name = slot && strchr(slot, '.') ? slot_name_find(slot, strlen(slot)) : NULL;
    enum slot_type type = slot_types_get(types, name ? name : "");
    const json_t *numa = json_object_get(device, "numa");
    int64_t amount = name ? agent_devices_get_amount(device, "amount", name, type) : -1;
    int64_t quantum = name ? agent_devices_get_amount(device, "quantum", name, type) : -1;

    if (!id || !device_id_is_valid(id, strlen(id)) || amount <= 0 || quantum < 0
        || (type == SLOT_UNIQUE && amount != AMOUNT_ONE))
        return;
    known->every[known->every_count++] = (struct sched_device){ .slot_name = name,
                                                                .capacity = amount,
                                                                .quantum = quantum };
    if (!devices_is_offered(device))
        return;
    devices_add_slot(known, name, type, quantum);
    known->devices[known->count] = (struct alloc_device){
        .id = arena_strdup(&known->arena, id),
        .slot_name = name,
        .capacity = amount,
        .numa_node = numa ? (int)json_integer_value(numa) : -1,
        .quantum = quantum
    };
    known->models[known->count] = model ? arena_strdup(&known->arena, model) : NULL;
    known->count++;
}

static struct agent_devices *devices_parse(const struct slot_types *types, const char *text)
{
    struct agent_devices *known = aq_alloc(sizeof(*known));
    json_t *list = text ? json_load_string(text, 0) : NULL;
    size_t count = AQ_MIN(json_array_size(list), (size_t)CARDS_MAX);

    known->slots = arena_array(&known->arena, count + 1, sizeof(*known->slots));
    known->devices = arena_array(&known->arena, count + 1, sizeof(*known->devices));
    known->models = arena_array(&known->arena, count + 1, sizeof(*known->models));
    known->ids = arena_array(&known->arena, count + 1, sizeof(*known->ids));
    known->is_elsewhere = arena_array(&known->arena, count + 1, sizeof(*known->is_elsewhere));
    known->every = arena_array(&known->arena, count + 1, sizeof(*known->every));
    known->is_listed = count > 0;
    for (size_t i = 0; i < count; i++)
        agent_devices_add_device(known, types, json_array_get(list, i));
    json_decref(list);
    return known;
}

/* ---- what of it is free ---- */

/* A kernel that has not said what it got. What finds no place is left out: the
 * sums, which hold anyway, keep others away. Cores and memory are no cards.
 */
static void devices_predict(struct alloc_map *map, const struct kernel_entry *f)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    const struct alloc_request request = { .slots = &wanted };

    for (size_t i = 0; i < f->requested->count; i++)
        if (f->requested->items[i].amount > 0 && strchr(f->requested->items[i].name, '.'))
            slots_put(&wanted, f->requested->items[i].name, f->requested->items[i].amount);
    if (wanted.count)
        (void)alloc_map_allocate(map, &request, &grant, NULL);
}

static int devices_fill(const struct core *core, struct agent_entry *a, struct alloc_map *map)
{
    struct core_held held = { .holders = NULL };
    int r = core_find_held(core, a->a.id, &held);

    if (r == 0)
        r = alloc_map_apply(map, &held.grant, NULL);
    core_held_done(&held);
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

        if (r == 0 && !allocations_json(f))
            devices_predict(map, f);
    }
    return r;
}

/* The map has them by slot, within a slot in our order. */
static void agent_devices_read_map(struct agent_devices *known, const struct alloc_map *map)
{
    struct alloc_device_state state;
    size_t k = 0;

    for (size_t i = 0; i < known->count && alloc_map_device(map, i, &state); i++) {
        while (known->devices[k].slot_name != state.slot_name
               || strcmp(known->devices[k].id, state.id) != 0)
            k = (k + 1) % known->count; /* mostly the next one */
        known->ids[i] = known->devices[k].id;
        known->items[i] = (struct sched_device){
            .slot_name = state.slot_name,
            .id = known->ids[i],
            .model = known->models[k],
            .capacity = state.capacity,
            .quantum = state.quantum,
            .free = state.held_as || state.allocated > state.capacity
                        ? 0
                        : state.capacity - state.allocated,
        };
        known->is_elsewhere[i] = state.held_as != NULL;
    }
}

static int devices_refresh(const struct core *core, struct agent_entry *a)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    struct agent_devices *known = a->devices;
    const struct alloc_config config = { .slots = known->slots,
                                         .slot_count = known->slot_count,
                                         .devices = known->devices,
                                         .device_count = known->count };
    struct aq_error err = { 0 };
    int r = alloc_map_new(&config, &map, &err);

    if (r == -EINVAL || r == -EOVERFLOW) {
        log_limited(&a->log, LOG_LEVEL_WARNING, "the devices of agent '%s' cannot be: %s", a->a.id,
                    err.text);
        known->count = known->item_count = 0;
        return 0;
    }
    if (r == 0)
        r = devices_fill(core, a, map);
    if (r == 0)
        agent_devices_read_map(known, map);
    return r;
}

static bool agent_devices_has_slot(const struct agent_devices *known, const char *name)
{
    for (size_t i = 0; i < known->slot_count; i++)
        if (known->slots[i].name == name)
            return true;
    return false;
}

/* A slot that is offered only because of what is held, and has no device any
 * more: sums alone would let somebody in as soon as a holder ends.
 */
static void devices_add_missing(struct agent_devices *known, const struct slots *offered)
{
    struct sched_device *items = arena_array(&known->arena, known->count + offered->count + 1,
                                             sizeof(*items));

    known->items = items;
    known->item_count = known->count;
    for (size_t i = 0; known->is_listed && i < offered->count; i++)
        if (strchr(offered->items[i].name, '.')
            && !agent_devices_has_slot(known, offered->items[i].name))
            items[known->item_count++] = (struct sched_device){ .slot_name = offered->items[i].name,
                                                                .capacity = AMOUNT_ONE };
}

/* A slot of which it has more devices than it offers: some are not healthy now. */
static void devices_sum_capacity(struct agent_devices *known, const struct slots *offered)
{
    slots_copy(&known->capacity, offered);
    for (size_t i = 0; i < known->every_count; i++) {
        const char *name = known->every[i].slot_name;
        int64_t sum = 0;

        for (size_t k = 0; k < known->every_count; k++)
            if (known->every[k].slot_name == name
                && __builtin_add_overflow(sum, known->every[k].capacity, &sum))
                sum = AMOUNT_INFINITE;
        if (sum > slots_get(&known->capacity, name))
            slots_put(&known->capacity, name, sum);
    }
}

/* Its devices as it last described them. */
static void devices_read(const struct core *core, struct agent_entry *a)
{
    struct agent_devices *fresh;

    if (!a->devices_changed && a->devices)
        return;
    fresh = devices_parse(core->types, a->a.devices);
    devices_add_missing(fresh, &a->a.available);
    devices_sum_capacity(fresh, &a->a.available);
    agent_devices_free(a->devices);
    a->devices = fresh;
    a->devices_changed = false;
    a->devices_stale = true;
}

void agent_devices_find_capacity(const struct core *core, struct agent_entry *a,
                                 const struct slots **ret_capacity, const struct sched_device **ret,
                                 size_t *ret_count)
{
    devices_read(core, a);
    *ret_capacity = &a->devices->capacity;
    *ret = a->devices->every;
    *ret_count = a->devices->every_count;
}

int agent_devices_find(const struct core *core, struct agent_entry *a,
                       const struct sched_device **ret, size_t *ret_count)
{
    devices_read(core, a);
    if (a->devices_stale && a->devices->count) {
        int r = devices_refresh(core, a);

        if (r < 0)
            return r;
    }
    a->devices_stale = false;
    *ret = a->devices->items;
    *ret_count = a->devices->item_count;
    return 0;
}

/* ---- who holds which part ---- */

bool agent_devices_are_known(const struct agent_entry *a)
{
    return a->devices && a->devices->count > 0;
}

bool agent_devices_have_twins(const struct agent_entry *a)
{
    return a->devices && a->devices->has_twins;
}

static bool agent_devices_find_card(const struct agent_devices *known,
                                    const struct grant_item *item, uint32_t *ret)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->items[i].slot_name == item->slot_name
            && strcmp(known->ids[i], item->device_id) == 0) {
            *ret = (uint32_t)i;
            return true;
        }
    return false;
}

int agent_devices_copy(const struct core *core, struct agent_entry *a, struct arena *arena,
                       struct sched_device **ret, size_t *ret_count)
{
    const struct sched_device *devices;
    int r = agent_devices_find(core, a, &devices, ret_count);

    if (r < 0)
        return r;
    *ret = arena_array(arena, *ret_count + 1, sizeof(**ret));
    for (size_t i = 0; i < *ret_count; i++) {
        (*ret)[i] = devices[i];
        (*ret)[i].free = i < a->devices->count && !a->devices->is_elsewhere[i] ? devices[i].capacity
                                                                               : 0;
    }
    return 0;
}

int agent_devices_find_parts(const struct core *core, struct agent_entry *a,
                             const struct kernel_entry *f, struct arena *arena,
                             const struct sched_part **ret, size_t *ret_count)
{
    struct core_held held = { .holders = NULL };
    const struct sched_device *devices;
    struct sched_part *parts = NULL;
    size_t count = 0;
    int r = agent_devices_find(core, a, &devices, &count);

    *ret = NULL;
    *ret_count = 0;
    if (r < 0 || count == 0)
        return r;
    allocations_add_held(core, f, &held);
    if (held.grant.count)
        parts = arena_array(arena, held.grant.count, sizeof(*parts));
    for (size_t i = 0; i < held.grant.count; i++)
        if (agent_devices_find_card(a->devices, &held.grant.items[i], &parts[*ret_count].device))
            parts[(*ret_count)++].amount = held.grant.items[i].amount;
    if (held.grant.count && *ret_count == 0)
        parts[(*ret_count)++] = (struct sched_part){ 0 }; /* of no device that is there */
    core_held_done(&held);
    *ret = parts;
    return 0;
}

int agent_devices_read_parts(const struct core *core, struct agent_entry *a, const char *json,
                             struct arena *arena, const struct sched_part **ret, size_t *ret_count)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    const struct sched_device *devices;
    struct sched_part *parts;
    size_t count = 0;
    int r = agent_devices_find(core, a, &devices, &count);

    *ret_count = 0;
    if (r < 0)
        return r;
    if (count > 0)
        alloc_grant_read_json(&grant, json, core->types);
    *ret = parts = arena_array(arena, grant.count + 1, sizeof(*parts));
    for (size_t i = 0; i < grant.count; i++)
        if (agent_devices_find_card(a->devices, &grant.items[i], &parts[*ret_count].device))
            parts[(*ret_count)++].amount = grant.items[i].amount;
    return 0;
}

char *agent_devices_write_parts(const struct core *core, const struct agent_entry *a,
                                const struct sched_part *parts, size_t count)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    for (size_t i = 0; a->devices && i < count; i++) {
        const struct sched_device *d;

        if (parts[i].device >= a->devices->item_count)
            continue;
        d = &a->devices->items[parts[i].device];
        if (d->id)
            (void)alloc_grant_add(&grant, d->slot_name, slot_types_get(core->types, d->slot_name),
                                  d->id, strlen(d->id), parts[i].amount, NULL);
    }
    if (grant.count == 0)
        return NULL;
    alloc_grant_write_json(&grant, &w);
    return strbuf_steal(&text);
}

/* The slot's amount, part after part. */
static void devices_take_parts(const struct core *core, const struct agent_entry *a,
                               struct sched_choice *chosen, const struct slot *wanted,
                               struct alloc_grant *to)
{
    int64_t left = wanted->amount;

    for (size_t i = 0; i < chosen->count && left > 0; i++) {
        const struct sched_device *d = &a->devices->items[chosen->parts[i].device];
        int64_t part = AQ_MIN(left, chosen->parts[i].amount);

        if (d->slot_name != wanted->name || !d->id || part <= 0)
            continue;
        (void)alloc_grant_add(to, d->slot_name, slot_types_get(core->types, d->slot_name), d->id,
                              strlen(d->id), part, NULL);
        chosen->parts[i].amount -= part;
        left -= part;
    }
}

char *agent_devices_write_chosen(const struct core *core, const struct agent_entry *a,
                                 struct sched_choice *chosen, const struct slots *requested)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    for (size_t i = 0; i < chosen->count; i++)
        if (!a->devices || chosen->parts[i].device >= a->devices->item_count)
            return NULL; /* it has other devices now */
    for (size_t i = 0; chosen->is_binding && i < requested->count; i++)
        devices_take_parts(core, a, chosen, &requested->items[i], &grant);
    for (size_t i = 0; !chosen->is_binding && i < chosen->count; i++) {
        const struct sched_device *d = &a->devices->items[chosen->parts[i].device];
        int64_t amount = slots_get(requested, d->slot_name);

        if (amount > 0 && d->quantum > 0 && d->id) /* it is given in parts */
            (void)alloc_grant_add(&grant, d->slot_name, slot_types_get(core->types, d->slot_name),
                                  d->id, strlen(d->id), amount, NULL);
    }
    if (grant.count == 0)
        return NULL;
    alloc_grant_write_json(&grant, &w);
    return strbuf_steal(&text);
}
