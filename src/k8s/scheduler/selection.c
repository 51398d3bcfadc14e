/* SPDX-License-Identifier: Apache-2.0 */
/* selection.c - see selection.h */
#include "k8s/scheduler/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/select_node.h"

#define STEPS_MAX 128 /* of a search on a node, for pods of several parts */
#define MEMORY_SLOT "gpu.memory"
#define COMPUTE_SLOT "gpu.compute"

static const struct selector_ops *const selection_ops[POLICY_COUNT] = {
    [POLICY_BIN_PACKING] = &sched_bin_packing,
    [POLICY_HIGH_PERFORMANCE] = &sched_high_performance,
    [POLICY_FRAGMENTATION] = &sched_fragmentation,
};

struct selection {
    struct cluster cluster; /* without agents: for its columns, and the size of devices */
    struct slot_types *types;
    size_t memory_column, compute_column;
    void *data[POLICY_COUNT];                      /* of selectors */
    struct slot_request request;                   /* what a part asks for */
    struct node_state state;                       /* a node, as that part sees it */
    struct cluster_device devices[NODE_CARDS_MAX]; /* 'unused' is the card */
};

/* ---- life ---- */

static void selection_make_types(struct selection *s)
{
    static const char *const names[] = { MEMORY_SLOT, COMPUTE_SLOT };

    s->types = slot_types_new();
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct slot_types *known = s->types;

        s->types = slot_types_merge(known, slot_name_intern(names[i], strlen(names[i])), SLOT_COUNT,
                                    NULL);
        slot_types_unref(known);
    }
}

struct selection *selection_new(void)
{
    struct selection *s = aq_alloc(sizeof(*s));

    selection_make_types(s);
    cluster_init(&s->cluster, s->types, NULL, 0);
    s->memory_column = cluster_column(&s->cluster,
                                      slot_name_find(MEMORY_SLOT, strlen(MEMORY_SLOT)));
    s->compute_column = cluster_column(&s->cluster,
                                       slot_name_find(COMPUTE_SLOT, strlen(COMPUTE_SLOT)));
    s->request.models = 1;
    s->request.amounts = aq_alloc_array(s->cluster.width, sizeof(int64_t));
    s->state.free = aq_alloc_array(s->cluster.width, sizeof(int64_t));
    s->state.devices = s->devices;
    for (int i = 0; i < POLICY_COUNT; i++)
        if (selection_ops[i]->open)
            s->data[i] = selection_ops[i]->open();
    return s;
}

void selection_free(struct selection *selection)
{
    if (!selection)
        return;
    for (int i = 0; i < POLICY_COUNT; i++)
        if (selection->data[i])
            selection_ops[i]->close(selection->data[i]);
    free(selection->request.amounts);
    free(selection->state.free);
    cluster_done(&selection->cluster);
    slot_types_unref(selection->types);
    free(selection);
}

void selection_set_largest(struct selection *selection, int32_t memory, int32_t compute)
{
    selection->cluster.device_capacity[selection->memory_column] = memory;
    selection->cluster.device_capacity[selection->compute_column] = compute;
}

/* ---- a part, and a node ---- */

static size_t selection_column(const struct selection *s, const struct pod_part *part)
{
    return part->memory ? s->memory_column : s->compute_column;
}

static void selection_set_request(struct selection *s, const struct pod_part *part)
{
    s->request.amounts[s->memory_column] = part->memory;
    s->request.amounts[s->compute_column] = part->memory ? 0 : part->compute;
}

bool node_card_has(const struct node_card *card, const struct pod_part *part)
{
    return part->memory <= card->memory - card->used_memory
           && part->compute <= card->compute - card->used_compute;
}

void node_card_take(struct node_card *card, const struct pod_part *part, int sign)
{
    card->used_memory += sign * part->memory;
    card->used_compute += sign * part->compute;
}

/* What a card is for a part. The potential of fragmentation is about how much is free, the other
 * policies are about which part of the card is.
 */
static struct cluster_device selection_device(const struct selection *s, enum card_policy policy,
                                              const struct pod_part *part,
                                              const struct node_card *card, bool is_excluded)
{
    size_t column = selection_column(s, part);
    int64_t all = part->memory ? card->memory : card->compute;
    int64_t used = part->memory ? card->used_memory : card->used_compute;
    bool has_other = !part->memory || part->compute <= card->compute - card->used_compute;

    return (struct cluster_device){
        .free = AQ_MAX(all - used, INT64_C(0)),
        .capacity = policy == POLICY_FRAGMENTATION ? s->cluster.device_capacity[column] : all,
        .column = (uint16_t)column,
        .model = is_excluded || !has_other || (part->memory ? part->memory : part->compute) > all,
    };
}

