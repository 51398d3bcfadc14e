/* SPDX-License-Identifier: Apache-2.0 */
/* volume_layout.c - see volume_layout.h */
#include "transfer/volume_layout.h"

#include <stdio.h>

char *volume_layout_path(const struct uuid *id, char ret[VOLUME_FOLDER_MAX])
{
    char hex[2 * sizeof(id->bytes) + 1];

    for (size_t i = 0; i < sizeof(id->bytes); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
    (void)snprintf(ret, VOLUME_FOLDER_MAX, "%.2s/%.2s/%s", hex, hex + 2, hex + 4);
    return ret;
}
