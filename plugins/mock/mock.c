/* Devices that do not exist: everything but their work is real. */
#include "mock/mock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#define INSIDE "/usr/local/nvidia/lib64" /* as of the cuda plugin */

static bool is_cuda(const struct mock *mock)
{
    return strcmp(mock->key, "cuda") == 0;
}

/* ---- description ---- */

static const struct mock_format *find_format(const struct mock *mock, const char *slot)
{
    const struct mock_format *formats = mock->formats.items;
    const char *tail = strpbrk(slot, ":");

    tail = tail ? tail + 1 : strchr(slot, '.') + 1;
    for (size_t i = 0; i < mock->formats.count; i++)
        if (strcmp(formats[i].slot, tail) == 0)
            return &formats[i];
    return NULL;
}

static void tell_slot(const struct mock *mock, const char *name, bool is_unique, bool is_shared,
                      const struct aq_accelerator_out *out)
{
    const struct mock_format *format = find_format(mock, name);
    struct aq_accelerator_slot slot = {
        .name = name,
        .type = is_unique ? AQ_ACCELERATOR_UNIQUE : AQ_ACCELERATOR_COUNT,
        .quantum = is_shared ? mock->sharing.quantum_micro : 0,
        .exclusive = mock->key,
        .round_length = is_shared ? 2 : 0,
        .human_name = is_shared ? "Fractional GPU" : is_unique ? "MIG slice" : "GPU",
        .description = "Mocked accelerator",
        .display_unit = is_shared ? "fGPU" : "GPU",
        .display_icon = "gpu1",
    };

    if (format) {
        slot.human_name = format->human_name ? format->human_name : slot.human_name;
        slot.description = format->description ? format->description : slot.description;
        slot.display_unit = format->display_unit ? format->display_unit : slot.display_unit;
        slot.display_icon = format->display_icon ? format->display_icon : slot.display_icon;
        slot.round_length = (uint32_t)format->round_length;
    }
    out->slot(out->data, &slot);
}

/* Each slot once, as it first appears. */
static void tell_slots(const struct mock *mock, const struct aq_accelerator_out *out)
{
    const struct mock_device *devices = mock->devices.items;

    for (size_t i = 0; i < mock->devices.count; i++) {
        bool is_known = false;

        for (size_t k = 0; !is_known && k < i; k++)
            is_known = strcmp(devices[k].slot, devices[i].slot) == 0;
        if (!is_known)
            tell_slot(mock, devices[i].slot, devices[i].is_mig,
                      !devices[i].is_mig && strstr(devices[i].slot, ".shares"), out);
    }
}

static uint32_t status_of(const struct mock_device *device)
{
    static const char *const names[] = { "healthy", "degraded", "offline", "unavailable" };

    for (uint32_t i = 0; i < AQ_COUNT(names); i++)
        if (strcmp(device->status, names[i]) == 0)
            return i;
    return AQ_ACCELERATOR_OFFLINE;
}

static void tell_identity(const struct mock *mock, const struct aq_accelerator_out *out)
{
    const struct conf_pair *pairs = mock->attributes.items;
    const char *version = NULL;
    char support[32], text[24];

    for (size_t i = 0; i < mock->attributes.count; i++)
        if (strcmp(pairs[i].name, "nvidia_driver") == 0)
            version = pairs[i].value;
    if (!version && is_cuda(mock))
        version = "450.00.00";
    out->identity(out->data, &(struct aq_accelerator_identity){
                                 .key = mock->key,
                                 .name = "Mocked accelerators",
                                 .version = version,
                             });
    (void)snprintf(support, sizeof(support), "%.16s_support", mock->key);
    out->info(out->data, support, "true");
    if (mock->simulator) {
        AQ_CLEANUP(aq_freep) char *library = aq_format("%s/libnvidia-ml.so.1", mock->simulator);

        if (library)
            out->info(out->data, "nvml_library", library);
        out->info(out->data, "simulated_card", mock->card);
        /* whoever holds a slice hears of it when this changes */
        (void)snprintf(text, sizeof(text), "%" PRId64, mock->sharing.unit_mem);
        out->info(out->data, "unit_mem", text);
        (void)snprintf(text, sizeof(text), "%" PRId64, mock->sharing.unit_proc);
        out->info(out->data, "unit_proc", text);
    }
    for (size_t i = 0; i < mock->attributes.count; i++)
        out->info(out->data, pairs[i].name, pairs[i].value);
}

