/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - what a container gets of mock devices: variables, simgpu's driver if there is one */
#include "mock/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"

#define INSIDE "/usr/local/nvidia/lib64" /* as of the cuda plugin */

static void mock_set_variable(const struct aq_accelerator_out *out, const char *name,
                              const char *value)
{
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = AQ_ACCELERATOR_ENVIRON, .name = name, .value = value });
}

static void mock_tell_environ(const struct sharing_part *parts, size_t count,
                              const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf ids = STRBUF_INIT;
    char text[24];

    for (size_t i = 0; i < count; i++)
        strbuf_addf(&ids, "%s%s", i ? "," : "", parts[i].device);
    (void)snprintf(text, sizeof(text), "%d", SHARING_PROCESSORS_MIN);
    mock_set_variable(out, "TF_MIN_GPU_MULTIPROCESSOR_COUNT", text);
    mock_set_variable(out, "BACKENDAI_MOCK_CUDA_DEVICES", ids.data);
    (void)snprintf(text, sizeof(text), "%zu", count);
    mock_set_variable(out, "BACKENDAI_MOCK_CUDA_DEVICE_COUNT", text);
}

static int mock_take_part(const struct mock *mock, const struct aq_accelerator_grant *grant,
                          struct sharing_part *part, const struct aq_accelerator_out *out)
{
    const struct mock_device *device = mock_find(mock, grant->device);
    char text[120];

    if (!device) {
        (void)snprintf(text, sizeof(text), "device '%.64s' is gone", grant->device);
        out->error(out->data, text);
        return -ENODEV;
    }
    *part = (struct sharing_part){ .device = device->id,
                                   .memory_bytes = (uint64_t)device->memory_bytes,
                                   .processors = (uint32_t)device->processors,
                                   .is_fractional = strstr(grant->slot, ".share") != NULL };
    if (part->is_fractional) {
        part->memory_bytes = sharing_memory(&mock->sharing, part->memory_bytes, part->processors,
                                            grant->amount);
        part->processors = sharing_processors(&mock->sharing, (uint64_t)device->memory_bytes,
                                              (uint32_t)device->processors, grant->amount);
        if (mock->simulator)
            part->time = sharing_time(&mock->sharing, (uint64_t)device->memory_bytes,
                                      (uint32_t)device->processors, grant->amount);
    }
    out->part(out->data, &(struct aq_accelerator_part){ .device = device->id,
                                                        .model = device->model,
                                                        .memory_bytes = part->memory_bytes,
                                                        .processors = part->processors,
                                                        .time = part->time });
    return 0;
}

static int mock_mount_library(const struct mock *mock, const char *name,
                              const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(aq_freep) char *link = aq_format("%s/%s", mock->simulator, name);
    AQ_CLEANUP(aq_freep) char *source = realpath(link, NULL);
    AQ_CLEANUP(aq_freep) char *target = aq_format(INSIDE "/%s", name);

    if (!source) {
        out->error(out->data, "simulator: there is no libcuda.so.1 and libnvidia-ml.so.1 in it");
        return -ENOENT;
    }
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = AQ_ACCELERATOR_MOUNT, .name = source, .value = target });
    return 0;
}

/* The simulated driver and its card, where a real one would be. */
static int mock_tell_simulator(const struct mock *mock, const struct aq_accelerator_out *out)
{
    int r = mock_mount_library(mock, "libcuda.so.1", out);

    if (r == 0)
        r = mock_mount_library(mock, "libnvidia-ml.so.1", out);
    if (r < 0)
        return r;
    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_MOUNT,
                                                        .name = mock->card,
                                                        .value = "/run/simgpu/device",
                                                        .flags = AQ_ACCELERATOR_WRITE });
    mock_set_variable(out, "LD_LIBRARY_PATH", "/usr/local/nvidia/lib:" INSIDE);
    return 0;
}

int mock_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out)
{
    const struct mock *mock = self;
    AQ_CLEANUP(aq_freep) struct sharing_part *parts = aq_alloc_array(count + 1, sizeof(*parts));
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = mock_take_part(mock, &grants[i], &parts[i], out);
    if (r < 0)
        return r;
    sharing_write_resource(&mock->sharing, mock->key, parts, count, out);
    if (mock_is_cuda(mock))
        mock_tell_environ(parts, count, out);
    return mock->simulator ? mock_tell_simulator(mock, out) : 0;
}
