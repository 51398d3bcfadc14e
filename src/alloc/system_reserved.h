/* SPDX-License-Identifier: Apache-2.0 */
/* system_reserved.h - what a node keeps for itself
 *
 * Reserved amounts are taken out of the devices before the map is built, so
 * that no kernel can be given them.
 */
#ifndef AQ_ALLOC_SYSTEM_RESERVED_H
#define AQ_ALLOC_SYSTEM_RESERVED_H

#include "alloc/alloc_map.h"

/* Take 'amount' of the slot out of the devices, from the last declared
 * backwards; then round what is left of each down to a multiple of 'align'
 * (0 or 1 = as it is). Devices with nothing left are dropped from the array.
 * -EINVAL with the slot as field, nothing changed, if nothing would be left.
 */
int alloc_reserve(struct alloc_device *devices, size_t *device_count, const char *slot_name,
                  int64_t amount, int64_t align, struct aq_error *err);

#endif
