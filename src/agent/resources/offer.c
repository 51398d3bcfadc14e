/* SPDX-License-Identifier: Apache-2.0 */
/* offer.c - which part of the machine's cores, memory and devices this agent offers */
#include "agent/resources/offer_internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PARTS_MAX 64
#define CORE_MAX 4095

/* ---- settings ---- */

/* A number at *text, which is moved behind it; -1 if there is none. */
static long offer_take_number(const char **text)
{
    char *end;
    long number = **text >= '0' && **text <= '9' ? strtol(*text, &end, 10) : -1;

    if (number >= 0)
        *text = end;
    return number;
}

static int offer_read_part(const char *text, struct offer *offer, struct aq_error *err)
{
    const char *at = text ? text : "";
    long part = offer_take_number(&at), parts = *at == '/' ? (at++, offer_take_number(&at)) : -1;

    if (*at || part < 1 || part > parts || parts > PARTS_MAX)
        return aq_fail_field(err, EINVAL, "resource.part",
                             "resource.part '%s': must be K/N, the K-th of N agents, N up to %d; "
                             "allocation-mode auto-split needs it",
                             text ? text : "", PARTS_MAX);
    offer->part = part - 1;
    offer->parts = parts;
    return 0;
}

static bool offer_read_range(const char *text, long *first, long *last)
{
    *first = offer_take_number(&text);
    *last = *text == '-' ? (text++, offer_take_number(&text)) : *first;
    return *text == '\0' && *first >= 0 && *first <= *last && *last <= CORE_MAX;
}

bool offer_is_device(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && slash != text && slash[1] && slash[1] != '=';
}

static int offer_check_lists(const struct offer *offer, struct aq_error *err)
{
    long first, last;

    for (size_t i = 0; i < offer->cores.count; i++)
        if (!offer_read_range(offer->cores.items[i], &first, &last))
            return aq_fail_field(err, EINVAL, "resource.cores",
                                 "resource.cores '%s': must be a core's number or a range, as 0-3",
                                 offer->cores.items[i]);
    for (size_t i = 0; i < offer->devices.count; i++) {
        const char *text = offer->devices.items[i];

        if (!offer_is_device(text))
            return aq_fail_field(
                err, EINVAL, "resource.devices",
                "resource.devices '%s': must be KIND/ID or SLOT/ID, as cuda/GPU-1, "
                "cuda/* or cuda.shares/GPU-1=0.5",
                text);
    }
    return offer_check_reserved(offer, err);
}

int offer_read(const struct settings *settings, struct offer *ret, struct aq_error *err)
{
    static const char *const names[] = { "exclusive", "shared", "auto-split" };
    struct offer offer = { .part = 0,
                           .parts = 1,
                           .cores = settings->offer_cores,
                           .devices = settings->offer_devices,
                           .reserved = settings->offer_reserved };
    size_t mode = 0;
    int r = 0;

    while (mode < AQ_COUNT(names) && strcmp(names[mode], settings->offer_mode) != 0)
        mode++;
    if (mode == AQ_COUNT(names))
        return aq_fail_field(
            err, EINVAL, "resource.allocation-mode",
            "resource.allocation-mode '%s' is none of exclusive, shared, auto-split",
            settings->offer_mode);
    offer.mode = (enum offer_mode)mode;
    if (offer.mode == OFFER_AUTO)
        r = offer_read_part(settings->offer_part, &offer, err);
    else if (settings->offer_part)
        r = aq_fail_field(err, EINVAL, "resource.part",
                          "resource.part is for allocation-mode auto-split only");
    if (r == 0)
        r = offer_check_lists(&offer, err);
    if (r == 0)
        *ret = offer;
    return r;
}

bool offer_has_core(const struct offer *offer, int core)
{
    for (size_t i = 0; i < offer->cores.count; i++) {
        long first, last;

        if (offer_read_range(offer->cores.items[i], &first, &last) && core >= first && core <= last)
            return true;
    }
    return offer->cores.count == 0;
}

/* ---- chosen devices ---- */