static int describe(void *self, const struct aq_accelerator_out *out)
{
    struct mock *mock = self;
    const struct mock_device *devices;
    int r = mock_refresh(mock, out);

    if (r < 0)
        return r;
    devices = mock->devices.items;
    tell_identity(mock, out);
    tell_slots(mock, out);
    for (size_t i = 0; i < mock->devices.count; i++) {
        const struct mock_device *d = &devices[i];

        if (sharing_is_masked(&mock->sharing, d->id))
            continue;
        out->device(out->data, &(struct aq_accelerator_device){
                                   .id = d->id,
                                   .slot = d->slot,
                                   .amount = d->amount,
                                   .quantum = d->quantum,
                                   .model = d->model,
                                   .location = d->location,
                                   .memory_bytes = (uint64_t)d->memory_bytes,
                                   .processors = (uint32_t)d->processors,
                                   .numa_node = (int32_t)d->numa_node,
                                   .parent = d->is_mig ? d->uuid : NULL,
                                   .status = status_of(d),
                                   .status_text = d->status_text,
                               });
    }
    return 0;
}

/* ---- containers ---- */

static void set_variable(const struct aq_accelerator_out *out, const char *name, const char *value)
{
    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_ENVIRON,
                                                        .name = name, .value = value });
}

static int tell_environ(const struct sharing_part *parts, size_t count,
                        const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf ids = STRBUF_INIT;
    char text[24];

    for (size_t i = 0; i < count; i++)
        strbuf_addf(&ids, "%s%s", i ? "," : "", parts[i].device);
    if (!strbuf_ok(&ids))
        return -ENOMEM;
    (void)snprintf(text, sizeof(text), "%d", SHARING_PROCESSORS_MIN);
    set_variable(out, "TF_MIN_GPU_MULTIPROCESSOR_COUNT", text);
    set_variable(out, "BACKENDAI_MOCK_CUDA_DEVICES", ids.data);
    (void)snprintf(text, sizeof(text), "%zu", count);
    set_variable(out, "BACKENDAI_MOCK_CUDA_DEVICE_COUNT", text);
    return 0;
}

static int take_part(const struct mock *mock, const struct aq_accelerator_grant *grant,
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

static int mount_library(const struct mock *mock, const char *name,
                         const struct aq_accelerator_out *out)
{
    AQ_CLEANUP(aq_freep) char *link = aq_format("%s/%s", mock->simulator, name);
    AQ_CLEANUP(aq_freep) char *source = link ? realpath(link, NULL) : NULL;
    AQ_CLEANUP(aq_freep) char *target = aq_format(INSIDE "/%s", name);

    if (!source || !target) {
        out->error(out->data, "simulator: there is no libcuda.so.1 and libnvidia-ml.so.1 in it");
        return -ENOENT;
    }
    out->need(out->data, &(struct aq_accelerator_need){ .kind = AQ_ACCELERATOR_MOUNT,
                                                        .name = source, .value = target });
    return 0;
}

/* The simulated driver and its card, where a real one would be. */
static int tell_simulator(const struct mock *mock, const struct aq_accelerator_out *out)
{
    int r = mount_library(mock, "libcuda.so.1", out);

    if (r == 0)
        r = mount_library(mock, "libnvidia-ml.so.1", out);
    if (r < 0)
        return r;
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = AQ_ACCELERATOR_MOUNT, .name = mock->card,
                             .value = "/run/simgpu/device", .flags = AQ_ACCELERATOR_WRITE });
    set_variable(out, "LD_LIBRARY_PATH", "/usr/local/nvidia/lib:" INSIDE);
    return 0;
}

static int attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                  const struct aq_accelerator_out *out)
{
    const struct mock *mock = self;
    AQ_CLEANUP(aq_freep) struct sharing_part *parts = calloc(count + 1, sizeof(*parts));
    int r = parts ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = take_part(mock, &grants[i], &parts[i], out);
    if (r == 0)
        r = sharing_write_resource(&mock->sharing, mock->key, parts, count, out);
    if (r == 0 && is_cuda(mock))
        r = tell_environ(parts, count, out);
    if (r == 0 && mock->simulator)
        r = tell_simulator(mock, out);
    return r;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "mock",
    .open = mock_open,
    .close = mock_close,
    .describe = describe,
    .attach = attach,
    .measure = mock_measure,
};
