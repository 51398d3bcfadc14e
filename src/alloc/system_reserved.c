/* SPDX-License-Identifier: Apache-2.0 */
/* system_reserved.c - what a node keeps for itself */
#include "alloc/system_reserved.h"

#include <errno.h>
#include <string.h>

static bool system_reserved_reserve_is_of(const struct alloc_device *d, const char *slot_name)
{
    return strcmp(d->slot_name, slot_name) == 0;
}

/* What is left in all if 'amount' is taken from the last devices. With 'write'
 * the capacities change.
 */
static int64_t system_reserved_reserve_take_from_end(struct alloc_device *devices, size_t count,
                                                     const char *slot_name, int64_t amount,
                                                     int64_t align, bool write)
{
    int64_t left = 0;

    for (size_t i = count; i-- > 0;) {
        int64_t capacity = devices[i].capacity, part;

        if (!system_reserved_reserve_is_of(&devices[i], slot_name))
            continue;
        part = AQ_MIN(amount, capacity);
        amount -= part;
        capacity -= part;
        capacity -= align > 1 ? capacity % align : 0;
        left += capacity;
        if (write)
            devices[i].capacity = capacity;
    }
    return amount > 0 ? 0 : left;
}

int alloc_reserve(struct alloc_device *devices, size_t *device_count, const char *slot_name,
                  int64_t amount, int64_t align, struct aq_error *err)
{
    size_t kept = 0;

    if (amount < 0
        || system_reserved_reserve_take_from_end(devices, *device_count, slot_name, amount, align,
                                                 false)
               <= 0)
        return aq_fail_field(err, EINVAL, slot_name,
                             "%s: what is to be reserved leaves nothing; reserve less", slot_name);
    (void)system_reserved_reserve_take_from_end(devices, *device_count, slot_name, amount, align,
                                                true);
    for (size_t i = 0; i < *device_count; i++)
        if (devices[i].capacity > 0 || !system_reserved_reserve_is_of(&devices[i], slot_name))
            devices[kept++] = devices[i];
    *device_count = kept;
    return 0;
}
