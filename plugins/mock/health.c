/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - the status that the file gives a device */
#include "mock/plugin.h"

#include <string.h>

uint32_t mock_check_health(const struct mock_device *device)
{
    static const char *const names[] = { "healthy", "degraded", "offline", "unavailable" };

    for (uint32_t i = 0; i < AQ_COUNT(names); i++)
        if (strcmp(device->status, names[i]) == 0)
            return i;
    return AQ_ACCELERATOR_OFFLINE;
}
