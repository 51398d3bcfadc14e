/* SPDX-License-Identifier: Apache-2.0 */
/* device_id.h - the ids that the kubelet counts: "CARD_7" is the seventh unit of a card
 *
 * The same for memory and compute: which it is says the resource.
 */
#ifndef AQ_K8S_DEVICE_ID_H
#define AQ_K8S_DEVICE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define KUBELET_ID_MAX 63     /* longest id that the kubelet takes */
#define DEVICE_UNITS_MAX 9999 /* of a card; their numbers begin with 0 */
#define DEVICE_CARD_MAX (KUBELET_ID_MAX - 5)

/* Text of KUBELET_ID_MAX + 1 bytes, for a card's id of at most DEVICE_CARD_MAX. */
void device_id_write(const char *card, uint32_t unit, char ret[KUBELET_ID_MAX + 1]);

/* False for what device_id_write() does not write. The card's id is the first *ret_card_len bytes.
 */
bool device_id_read(const char *id, size_t *ret_card_len, uint32_t *ret_unit) AQ_UNTRUSTED;

#endif
