/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - which devices may be offered, as their health_file says */
#include "generic/plugin.h"

#include <stdio.h>
#include <string.h>

uint32_t generic_check_health(const struct generic *g, const struct generic_device *device,
                              char *text, size_t size)
{
    if (!g->health_file)
        return AQ_ACCELERATOR_HEALTHY;
    if (!generic_read_line(g, g->health_file, device, text, size)) {
        (void)snprintf(text, size, "its health cannot be read");
        return AQ_ACCELERATOR_OFFLINE;
    }
    for (size_t i = 0; i < g->healthy.count; i++)
        if (strcmp(text, g->healthy.items[i]) == 0)
            return AQ_ACCELERATOR_HEALTHY;
    return g->healthy.count ? AQ_ACCELERATOR_OFFLINE : AQ_ACCELERATOR_HEALTHY;
}
