/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - see card.h */
#include "k8s/plugin/card.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"

#define KIND "cuda" /* whose driver the preload library stands before */

void cards_done(struct cards *cards)
{
    for (size_t i = 0; i < cards->count; i++)
        accel_attachment_done(&cards->items[i].attachment);
    free(cards->items);
    *cards = (struct cards){ .items = NULL };
}

struct card *cards_find(const struct cards *cards, const char *id, size_t len)
{
    for (size_t i = 0; i < cards->count; i++)
        if (strlen(cards->items[i].id) == len && memcmp(cards->items[i].id, id, len) == 0)
            return &cards->items[i];
    return NULL;
}

static enum slot_type card_slot_type(const struct accel_plugin *plugin, const char *name)
{
    for (size_t i = 0; i < plugin->slot_count; i++)
        if (plugin->slots[i].name == name)
            return plugin->slots[i].type;
    return SLOT_COUNT;
}

/* Whole and to be parted by us: what a driver has parted (MIG) is not. */
static bool card_is_usable(const struct accel_device *device)
{
    return !device->parent && !strchr(device->slot_name, ':') && device->memory_bytes
           && strlen(device->id) <= DEVICE_CARD_MAX;
}

static void cards_add(struct cards *cards, const struct accel_plugin *plugin,
                      const struct accel_device *device, const struct card_units *units)
{
    uint64_t unit = (uint64_t)units->memory_unit;
    uint64_t memory = (device->memory_bytes + unit / 2) / unit; /* as people say: 80 of 79.6 */
    struct card *card;

    vec_grow(&cards->items, &cards->cap, cards->count + 1, sizeof(*cards->items));
    card = &cards->items[cards->count++];
    *card = (struct card){
        .slot_name = device->slot_name,
        .slot_type = card_slot_type(plugin, device->slot_name),
        .amount = device->amount,
        .numa_node = device->numa_node,
        .is_healthy = device->status == ACCEL_HEALTHY || device->status == ACCEL_DEGRADED,
        .units = { (uint32_t)AQ_MIN(memory, (uint64_t)DEVICE_UNITS_MAX),
                   (uint32_t)units->compute_units },
    };
    (void)snprintf(card->model, sizeof(card->model), "%s", device->model ? device->model : "");
    memcpy(card->id, device->id, strlen(device->id) + 1);
    memcpy(card->free, card->units, sizeof(card->free));
}

void cards_read(const struct accel *accel, const struct card_units *units, struct cards *cards)
{
    struct cards fresh = { .items = NULL };
    const struct accel_plugin *plugin;

    for (size_t i = 0; (plugin = accel_plugin(accel, i)); i++) {
        if (!plugin->key || strcmp(plugin->key, KIND) != 0)
            continue;
        for (size_t d = 0; d < plugin->device_count; d++) {
            const struct accel_device *device = &plugin->devices[d];

            if (!card_is_usable(device))
                log_info("device '%s' of %s is not offered: it is no whole GPU", device->id,
                         device->slot_name);
            else if (!cards_find(&fresh, device->id, strlen(device->id)))
                cards_add(&fresh, plugin, device, units);
        }
    }
    for (size_t i = 0; i < fresh.count; i++) {
        const struct card *known = cards_find(cards, fresh.items[i].id, strlen(fresh.items[i].id));

        if (known && memcmp(known->units, fresh.items[i].units, sizeof(known->units)) == 0)
            memcpy(fresh.items[i].free, known->free, sizeof(known->free));
    }
    cards_done(cards);
    *cards = fresh;
}
