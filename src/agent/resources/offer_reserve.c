/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices that the node keeps for itself: as large a part of their shares is not offered.
 */
#include <errno.h>
#include <string.h>

#include "agent/resources/offer_internal.h"

__extension__ typedef unsigned __int128 wide;

#define KEY "resource.reserved-device-memory"

static int offer_reserve_read_bytes(const char *text, int64_t *ret)
{
    const char *amount = strchr(text, '=');

    return amount && amount[1]
                   && slot_amount_parse(amount + 1, strlen(amount + 1), SLOT_BYTES, false, "mem",
                                        ret, NULL)
                          == 0
                   && *ret > 0
               ? 0
               : -EINVAL;
}

int offer_check_reserved(const struct offer *offer, struct aq_error *err)
{
    for (size_t i = 0; i < offer->reserved.count; i++) {
        const char *text = offer->reserved.items[i];
        int64_t bytes;

        if (!offer_is_device(text) || offer_reserve_read_bytes(text, &bytes) < 0)
            return aq_fail_field(
                err, EINVAL, KEY,
                KEY " '%s': must be KIND/ID=MEMORY, as cuda/GPU-1=2g or cuda/*=512m", text);
    }
    return 0;
}

static int offer_reserve_reject(const char *text, const struct alloc_device *device,
                                const char *why, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, KEY, KEY " '%s': device '%s' of %s %s", text, device->id,
                         device->slot_name, why);
}

static int offer_reserve_device(const char *text, const struct alloc_slot *slot,
                                uint64_t memory_bytes, struct alloc_device *device,
                                struct aq_error *err)
{
    int64_t bytes = 0, quantum = device->quantum ? device->quantum : slot->quantum;

    if (!quantum || memory_bytes == 0) { /* a pattern means those that can */
        if (strpbrk(text, "*?["))
            return 0;
        return offer_reserve_reject(text, device,
                                    quantum ? "does not tell its memory"
                                            : "is given whole; memory of shares can be reserved",
                                    err);
    }
    if (offer_reserve_read_bytes(text, &bytes) < 0 || (uint64_t)bytes >= memory_bytes)
        return offer_reserve_reject(text, device, "has no more memory than that; reserve less",
                                    err);
    device->capacity = (int64_t)((wide)device->capacity * (memory_bytes - (uint64_t)bytes)
                                 / memory_bytes);
    device->capacity -= device->capacity % quantum;
    return device->capacity > 0 ? 0
                                : offer_reserve_reject(text, device,
                                                       "would have less than a quantum left;"
                                                       " reserve less",
                                                       err);
}

int offer_reserve(const struct offer *offer, const struct alloc_slot *slots, size_t slot_count,
                  uint64_t memory_bytes, struct alloc_device *device, struct aq_error *err)
{
    const struct alloc_slot *slot = NULL;

    for (size_t i = 0; i < slot_count && !slot; i++)
        if (strcmp(slots[i].name, device->slot_name) == 0)
            slot = &slots[i];
    for (size_t i = 0; slot && i < offer->reserved.count; i++)
        if (offer_is_meant(offer->reserved.items[i], device))
            return offer_reserve_device(offer->reserved.items[i], slot, memory_bytes, device, err);
    return 0;
}
