/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.c - the devices of KFD's topology */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "common/sysfile.h"
#include "rocm/plugin.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define SIMDS_PER_CU 4

char *rocm_path(const struct rocm_device *device, const char *rest)
{
    return aq_format("/sys/class/drm/renderD%" PRId64 "/device/%s", device->minor, rest);
}

static int64_t rocm_read_number(const char *root, const struct rocm_device *device,
                                const char *rest, int64_t otherwise)
{
    AQ_CLEANUP(aq_freep) char *path = rocm_path(device, rest);

    return sysfile_number(root, path, otherwise);
}

static bool rocm_read_line(const char *root, const struct rocm_device *device, const char *rest,
                           char *buf, size_t size)
{
    AQ_CLEANUP(aq_freep) char *path = rocm_path(device, rest);

    return sysfile_line(root, path, buf, size) && buf[0];
}

/* "0000:c3:00.0" of location_id and domain. */
static void rocm_format_location(const char *root, const char *properties,
                                 struct rocm_device *device)
{
    int64_t id = sysfile_property(root, properties, "location_id", 0);
    int64_t domain = sysfile_property(root, properties, "domain", 0);

    (void)snprintf(device->location, sizeof(device->location), "%04x:%02x:%02x.%x",
                   (unsigned)domain & 0xffff, (unsigned)(id >> 8) & 0xff,
                   (unsigned)(id >> 3) & 0x1f, (unsigned)id & 7);
}

static void rocm_read_device(const char *root, const char *properties, struct rocm_device *device)
{
    char text[128];

    device->minor = sysfile_property(root, properties, "drm_render_minor", -1);
    device->processors = (uint32_t)(sysfile_property(root, properties, "simd_count", 0)
                                    / SIMDS_PER_CU);
    device->memory_bytes = (uint64_t)rocm_read_number(root, device, "mem_info_vram_total", 0);
    device->numa_node = (int32_t)rocm_read_number(root, device, "numa_node", -1);
    rocm_format_location(root, properties, device);
    if (rocm_read_line(root, device, "unique_id", text, sizeof(text)))
        (void)snprintf(device->id, sizeof(device->id), "%.32s", text);
    else
        (void)snprintf(device->id, sizeof(device->id), "%s", device->location);
    for (char *c = device->id; *c; c++) /* ids have no ':' */
        *c = *c == ':' ? '-' : *c;
    if (!rocm_read_line(root, device, "product_name", device->model, sizeof(device->model)))
        (void)snprintf(device->model, sizeof(device->model), "AMD GPU %04x",
                       (unsigned)sysfile_property(root, properties, "device_id", 0) & 0xffff);
    device->trouble = rocm_check_health(root, device);
}

struct rocm_device *rocm_discover(const struct rocm *rocm, size_t *ret_count)
{
    const char *root = rocm->host->root;
    struct rocm_device *devices = aq_alloc_array(ROCM_DEVICES_MAX, sizeof(*devices));
    size_t count = 0;

    for (int i = 0; count < ROCM_DEVICES_MAX; i++) {
        struct rocm_device *device = &devices[count];
        char directory[96], properties[120];

        (void)snprintf(directory, sizeof(directory), "%s/%d", NODES, i);
        (void)snprintf(properties, sizeof(properties), "%s/properties", directory);
        if (!sysfile_exists(root, directory))
            break;
        /* nodes without compute units are processors of the machine */
        if (sysfile_property(root, properties, "simd_count", 0) <= 0)
            continue;
        memset(device, 0, sizeof(*device));
        rocm_read_device(root, properties, device);
        device->is_shared = sharing_is_fractional(&rocm->sharing, device->id);
        device->quantum = device->is_shared ? sharing_own_quantum(&rocm->sharing, device->id) : 0;
        device->amount = device->is_shared ? sharing_count(&rocm->sharing, device->memory_bytes,
                                                           device->processors)
                                           : SHARING_ONE;
        count += !sharing_is_masked(&rocm->sharing, device->id);
    }
    *ret_count = count;
    return devices;
}
