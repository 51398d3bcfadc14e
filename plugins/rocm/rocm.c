/* AMD GPUs: whole by default, as ROCm has no means to hold a program to a share. */
#include "rocm/rocm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/conf_file.h"
#include "common/sysfile.h"

static const struct conf_item items[] = {
    SHARING_ITEMS(struct rocm, sharing, "discrete", "0", "0"),
    CONF_TABLE_END,
};

static int rocm_open(const struct aq_accelerator_host *host, const struct aq_accelerator_out *out,
                     void **ret)
{
    struct rocm *rocm = calloc(1, sizeof(*rocm));
    struct aq_error err = { 0 };
    int r = rocm ? conf_file_read(host, items, rocm, out) : -ENOMEM;

    if (r == 0 && sharing_check(&rocm->sharing, &err) < 0) {
        r = conf_file_refuse(host, &err, out);
        conf_done(items, rocm);
    }
    if (r < 0) {
        free(rocm);
        return r;
    }
    rocm->host = host;
    *ret = rocm;
    return 0;
}

static void rocm_close(void *self)
{
    conf_done(items, self);
    free(self);
}

/* ---- description ---- */

static void tell_slot(const struct rocm *rocm, bool is_shared, const struct aq_accelerator_out *out)
{
    out->slot(out->data, &(struct aq_accelerator_slot){
                             .name = is_shared ? "rocm.shares" : "rocm.device",
                             .type = AQ_ACCELERATOR_COUNT,
                             .quantum = is_shared ? rocm->sharing.quantum_micro : 0,
                             .round_length = is_shared ? 2 : 0,
                             .exclusive = "rocm",
                             .human_name = is_shared ? "Fractional ROCm GPU" : "ROCm GPU",
                             .description = "AMD GPU",
                             .display_unit = is_shared ? "fGPU" : "GPU",
                             .display_icon = "gpu2",
                         });
}

static void tell_device(const struct rocm_device *d, const struct aq_accelerator_out *out)
{
    out->device(out->data, &(struct aq_accelerator_device){
                               .id = d->id,
                               .slot = d->is_shared ? "rocm.shares" : "rocm.device",
                               .amount = d->amount,
                               .quantum = d->quantum,
                               .model = d->model,
                               .location = d->location,
                               .memory_bytes = d->memory_bytes,
                               .processors = d->processors,
                               .numa_node = d->numa_node,
                               .status = d->trouble ? AQ_ACCELERATOR_OFFLINE : AQ_ACCELERATOR_HEALTHY,
                               .status_text = d->trouble,
                           });
}

static int describe(void *self, const struct aq_accelerator_out *out)
{
    const struct rocm *rocm = self;
    struct rocm_device *devices = NULL;
    size_t count = 0, shared = 0;
    char version[64];
    bool has_version = sysfile_line(rocm->host->root, "/sys/module/amdgpu/version", version,
                                    sizeof(version));
    int r = rocm_find(rocm, &devices, &count);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        shared += devices[i].is_shared;
    out->identity(out->data, &(struct aq_accelerator_identity){
                                 .key = "rocm",
                                 .name = "AMD GPU",
                                 .version = has_version ? version : NULL,
                                 .status = count ? AQ_ACCELERATOR_HEALTHY : AQ_ACCELERATOR_UNAVAILABLE,
                                 .status_text = count ? NULL : "KFD shows no GPU",
                             });
    out->info(out->data, "rocm_support", count ? "true" : "false");
    if (shared)
        tell_slot(rocm, true, out);
    if (shared < count)
        tell_slot(rocm, false, out);
    for (size_t i = 0; i < count; i++)
        tell_device(&devices[i], out);
    free(devices);
    return 0;
}

/* ---- containers ---- */

static void tell_node(const char *path, const struct aq_accelerator_out *out)
{
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = AQ_ACCELERATOR_NODE,
                             .flags = AQ_ACCELERATOR_READ | AQ_ACCELERATOR_WRITE,
                             .name = path });
}

static int attach_one(const struct rocm *rocm, const struct rocm_device *devices, size_t count,
                      const struct aq_accelerator_grant *grant, struct sharing_part *part,
                      const struct aq_accelerator_out *out)
{
    const struct rocm_device *d = NULL;
    char path[64];

    for (size_t i = 0; i < count && !d; i++)
        d = strcmp(devices[i].id, grant->device) == 0 ? &devices[i] : NULL;
    if (!d) {
        out->error(out->data, "a device is gone");
        return -ENODEV;
    }
    (void)snprintf(path, sizeof(path), "/dev/dri/renderD%" PRId64, d->minor);
    tell_node(path, out);
    *part = (struct sharing_part){ .device = grant->device, .memory_bytes = d->memory_bytes,
                                   .processors = d->processors,
                                   .is_fractional = strcmp(grant->slot, "rocm.shares") == 0 };
    if (part->is_fractional) {
        part->memory_bytes = sharing_memory(&rocm->sharing, d->memory_bytes, d->processors,
                                            grant->amount);
        part->processors = sharing_processors(&rocm->sharing, d->memory_bytes, d->processors,
                                              grant->amount);
    }
    out->part(out->data, &(struct aq_accelerator_part){ .device = d->id, .model = d->model,
                                                        .memory_bytes = part->memory_bytes,
                                                        .processors = part->processors });
    return 0;
}

static int attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                  const struct aq_accelerator_out *out)
{
    const struct rocm *rocm = self;
    AQ_CLEANUP(aq_freep) struct sharing_part *parts = calloc(count + 1, sizeof(*parts));
    struct rocm_device *devices = NULL;
    size_t device_count = 0;
    int r = parts ? rocm_find(rocm, &devices, &device_count) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = attach_one(rocm, devices, device_count, &grants[i], &parts[i], out);
    if (r == 0) {
        tell_node("/dev/kfd", out);
        r = sharing_write_resource(&rocm->sharing, "rocm", parts, count, out);
    }
    free(devices);
    return r;
}

AQ_ACCELERATOR_EXPORT extern const struct aq_accelerator aq_accelerator;
const struct aq_accelerator aq_accelerator = {
    .abi = AQ_ACCELERATOR_ABI,
    .size = sizeof(struct aq_accelerator),
    .name = "rocm",
    .open = rocm_open,
    .close = rocm_close,
    .describe = describe,
    .attach = attach,
    .measure = rocm_measure,
};
