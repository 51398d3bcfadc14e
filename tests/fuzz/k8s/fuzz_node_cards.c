/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation of a node, as text; and a pod, if it is JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "k8s/scheduler/books.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cards(const struct node_cards *cards)
{
    for (uint32_t i = 0; i < cards->count; i++)
        if (!cards->cards[i].id[0] || cards->cards[i].memory <= 0 || cards->cards[i].compute < 0
            || node_cards_find(cards, cards->cards[i].id) != i)
            __builtin_trap();
    for (uint32_t i = 0; i < cards->given_count; i++)
        if (cards->given[i].card >= cards->count || cards->given[i].memory < 0)
            __builtin_trap();
}

static void check_pod(const struct pod *pod)
{
    if (pod->part_count > POD_PARTS_MAX || pod->container_count > POD_CONTAINERS_MAX)
        __builtin_trap();
    for (uint32_t i = 0; i < pod->part_count; i++)
        if (pod->parts[i].memory < 0 || pod->parts[i].compute < 0
            || pod->parts[i].memory + pod->parts[i].compute == 0)
            __builtin_trap();
    for (uint32_t i = 0; i < pod->container_count; i++)
        if (pod->containers[i].part >= pod->part_count)
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct resource_names names = { "m", "c" };
    char *text = strndup((const char *)data, size);
    struct aq_error err = { 0 };
    struct node_cards cards;
    struct pod pod;
    json_t *object;

    if (node_cards_read(text, &cards, &err) == 0) {
        check_cards(&cards);
        node_cards_done(&cards);
    } else if (!err.text[0] || cards.count) {
        __builtin_trap();
    }
    object = json_load_text(text, strlen(text), 0, NULL);
    err = (struct aq_error){ 0 };
    if (object && pod_read(object, &names, &pod, &err) == 0) {
        check_pod(&pod);
        pod_done(&pod);
    }
    json_decref(object);
    free(text);
    return 0;
}
