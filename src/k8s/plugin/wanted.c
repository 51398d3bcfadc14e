/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c - see wanted.h */
#include "k8s/plugin/wanted.h"

#include <stdio.h>
#include <string.h>

static void wanted_key(const struct node_pod *pod, const struct node_container *of,
                       char ret[WANTED_KEY_SIZE])
{
    (void)snprintf(ret, WANTED_KEY_SIZE, "%s/%s", pod->uid, of->name);
}

/* ---- which container ---- */

/* The card on which it has units of this resource, or NULL. */
static const char *wanted_card(const struct wanted *wanted, const struct device_list *list,
                               const struct node_pod *pod, const struct node_container *of,
                               enum resource_kind kind)
{
    const struct device_holder *holder = device_list_find(list, pod->uid, pod->namespace, pod->name,
                                                          of->name);
    char key[WANTED_KEY_SIZE];

    for (size_t i = 0; holder && i < holder->part_count; i++)
        if (kind == RESOURCE_MEMORY ? holder->parts[i].memory : holder->parts[i].compute)
            return holder->parts[i].card;
    wanted_key(pod, of, key);
    return kind == wanted->kind && strcmp(key, wanted->last) == 0 ? wanted->card : NULL;
}

/* The first container of the pod that lacks something; one that was started before only where no
 * new one does. False if there is none, or it does not ask for 'size' units.
 */
static bool wanted_look(const struct wanted *wanted, const struct device_list *list,
                        const struct node_pod *pod, enum resource_kind kind, uint32_t size,
                        struct wanted_container *ret)
{
    enum resource_kind other = placement_other(kind);
    bool is_found = false, has_kind = false;

    for (size_t i = 0; i < pod->container_count && (!is_found || ret->container->id[0]); i++) {
        const struct node_container *of = &pod->containers[i];
        const char *card = wanted_card(wanted, list, pod, of, kind);
        const char *other_card = wanted_card(wanted, list, pod, of, other);

        if ((is_found && of->id[0])
            || ((card || !placement_units(of, kind))
                && (other_card || !placement_units(of, other))))
            continue;
        is_found = true;
        has_kind = card != NULL;
        *ret = (struct wanted_container){
            .pod = pod,
            .container = of,
            .rank = other_card                     ? WANTED_SECOND
                    : of->id[0] || pod->is_leaving ? WANTED_OLD
                                                   : WANTED_NEW,
        };
        (void)snprintf(ret->card, sizeof(ret->card), "%s", other_card ? other_card : "");
    }
    return is_found && !has_kind && placement_units(ret->container, kind) == size;
}

/* Put the pod's container, if it may be asked for, where it belongs among the others. */
static void wanted_add(const struct wanted *wanted, const struct device_list *list,
                       const struct node_pod *pod, enum resource_kind kind, uint32_t size,
                       struct wanted_container ret[WANTED_MAX], size_t *count)
{
    struct wanted_container one;
    size_t at = *count;

    if (pod->is_over || !device_list_has_pod(list, pod->namespace, pod->name)
        || !wanted_look(wanted, list, pod, kind, size, &one))
        return;
    while (at > 0
           && (one.rank < ret[at - 1].rank
               || (one.rank == ret[at - 1].rank && pod->bound > ret[at - 1].pod->bound)))
        at--;
    if (at == WANTED_MAX)
        return;
    *count = AQ_MIN(*count + 1, (size_t)WANTED_MAX);
    memmove(&ret[at + 1], &ret[at], (*count - at - 1) * sizeof(*ret));
    ret[at] = one;
}

size_t wanted_find(struct wanted *wanted, const struct pods *pods, const struct device_list *list,
                   enum resource_kind kind, uint32_t size, bool is_late,
                   struct wanted_container ret[WANTED_MAX])
{
    const struct node_pod *pod;
    size_t count = 0, same = 0;

    for (size_t i = 0; (pod = pods_at(pods, i)); i++)
        wanted_add(wanted, list, pod, kind, size, ret, &count);
    for (size_t i = 0; !count && (pod = pods_gone_at(pods, i)); i++)
        wanted_add(wanted, list, pod, kind, size, ret, &count);
    wanted->next[0] = '\0';
    if (count == 0 || (ret[0].rank == WANTED_OLD && !is_late))
        return 0;
    wanted_key(ret[0].pod, ret[0].container, wanted->next);
    while (same < count && ret[same].rank == ret[0].rank)
        same++;
    return same;
}

void wanted_give(struct wanted *wanted, enum resource_kind kind, const char *card)
{
    memcpy(wanted->last, wanted->next, sizeof(wanted->last));
    wanted->next[0] = '\0';
    wanted->kind = kind;
    (void)snprintf(wanted->card, sizeof(wanted->card), "%s", card);
}

void wanted_forget(struct wanted *wanted)
{
    wanted->next[0] = wanted->last[0] = '\0';
}

/* ---- what is free ---- */

/* The record keeps pods that have ended until it is written again. */
static bool wanted_is_held(const struct pods *pods, const struct device_list *list,
                           const struct device_holder *holder)
{
    const struct node_pod *pod = holder->uid ? pods_find(pods, holder->uid) : NULL;

    return !holder->uid || (pod && device_list_has_pod(list, pod->namespace, pod->name));
}

/* Containers of a pod may have the same unit one after the other. */
static void wanted_mark(const struct given_units *units, bool taken[DEVICE_UNITS_MAX + 1])
{
    for (size_t i = 0; i < units->count; i++)
        if (units->items[i] <= DEVICE_UNITS_MAX)
            taken[units->items[i]] = true;
}

static void wanted_count_free(struct card *card, enum resource_kind kind, const struct pods *pods,
                              const struct device_list *list)
{
    bool taken[DEVICE_UNITS_MAX + 1] = { false };

    for (size_t i = 0; i < list->count; i++) {
        const struct device_holder *holder = &list->items[i];

        for (size_t k = 0; k < holder->part_count; k++)
            if (strcmp(holder->parts[k].card, card->id) == 0 && wanted_is_held(pods, list, holder))
                wanted_mark(kind == RESOURCE_MEMORY ? &holder->parts[k].memory_units
                                                    : &holder->parts[k].compute_units,
                            taken);
    }
    card->free[kind] = card->units[kind];
    for (uint32_t unit = 0; unit < card->units[kind]; unit++)
        card->free[kind] -= taken[unit];
}

void wanted_set_free(struct cards *cards, const struct pods *pods, const struct device_list *list)
{
    for (size_t i = 0; i < cards->count; i++)
        for (size_t kind = 0; kind < RESOURCE_KINDS; kind++)
            wanted_count_free(&cards->items[i], (enum resource_kind)kind, pods, list);
}
