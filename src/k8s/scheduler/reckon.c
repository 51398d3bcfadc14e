/* SPDX-License-Identifier: Apache-2.0 */
/* reckon.c - see reckon.h */
#include "k8s/scheduler/reckon.h"

static void reckon_hold(struct book_node *node, struct book_pod *pod, uint32_t part, uint32_t card)
{
    node_card_take(&node->cards.cards[card], &pod->pod.parts[part], 1);
    pod->held |= UINT32_C(1) << part;
}

static bool reckon_is_held(const struct book_pod *pod, uint32_t part)
{
    return pod->held >> part & 1;
}

/* What the kubelet says is true, whether there is room or not: also of pods that are not known, or
 * not of this node. One that has ended, or is
 * thought away, holds nothing.
 */
static void reckon_given(const struct books *books, struct book_node *node,
                         const struct node_given *given)
{
    const struct pod_part amounts = { .memory = given->memory, .compute = given->compute };
    struct book_pod *pod = books_find_pod(books, given->pod);
    uint32_t part;

    if (pod && (pod->pod.is_finished || pod->is_leaving))
        return;
    if (!pod || pod->node != node) {
        node_card_take(&node->cards.cards[given->card], &amounts, 1);
        return;
    }
    part = pod_find_part(&pod->pod, given->container);
    if (part != UINT32_MAX && !reckon_is_held(pod, part))
        reckon_hold(node, pod, part, given->card);
}

static void reckon_try(struct book_node *node, struct book_pod *pod, uint32_t part, uint32_t card)
{
    if (card < node->cards.count && !reckon_is_held(pod, part)
        && node_card_has(&node->cards.cards[card], &pod->pod.parts[part]))
        reckon_hold(node, pod, part, card);
}

/* Where its annotation says, or what was assumed and is bound. */
static void reckon_placed(struct book_node *node, struct book_pod *pod)
{
    for (uint32_t part = 0; part < pod->pod.part_count; part++) {
        const char *placed = pod->pod.parts[part].placed;

        if (pod->cards)
            reckon_try(node, pod, part, pod->cards[part]);
        else if (placed)
            reckon_try(node, pod, part, node_cards_find(&node->cards, placed));
    }
}

/* All of it has room on healthy cards, or it is assumed no more. */
static void reckon_assumed(struct book_node *node, struct book_pod *pod)
{
    uint32_t part = 0;

    for (; part < pod->pod.part_count; part++) {
        if (node->cards.cards[pod->cards[part]].is_healthy)
            reckon_try(node, pod, part, pod->cards[part]);
        if (!reckon_is_held(pod, part))
            break;
    }
    if (part == pod->pod.part_count)
        return;
    while (part-- > 0)
        node_card_take(&node->cards.cards[pod->cards[part]], &pod->pod.parts[part], -1);
    pod->held = 0;
    free(AQ_TAKE(pod->cards));
}

/* The fullest card that has room. */
static uint32_t reckon_fullest(const struct book_node *node, const struct pod_part *part,
                               bool is_healthy)
{
    uint32_t best = UINT32_MAX;
    int64_t least = 0;

    for (uint32_t i = 0; i < node->cards.count; i++) {
        const struct node_card *card = &node->cards.cards[i];
        int64_t left = card->memory - card->used_memory;

        if (node_card_has(card, part) && (card->is_healthy || !is_healthy)
            && (best == UINT32_MAX || left < least)) {
            best = i;
            least = left;
        }
    }
    return best;
}

static void reckon_elsewhere(struct book_node *node, struct book_pod *pod)
{
    for (uint32_t part = 0; part < pod->pod.part_count; part++)
        if (!reckon_is_held(pod, part))
            reckon_try(node, pod, part, reckon_fullest(node, &pod->pod.parts[part], false));
}

/* One for which others are evicted: as soon as there is room for all of it. */
static void reckon_nominated(struct book_node *node, struct book_pod *pod)
{
    uint32_t cards[POD_PARTS_MAX], part = 0;

    for (; part < pod->pod.part_count; part++) {
        cards[part] = reckon_fullest(node, &pod->pod.parts[part], true);
        if (cards[part] == UINT32_MAX)
            break;
        reckon_hold(node, pod, part, cards[part]);
    }
    if (part == pod->pod.part_count)
        return;
    while (part-- > 0)
        node_card_take(&node->cards.cards[cards[part]], &pod->pod.parts[part], -1);
    pod->held = 0;
}

/* Those whose place is known come first, those of which it is not known come last. */
static void reckon_pod(struct book_node *node, struct book_pod *pod, int round)
{
    bool is_bound = pod->pod.node || pod->is_assumed_bound;

    if (round == 0 && is_bound)
        reckon_placed(node, pod);
    else if (round == 1 && !is_bound && pod->cards)
        reckon_assumed(node, pod);
    else if (round == 2 && is_bound)
        reckon_elsewhere(node, pod);
    else if (round == 3 && book_pod_is_nominated(pod))
        reckon_nominated(node, pod);
}

void reckon_node(const struct books *books, struct book_node *node)
{
    for (uint32_t i = 0; i < node->cards.count; i++)
        node->cards.cards[i].used_memory = node->cards.cards[i].used_compute = 0;
    node->nominated = 0;
    LIST_FOREACH(link, &node->pods) {
        struct book_pod *pod = LIST_ENTRY(link, struct book_pod, link);

        pod->held = 0;
        node->nominated += book_pod_is_nominated(pod);
    }
    for (uint32_t i = 0; i < node->cards.given_count; i++)
        reckon_given(books, node, &node->cards.given[i]);
    for (int round = 0; round < 4; round++)
        LIST_FOREACH(link, &node->pods) {
            struct book_pod *pod = LIST_ENTRY(link, struct book_pod, link);

            if (!pod->is_leaving)
                reckon_pod(node, pod, round);
        }
}