static void selection_set_state(struct selection *s, enum card_policy policy,
                                const struct pod_part *part, const struct node_cards *cards,
                                uint64_t excluded)
{
    uint16_t count = 0;

    for (uint32_t i = 0; i < cards->count; i++) {
        if (!cards->cards[i].is_healthy || (!part->memory && !cards->cards[i].compute))
            continue;
        s->devices[count] = selection_device(s, policy, part, &cards->cards[i], excluded >> i & 1);
        s->devices[count++].unused = i;
    }
    s->state.device_count = count;
    cluster_sort_devices(s->devices, count);
}

/* The card that the selector takes for the part, with its score; UINT32_MAX = none has room. */
static uint32_t selection_best_card(struct selection *s, enum card_policy policy,
                                    const struct pod_part *part, const struct node_cards *cards,
                                    uint64_t excluded, double *ret_score)
{
    int32_t device = -1;

    selection_set_request(s, part);
    selection_set_state(s, policy, part, cards, excluded);
    *ret_score = selection_ops[policy]->score(s->data[policy], &s->cluster, &s->request, &s->state,
                                              &device);
    return device < 0 ? UINT32_MAX : s->devices[device].unused;
}

/* ---- all parts of a pod ---- */

struct selection_search {
    struct selection *selection;
    enum card_policy policy;
    const struct pod *pod;
    struct node_cards *cards;
    uint32_t order[POD_PARTS_MAX]; /* the largest parts first */
    int steps;
    struct placement_choice *ret;
};

/* The parts from 'at' on. Where one finds no place any more, the one before takes another card. */
static bool selection_place_from(struct selection_search *search, uint32_t at, double sum)
{
    const struct pod *pod = search->pod;
    uint64_t excluded = 0;
    const struct pod_part *part;

    if (at == pod->part_count) {
        search->ret->score = sum / AQ_MAX(at, 1u);
        return true;
    }
    part = &pod->parts[search->order[at]];
    while (search->steps++ < STEPS_MAX) {
        double score;
        uint32_t card = selection_best_card(search->selection, search->policy, part, search->cards,
                                            excluded, &score);
        bool is_placed;

        if (card == UINT32_MAX)
            return false;
        search->ret->cards[search->order[at]] = card;
        node_card_take(&search->cards->cards[card], part, 1);
        is_placed = selection_place_from(search, at + 1, sum + score);
        node_card_take(&search->cards->cards[card], part, -1);
        if (is_placed)
            return true;
        excluded |= UINT64_C(1) << card;
    }
    return false;
}

static bool selection_is_larger(const struct pod_part *a, const struct pod_part *b)
{
    return a->memory != b->memory ? a->memory > b->memory : a->compute > b->compute;
}

/* A card has room for the part, others apart. */
static bool selection_has_card(const struct pod_part *part, const struct node_cards *cards)
{
    for (uint32_t i = 0; i < cards->count; i++)
        if (cards->cards[i].is_healthy && node_card_has(&cards->cards[i], part))
            return true;
    return false;
}

bool selection_place(struct selection *selection, enum card_policy policy, const struct pod *pod,
                     struct node_cards *cards, struct placement_choice *ret)
{
    struct selection_search search = {
        .selection = selection, .policy = policy, .pod = pod, .cards = cards, .ret = ret
    };

    for (uint32_t i = 0; i < pod->part_count; i++) {
        uint32_t at = i;

        if (!selection_has_card(&pod->parts[i], cards))
            return false;
        for (; at > 0 && selection_is_larger(&pod->parts[i], &pod->parts[search.order[at - 1]]);
             at--)
            search.order[at] = search.order[at - 1];
        search.order[at] = i;
    }
    return selection_place_from(&search, 0, 0);
}

/* ---- why there is no place ---- */

/* "30 of memory and 50 of compute", of what is asked for. */
static void selection_write_amounts(const struct pod_part *part, int64_t memory, int64_t compute,
                                    bool is_short, char ret[64])
{
    if (!part->compute)
        (void)snprintf(ret, 64, is_short ? "%lld" : "%lld of memory", (long long)memory);
    else if (!part->memory)
        (void)snprintf(ret, 64, is_short ? "%lld" : "%lld of compute", (long long)compute);
    else
        (void)snprintf(ret, 64, is_short ? "%lld and %lld" : "%lld of memory and %lld of compute",
                       (long long)memory, (long long)compute);
}

