/* SPDX-License-Identifier: Apache-2.0 */
/* device_id.c - see device_id.h */
#include "k8s/device_id.h"

#include <stdio.h>
#include <string.h>

void device_id_write(const char *card, uint32_t unit, char ret[KUBELET_ID_MAX + 1])
{
    (void)snprintf(ret, KUBELET_ID_MAX + 1, "%.*s_%u", DEVICE_CARD_MAX, card, (unsigned)unit);
}

bool device_id_read(const char *id, size_t *ret_card_len, uint32_t *ret_unit)
{
    const char *last = strrchr(id, '_');
    uint32_t unit = 0;
    size_t digits;

    if (!last || last == id || last - id > DEVICE_CARD_MAX)
        return false;
    digits = strlen(++last);
    if (digits == 0 || digits > 4 || strspn(last, "0123456789") != digits
        || (last[0] == '0' && digits > 1))
        return false;
    for (; *last; last++)
        unit = unit * 10 + (uint32_t)(*last - '0');
    *ret_card_len = strlen(id) - digits - 1;
    *ret_unit = unit;
    return true;
}
