/* cards.c - the accelerators of an agent and what of each is free
 *
 * An agent says which devices it has; its kernels' reports say who holds what
 * of them. For a kernel that has not reported yet, the same code that the
 * agent will use guesses. Only for the scheduler: sums of what is held are
 * the ledger's.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "manager/core/parts.h"

#define CARDS_MAX 8192

struct agent_cards {
    struct arena arena;          /* owns all texts and arrays */
    struct alloc_slot *slots;
    size_t slot_count;
    struct alloc_device *devices; /* by slot */
    const char **models;          /* of each */
    const char **ids;             /* of each of 'items' that is no missing one */
    bool *is_elsewhere;           /* the same hardware is held under another slot's name */
    size_t count;
    struct sched_device *items;   /* the answer: those, then the missing ones */
    size_t item_count;
    bool is_listed;               /* the agent says which devices it has, cores included */
};

void agent_cards_free(struct agent_cards *cards)
{
    if (!cards)
        return;
    arena_done(&cards->arena);
    free(cards);
}

/* ---- what the agent has ---- */

static bool is_offered(const json_t *device)
{
    const char *status = json_string_value(json_object_get(device, "status"));

    return !status || strcmp(status, "healthy") == 0 || strcmp(status, "degraded") == 0;
}

static int64_t get_amount(const json_t *device, const char *key, const char *slot_name,
                          enum slot_type type)
{
    const char *text = json_string_value(json_object_get(device, key));
    int64_t amount = 0;

    if (text && slot_amount_parse(text, strlen(text), type, false, slot_name, &amount, NULL) < 0)
        return -1;
    return amount;
}

static void add_slot(struct agent_cards *cards, const char *name, enum slot_type type,
                     int64_t quantum)
{
    for (size_t i = 0; i < cards->slot_count; i++)
        if (cards->slots[i].name == name)
            return;
    cards->slots[cards->slot_count++]
        = (struct alloc_slot){ .name = name, .type = type, .quantum = quantum };
}

/* One device; what cannot be used is left out. */
static bool add_device(struct agent_cards *cards, const struct slot_types *types, const json_t *device)
{
    const char *id = json_string_value(json_object_get(device, "id"));
    const char *slot = json_string_value(json_object_get(device, "slot"));
    const char *model = json_string_value(json_object_get(device, "model"));
    const char *name = slot && strchr(slot, '.') ? slot_name_intern(slot, strlen(slot)) : NULL;
    enum slot_type type = slot_types_get(types, name ? name : "");
    const json_t *numa = json_object_get(device, "numa");
    int64_t amount = name ? get_amount(device, "amount", name, type) : -1;
    int64_t quantum = name ? get_amount(device, "quantum", name, type) : -1;

    if (!id || !device_id_is_valid(id, strlen(id)) || amount <= 0 || quantum < 0
        || (type == SLOT_UNIQUE && amount != AMOUNT_ONE) || !is_offered(device))
        return true;
    add_slot(cards, name, type, quantum);
    cards->devices[cards->count] = (struct alloc_device){
        .id = arena_strdup(&cards->arena, id), .slot_name = name, .capacity = amount,
        .numa_node = numa ? (int)json_integer_value(numa) : -1, .quantum = quantum
    };
    cards->models[cards->count] = model ? arena_strdup(&cards->arena, model) : NULL;
    return cards->devices[cards->count++].id != NULL;
}

/* NULL if memory is short. */
static struct agent_cards *parse(const struct slot_types *types, const char *text)
{
    struct agent_cards *cards = calloc(1, sizeof(*cards));
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    size_t count = AQ_MIN(json_array_size(list), (size_t)CARDS_MAX);
    bool ok = cards != NULL;

    if (ok) {
        cards->slots = arena_array(&cards->arena, count + 1, sizeof(*cards->slots));
        cards->devices = arena_array(&cards->arena, count + 1, sizeof(*cards->devices));
        cards->models = arena_array(&cards->arena, count + 1, sizeof(*cards->models));
        cards->ids = arena_array(&cards->arena, count + 1, sizeof(*cards->ids));
        cards->is_elsewhere = arena_array(&cards->arena, count + 1, sizeof(*cards->is_elsewhere));
        ok = cards->slots && cards->devices && cards->models && cards->ids && cards->is_elsewhere;
    }
    if (ok)
        cards->is_listed = count > 0;
    for (size_t i = 0; ok && i < count; i++)
        ok = add_device(cards, types, json_array_get(list, i));
    json_decref(list);
    if (ok)
        return cards;
    agent_cards_free(cards);
    return NULL;
}

/* ---- what of it is free ---- */

/* Only of accelerators: cores and memory are no cards. */
static int only_accelerators(const struct slots *requested, struct slots *ret)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < requested->count; i++)
        if (requested->items[i].amount > 0 && strchr(requested->items[i].name, '.'))
            r = slots_set(ret, requested->items[i].name, requested->items[i].amount);
    return r;
}

/* A kernel that has not said what it got. What finds no place is left out: the
 * sums, which hold anyway, keep others away.
 */
static int guess(struct alloc_map *map, const struct kernel_live *f)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { .items = NULL };
    const struct alloc_request request = { .slots = &wanted };

    if (only_accelerators(f->requested, &wanted) < 0)
        return -ENOMEM;
    return wanted.count && alloc_map_allocate(map, &request, &grant, NULL) == -ENOMEM ? -ENOMEM : 0;
}

static int fill(const struct core *core, struct agent_live *a, struct alloc_map *map)
{
    struct core_held held = { .holders = NULL };
    int r = core_find_held(core, a->a.id, &held);

    if (r == 0)
        r = alloc_map_apply(map, &held.grant, NULL);
    core_held_done(&held);
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_live *f = LIST_ENTRY(link, struct kernel_live, agent_link);

        if (r == 0 && !kernel_live_alloc(f))
            r = guess(map, f);
    }
    return r;
}

