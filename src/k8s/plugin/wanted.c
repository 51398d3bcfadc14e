/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c - see wanted.h */
#include "k8s/plugin/wanted.h"

#include <stdio.h>
#include <string.h>

#define KEY_SIZE (POD_UID_MAX + CONTAINER_NAME_MAX + 2)
#define PICKED_MSEC 10000 /* then it was not admitted, and is waited for again */
#define PICKED_MAX 1024

static void wanted_key(const struct node_pod *pod, const struct node_container *of,
                       char ret[KEY_SIZE])
{
    (void)snprintf(ret, KEY_SIZE, "%s/%s", pod->uid, of->name);
}

void wanted_done(struct wanted *wanted)
{
    map_done(&wanted->held);
    map_done(&wanted->picked);
}

void wanted_set_held(struct wanted *wanted, const struct pods *pods, const struct device_list *list)
{
    const struct node_pod *pod;
    char key[KEY_SIZE];

    map_done(&wanted->held);
    for (size_t i = 0; (pod = pods_at(pods, i)); i++)
        for (size_t k = 0; k < pod->container_count; k++)
            if (device_list_find(list, pod->uid, pod->namespace, pod->name,
                                 pod->containers[k].name)) {
                wanted_key(pod, &pod->containers[k], key);
                if (map_sets(&wanted->held, key, wanted) < 0)
                    return;
            }
}

static bool wanted_is_waiting(const struct wanted *wanted, const struct node_pod *pod,
                              const struct node_container *of, int64_t now_usec)
{
    char key[KEY_SIZE];
    uintptr_t picked;

    wanted_key(pod, of, key);
    picked = (uintptr_t)map_gets(&wanted->picked, key);
    return !pod->is_over && !of->is_running && of->card[0] && !map_gets(&wanted->held, key)
           && (!picked || (uintptr_t)(now_usec / 1000) - picked > PICKED_MSEC);
}

static uint32_t wanted_units(const struct node_container *of, enum resource_kind kind)
{
    return kind == RESOURCE_MEMORY ? of->memory : of->compute;
}

static void wanted_pick(struct wanted *wanted, const struct node_pod *pod,
                        const struct node_container *of, enum resource_kind kind, int64_t now_usec)
{
    char key[KEY_SIZE];

    if (wanted->picked.count >= PICKED_MAX)
        map_done(&wanted->picked);
    wanted_key(pod, of, key);
    if (map_sets(&wanted->picked, key, (void *)(uintptr_t)(now_usec / 1000)) < 0)
        return;
    wanted->kind = kind;
    wanted->other = kind == RESOURCE_MEMORY ? of->compute : of->memory;
}

const char *wanted_card(struct wanted *wanted, const struct pods *pods, enum resource_kind kind,
                        uint32_t size, int64_t now_usec)
{
    const struct node_container *best = NULL;
    const struct node_pod *of_pod = NULL, *pod;
    bool is_second = kind != wanted->kind && wanted->other == size;

    wanted->other = 0;
    if (is_second)
        return NULL;
    for (size_t i = 0; (pod = pods_at(pods, i)); i++)
        for (size_t k = 0; k < pod->container_count; k++) {
            const struct node_container *of = &pod->containers[k];

            if (wanted_units(of, kind) == size && wanted_is_waiting(wanted, pod, of, now_usec)
                && (!best || pod->bound < of_pod->bound)) {
                best = of;
                of_pod = pod;
            }
        }
    if (!best)
        return NULL;
    wanted_pick(wanted, of_pod, best, kind, now_usec);
    return best->card;
}
