/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of the kubelet: what is read is exactly what is written. */
#include <stdlib.h>
#include <string.h>

#include "k8s/device_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *id = strndup((const char *)data, size), *card, again[KUBELET_ID_MAX + 1];
    uint32_t unit;
    size_t len;

    if (device_id_read(id, &len, &unit)) {
        card = strndup(id, len);
        device_id_write(card, unit, again);
        if (unit > DEVICE_UNITS_MAX || strcmp(again, id) != 0)
            __builtin_trap();
        free(card);
    }
    free(id);
    return 0;
}