/* The map has them by slot, within a slot in our order. */
static void read_map(struct agent_cards *cards, const struct alloc_map *map)
{
    struct alloc_device_state state;
    size_t k = 0;

    for (size_t i = 0; i < cards->count && alloc_map_device(map, i, &state); i++) {
        while (cards->devices[k].slot_name != state.slot_name
               || strcmp(cards->devices[k].id, state.id) != 0)
            k = (k + 1) % cards->count; /* mostly the next one */
        cards->ids[i] = cards->devices[k].id;
        cards->items[i] = (struct sched_device){
            .slot_name = state.slot_name,
            .model = cards->models[k],
            .capacity = state.capacity,
            .quantum = state.quantum,
            .free = state.held_as || state.allocated > state.capacity
                        ? 0 : state.capacity - state.allocated,
        };
        cards->is_elsewhere[i] = state.held_as != NULL;
    }
}

static int refresh(const struct core *core, struct agent_live *a)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    struct agent_cards *cards = a->cards;
    const struct alloc_config config = { .slots = cards->slots, .slot_count = cards->slot_count,
                                         .devices = cards->devices, .device_count = cards->count };
    struct aq_error err = { 0 };
    int r = alloc_map_new(&config, &map, &err);

    if (r == -EINVAL || r == -EOVERFLOW) {
        log_warning("the devices of agent '%s' cannot be: %s", a->a.id, err.text);
        cards->count = cards->item_count = 0;
        return 0;
    }
    if (r == 0)
        r = fill(core, a, map);
    if (r == 0)
        read_map(cards, map);
    return r;
}

static bool has_slot(const struct agent_cards *cards, const char *name)
{
    for (size_t i = 0; i < cards->slot_count; i++)
        if (cards->slots[i].name == name)
            return true;
    return false;
}

/* A slot that is offered only because of what is held, and has no device any
 * more: sums alone would let somebody in as soon as a holder ends.
 */
static int add_missing(struct agent_cards *cards, const struct slots *offered)
{
    struct sched_device *items = arena_array(&cards->arena, cards->count + offered->count + 1,
                                             sizeof(*items));

    if (!items)
        return -ENOMEM;
    cards->items = items;
    cards->item_count = cards->count;
    for (size_t i = 0; cards->is_listed && i < offered->count; i++)
        if (strchr(offered->items[i].name, '.') && !has_slot(cards, offered->items[i].name))
            items[cards->item_count++] = (struct sched_device){ .slot_name = offered->items[i].name,
                                                                .capacity = AMOUNT_ONE };
    return 0;
}

int agent_find_cards(const struct core *core, struct agent_live *a, const struct sched_device **ret,
                     size_t *ret_count)
{
    if (a->cards_changed || !a->cards) {
        struct agent_cards *fresh = parse(core->types, a->a.devices);

        if (fresh && add_missing(fresh, &a->a.available) < 0) {
            agent_cards_free(fresh);
            fresh = NULL;
        }
        if (!fresh)
            return -ENOMEM;
        agent_cards_free(a->cards);
        a->cards = fresh;
        a->cards_changed = false;
        a->cards_stale = true;
    }
    if (a->cards_stale && a->cards->count) {
        int r = refresh(core, a);

        if (r < 0)
            return r;
    }
    a->cards_stale = false;
    *ret = a->cards->items;
    *ret_count = a->cards->item_count;
    return 0;
}

/* ---- who holds which part ---- */

bool agent_has_cards(const struct agent_live *a)
{
    return a->cards && a->cards->count > 0;
}

static bool find_card(const struct agent_cards *cards, const struct grant_item *item,
                      uint32_t *ret)
{
    for (size_t i = 0; i < cards->count; i++)
        if (cards->items[i].slot_name == item->slot_name &&
            strcmp(cards->ids[i], item->device_id) == 0) {
            *ret = (uint32_t)i;
            return true;
        }
    return false;
}

int agent_copy_cards(const struct core *core, struct agent_live *a, struct arena *arena,
                     struct sched_device **ret, size_t *ret_count)
{
    const struct sched_device *devices;
    int r = agent_find_cards(core, a, &devices, ret_count);

    if (r < 0)
        return r;
    if (!(*ret = arena_array(arena, *ret_count + 1, sizeof(**ret))))
        return -ENOMEM;
    for (size_t i = 0; i < *ret_count; i++) {
        (*ret)[i] = devices[i];
        (*ret)[i].free
            = i < a->cards->count && !a->cards->is_elsewhere[i] ? devices[i].capacity : 0;
    }
    return 0;
}

int agent_find_parts(const struct core *core, struct agent_live *a, const struct kernel_live *f,
                     struct arena *arena, const struct sched_part **ret, size_t *ret_count)
{
    struct core_held held = { .holders = NULL };
    const struct sched_device *devices;
    struct sched_part *parts = NULL;
    size_t count = 0;
    int r = agent_find_cards(core, a, &devices, &count);

    *ret = NULL;
    *ret_count = 0;
    if (r < 0 || count == 0)
        return r;
    r = kernel_live_held(core, f, &held);
    if (r == 0 && held.grant.count && !(parts = arena_array(arena, held.grant.count, sizeof(*parts))))
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < held.grant.count; i++)
        if (find_card(a->cards, &held.grant.items[i], &parts[*ret_count].device))
            parts[(*ret_count)++].amount = held.grant.items[i].amount;
    if (r == 0 && held.grant.count && *ret_count == 0)
        parts[(*ret_count)++] = (struct sched_part){ 0 }; /* of no device that is there */
    core_held_done(&held);
    *ret = parts;
    return r;
}