bool offer_is_meant(const char *text, const struct alloc_device *device)
{
    const char *slash = strchr(text, '/'), *amount = strchr(slash, '=');
    size_t len = (size_t)(slash - text), name_len = strlen(device->slot_name);
    AQ_CLEANUP(aq_freep) char *pattern = aq_strndup(slash + 1, amount ? (size_t)(amount - slash - 1)
                                                                      : strlen(slash + 1));

    return strncmp(device->slot_name, text, AQ_MIN(len, name_len)) == 0
           && (len == name_len || len == slot_name_device_len(device->slot_name))
           && fnmatch(pattern, device->id, 0) == 0;
}

/* The smallest part of the device; 0 = it is given whole, or in bytes. */
static int64_t offer_quantum_of(const struct alloc_slot *slot, const struct alloc_device *device)
{
    return device->quantum ? device->quantum : slot->quantum;
}

static int offer_set_amount(const char *text, const struct alloc_slot *slot,
                            struct alloc_device *device, struct aq_error *err)
{
    const char *amount = strchr(strchr(text, '/'), '=');
    int64_t wanted, quantum = offer_quantum_of(slot, device);

    if (!amount)
        return 0;
    if (slot_amount_parse(amount + 1, strlen(amount + 1), slot->type, false, slot->name, &wanted,
                          NULL)
            < 0
        || wanted <= 0 || wanted > device->capacity || wanted % (quantum ? quantum : 1)
        || slot->type == SLOT_UNIQUE
        || (slot->type == SLOT_COUNT && !quantum && wanted % AMOUNT_ONE))
        return aq_fail_field(err, EINVAL, "resource.devices",
                             "resource.devices '%s': device '%s' cannot be had in that amount; "
                             "give a part of it that its quantum divides",
                             text, device->id);
    device->capacity = wanted;
    return 0;
}

static int offer_choose(const struct offer *offer, const struct alloc_slot *slot,
                        struct alloc_device *device, struct aq_error *err)
{
    if (offer->devices.count == 0 || !strchr(device->slot_name, '.'))
        return 0;
    for (size_t i = 0; i < offer->devices.count; i++)
        if (offer_is_meant(offer->devices.items[i], device))
            return offer_set_amount(offer->devices.items[i], slot, device, err);
    device->capacity = 0;
    return 0;
}

/* ---- equal parts ---- */

/* How many of 'count' are ours: the first agents get one more. */
static int64_t offer_ours_of(const struct offer *offer, int64_t count)
{
    return count / offer->parts + (offer->part < count % offer->parts);
}

/* The first of them. */
static int64_t offer_first_of(const struct offer *offer, int64_t count)
{
    return offer->part * (count / offer->parts) + AQ_MIN(offer->part, count % offer->parts);
}

static void offer_divide(const struct offer *offer, const struct alloc_slot *slot, int64_t index,
                         int64_t count, int64_t align, struct alloc_device *device)
{
    int64_t first = offer_first_of(offer, count);

    if (slot->type == SLOT_UNIFIED)
        return;
    if (slot->type == SLOT_BYTES) {
        device->capacity /= offer->parts;
        device->capacity -= device->capacity > align ? device->capacity % align : 0;
    } else if (slot->quantum) {
        int64_t quantum = offer_quantum_of(slot, device);

        device->capacity = offer_ours_of(offer, device->capacity / quantum) * quantum;
    } else if (index < first || index >= first + offer_ours_of(offer, count)) {
        device->capacity = 0;
    }
}

static void offer_divide_slot(const struct offer *offer, const struct alloc_slot *slot,
                              int64_t align, struct alloc_device *devices, size_t count)
{
    int64_t all = 0, index = 0;

    for (size_t i = 0; i < count; i++)
        all += strcmp(devices[i].slot_name, slot->name) == 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(devices[i].slot_name, slot->name) == 0)
            offer_divide(offer, slot, index++, all, align, &devices[i]);
}

int offer_apply(const struct offer *offer, const struct alloc_slot *slots, size_t slot_count,
                int64_t align, struct alloc_device *devices, size_t device_count,
                struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < slot_count; i++) {
        for (size_t k = 0; r == 0 && k < device_count; k++)
            if (strcmp(devices[k].slot_name, slots[i].name) == 0)
                r = offer_choose(offer, &slots[i], &devices[k], err);
        if (r == 0 && offer->parts > 1)
            offer_divide_slot(offer, &slots[i], align, devices, device_count);
    }
    return r;
}
