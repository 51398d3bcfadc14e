/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c - see wanted.h */
#include "k8s/plugin/wanted.h"

#include <stdio.h>
#include <string.h>

#define GIVEN_MSEC 10000 /* then it was not admitted, and is waited for again */
#define GIVEN_MAX 1024

struct wanted_one {
    const struct node_pod *pod;
    const struct node_container *of; /* NULL = none */
};

static void wanted_key(const struct node_pod *pod, const struct node_container *of,
                       char ret[WANTED_KEY_SIZE])
{
    (void)snprintf(ret, WANTED_KEY_SIZE, "%s/%s", pod->uid, of->name);
}

void wanted_done(struct wanted *wanted)
{
    map_done(&wanted->held);
    map_done(&wanted->given);
}

/* ---- what the kubelet says ---- */

static void wanted_count(struct cards *cards, const struct device_holder *holder)
{
    for (size_t i = 0; i < holder->part_count; i++) {
        const struct given_part *part = &holder->parts[i];
        struct card *card = cards_find(cards, part->card, strlen(part->card));

        if (!card)
            continue;
        card->held[RESOURCE_MEMORY] += part->memory;
        card->held[RESOURCE_COMPUTE] += part->compute;
    }
}

void wanted_set_held(struct wanted *wanted, struct cards *cards, const struct pods *pods,
                     const struct device_list *list)
{
    const struct node_pod *pod;
    char key[WANTED_KEY_SIZE];

    map_done(&wanted->held);
    for (size_t i = 0; i < cards->count; i++)
        memset(cards->items[i].held, 0, sizeof(cards->items[i].held));
    for (size_t i = 0; (pod = pods_at(pods, i)); i++)
        for (size_t k = 0; k < pod->container_count; k++) {
            const struct device_holder *holder = device_list_find(
                list, pod->uid, pod->namespace, pod->name, pod->containers[k].name);

            if (!holder)
                continue;
            if (!pod->is_over)
                wanted_count(cards, holder);
            wanted_key(pod, &pod->containers[k], key);
            if (map_sets(&wanted->held, key, wanted) < 0)
                return;
        }
}

/* ---- who waits ---- */

static bool wanted_was_given(const struct wanted *wanted, const char *key, int64_t now_usec)
{
    uintptr_t given = (uintptr_t)map_gets(&wanted->given, key);

    return given && (uintptr_t)(now_usec / 1000) - given <= GIVEN_MSEC;
}

static bool wanted_is_waiting(const struct wanted *wanted, const struct wanted_one *one,
                              int64_t now_usec)
{
    char key[WANTED_KEY_SIZE];

    wanted_key(one->pod, one->of, key);
    return !one->pod->is_over && !one->of->is_running && !map_gets(&wanted->held, key)
           && !wanted_was_given(wanted, key, now_usec);
}

/* The container of the last call, if this one is for its other resource: who seemed to be it, or else
 * another that asks for both amounts.
 */
static struct wanted_one wanted_second(const struct wanted *wanted, const struct pods *pods,
                                       enum resource_kind kind, uint32_t size, int64_t now_usec)
{
    struct wanted_one found = { .of = NULL }, one;
    char key[WANTED_KEY_SIZE];

    if (kind == wanted->kind || !wanted_was_given(wanted, wanted->last, now_usec))
        return found;
    for (size_t i = 0; (one.pod = pods_at(pods, i)); i++)
        for (size_t k = 0; k < one.pod->container_count; k++) {
            bool is_last, is_both;

            one.of = &one.pod->containers[k];
            wanted_key(one.pod, one.of, key);
            is_last = strcmp(key, wanted->last) == 0;
            is_both = placement_units(one.of, kind) == size
                      && placement_units(one.of, wanted->kind) == wanted->size;
            if (is_last && (is_both || !placement_units(one.of, kind)))
                return is_both ? one : (struct wanted_one){ .of = NULL };
            if (is_both && !found.of && wanted_is_waiting(wanted, &one, now_usec))
                found = one;
        }
    return found;
}

/* Those that wait for so much, in the order in which they were bound; the last ones do not matter. */
static size_t wanted_list(const struct wanted *wanted, const struct pods *pods,
                          enum resource_kind kind, uint32_t size, int64_t now_usec,
                          struct wanted_one ret[WANTED_MAX])
{
    struct wanted_one one;
    size_t count = 0;

    for (size_t i = 0; (one.pod = pods_at(pods, i)); i++)
        for (size_t k = 0; k < one.pod->container_count; k++) {
            size_t at = count;

            one.of = &one.pod->containers[k];
            while (at > 0 && one.pod->bound < ret[at - 1].pod->bound)
                at--;
            if (at == WANTED_MAX || placement_units(one.of, kind) != size
                || !wanted_is_waiting(wanted, &one, now_usec))
                continue;
            count = AQ_MIN(count + 1, (size_t)WANTED_MAX);
            memmove(&ret[at + 1], &ret[at], (count - at - 1) * sizeof(*ret));
            ret[at] = one;
        }
    return count;
}

void wanted_forget(struct wanted *wanted)
{
    wanted->last[0] = '\0';
}

size_t wanted_find(const struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                   uint32_t size, int64_t now_usec, const struct node_container *ret[WANTED_MAX])
{
    struct wanted_one list[WANTED_MAX];
    size_t count;

    if (wanted_second(wanted, pods, kind, size, now_usec).of)
        return 0;
    count = wanted_list(wanted, pods, kind, size, now_usec, list);
    for (size_t i = 0; i < count; i++)
        ret[i] = list[i].of;
    return count;
}

void wanted_give(struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                 uint32_t size, int64_t now_usec)
{
    struct wanted_one list[WANTED_MAX];
    struct wanted_one one = wanted_second(wanted, pods, kind, size, now_usec);
    bool is_second = one.of != NULL;
    char key[WANTED_KEY_SIZE];

    if (is_second)
        (void)map_removes(&wanted->given, wanted->last);
    else if (wanted_list(wanted, pods, kind, size, now_usec, list))
        one = list[0];
    wanted_forget(wanted);
    if (!one.of)
        return;
    if (wanted->given.count >= GIVEN_MAX)
        map_done(&wanted->given);
    wanted_key(one.pod, one.of, key);
    if (map_sets(&wanted->given, key, (void *)(uintptr_t)(now_usec / 1000)) < 0 || is_second)
        return;
    memcpy(wanted->last, key, sizeof(key));
    wanted->kind = kind;
    wanted->size = size;
}