/* How much of what is asked for a card has, of the scarcer amount. */
static double selection_share(const struct pod_part *part, int64_t memory, int64_t compute)
{
    double of_memory = part->memory ? (double)memory / part->memory : 1;
    double of_compute = part->compute ? (double)compute / part->compute : 1;

    return AQ_MIN(of_memory, 1) + AQ_MIN(of_compute, 1);
}

static void selection_write_shortage(const struct pod_part *part, const struct node_cards *cards,
                                     bool is_empty, char ret[SELECTION_REASON_MAX])
{
    char wanted[64], best[64] = "";
    double most = -1;

    for (uint32_t i = 0; i < cards->count; i++) {
        const struct node_card *card = &cards->cards[i];
        int64_t memory = card->memory - (is_empty ? 0 : card->used_memory);
        int64_t compute = card->compute - (is_empty ? 0 : card->used_compute);
        double share;

        memory = AQ_MAX(memory, INT64_C(0));
        compute = AQ_MAX(compute, INT64_C(0));
        share = selection_share(part, memory, compute);
        if (!card->is_healthy || share <= most)
            continue;
        most = share;
        selection_write_amounts(part, memory, compute, true, best);
    }
    selection_write_amounts(part, part->memory, part->compute, false, wanted);
    (void)snprintf(ret, SELECTION_REASON_MAX,
                   is_empty ? "no card has %s: largest has %s" : "no card has %s free: best has %s",
                   wanted, best);
}

/* Whether it would have a place if nothing else were there. */
static bool selection_fits_empty(struct selection *selection, const struct pod *pod,
                                 const struct node_cards *cards, bool with_unhealthy)
{
    struct node_card empty[NODE_CARDS_MAX];
    struct node_cards copy = { .cards = empty, .count = cards->count };
    struct placement_choice choice;

    for (uint32_t i = 0; i < cards->count; i++) {
        empty[i] = cards->cards[i];
        empty[i].used_memory = empty[i].used_compute = 0;
        empty[i].is_healthy |= with_unhealthy;
    }
    return selection_place(selection, POLICY_BIN_PACKING, pod, &copy, &choice);
}

/* A part that no card has room for; NULL if only all of them have none together. */
static const struct pod_part *selection_short_part(const struct pod *pod,
                                                   const struct node_cards *cards)
{
    for (uint32_t i = 0; i < pod->part_count; i++)
        if (!selection_has_card(&pod->parts[i], cards))
            return &pod->parts[i];
    return NULL;
}

enum selection_reason selection_explain(struct selection *selection, const struct pod *pod,
                                        struct node_cards *cards, char ret[SELECTION_REASON_MAX])
{
    const struct pod_part *part = selection_short_part(pod, cards);
    bool is_too_large;

    if (!cards->count) {
        (void)snprintf(ret, SELECTION_REASON_MAX, "no GPU of which pods get parts");
        return REASON_NO_CARD;
    }
    is_too_large = !selection_fits_empty(selection, pod, cards, false);
    if (is_too_large && selection_fits_empty(selection, pod, cards, true)) {
        (void)snprintf(ret, SELECTION_REASON_MAX, "the card that is large enough is unhealthy");
        return REASON_UNHEALTHY;
    }
    if (part)
        selection_write_shortage(part, cards, is_too_large, ret);
    else
        (void)snprintf(ret, SELECTION_REASON_MAX,
                       "the cards have no room for the pod's %u containers together",
                       pod->container_count);
    return is_too_large ? REASON_TOO_LARGE : REASON_NO_ROOM;
}

/* ---- what selectors learn ---- */

void selection_note_arrival(struct selection *selection, const struct pod *pod)
{
    for (uint32_t part = 0; part < pod->part_count; part++) {
        selection_set_request(selection, &pod->parts[part]);
        for (int i = 0; i < POLICY_COUNT; i++)
            if (selection_ops[i]->on_arrival)
                selection_ops[i]->on_arrival(selection->data[i], &selection->cluster,
                                             &selection->request);
    }
}

void selection_note_placement(struct selection *selection)
{
    for (int i = 0; i < POLICY_COUNT; i++)
        if (selection_ops[i]->on_placement)
            selection_ops[i]->on_placement(selection->data[i], &selection->cluster, 0);
}

void selection_note_departure(struct selection *selection)
{
    for (int i = 0; i < POLICY_COUNT; i++)
        if (selection_ops[i]->on_departure)
            selection_ops[i]->on_departure(selection->data[i]);
}
