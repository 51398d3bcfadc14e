/* SPDX-License-Identifier: Apache-2.0 */
/* What a node offers and what its kernels hold, as a claim against other agents. */
#include <stdlib.h>
#include <string.h>

#include "agent/resources/resources.h"
#include "base/memory.h"

static bool resources_claim_is_stray(const struct alloc_device_state *device)
{
    return device->allocated > 0 && !device->known;
}

bool resources_has_strays(const struct resources *res)
{
    struct alloc_device_state device;

    for (size_t i = 0; alloc_map_device(res->map, i, &device); i++)
        if (resources_claim_is_stray(&device))
            return true;
    return false;
}

static size_t resources_claim_count_devices(const struct resources *res)
{
    struct alloc_device_state device;
    size_t count = 0;

    while (alloc_map_device(res->map, count, &device))
        count++;
    return count;
}

/* Memory beyond the machine's is nowhere, as such cores are. */
static void resources_claim_add_claim(const struct resources *res, const struct settings *settings,
                                      const struct alloc_device_state *device, struct claim *claim,
                                      int *cores, struct claim_device *devices)
{
    int64_t amount = AQ_MAX(device->capacity, device->allocated);

    if (strcmp(device->slot_name, "cpu") == 0) {
        if (res->has_real_cores && amount > 0)
            cores[claim->core_count++] = atoi(device->id);
    } else if (strcmp(device->slot_name, "mem") == 0) {
        claim->memory_bytes += amount / settings->memory_factor;
    } else if (resources_claim_is_stray(device)) {
        devices[claim->device_count++] = (struct claim_device){
            .slot_name = device->slot_name, .id = device->id, .amount = amount, .whole = amount
        };
    }
}

int resources_claim(const struct resources *res, const struct settings *settings,
                    struct claims *claims, bool add, struct aq_error *err)
{
    size_t count = resources_claim_count_devices(res);
    AQ_CLEANUP(aq_freep) int *cores = aq_alloc_array(count + 1, sizeof(*cores));
    AQ_CLEANUP(aq_freep) struct claim_device *devices = aq_alloc_array(
        count + res->device_count + 1, sizeof(*devices));
    struct claim claim = { .is_shared = res->is_shared,
                           .cores = cores,
                           .devices = devices,
                           .machine_bytes = resources_host_memory() };
    struct alloc_device_state device;

    if (res->device_count)
        memcpy(devices, res->devices, res->device_count * sizeof(*devices));
    claim.device_count = res->device_count;
    for (size_t i = 0; alloc_map_device(res->map, i, &device); i++)
        resources_claim_add_claim(res, settings, &device, &claim, cores, devices);
    return claims_set(claims, &claim, add, err);
}
