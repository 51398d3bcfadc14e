/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - what a container needs of NVIDIA's driver: device files, libraries, tools
 *
 * As CDI does it, but computed here and without a vendor's hook: libraries are
 * mounted under the names that programs load, in the directory that images made
 * for NVIDIA GPUs search.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "common/sysfile.h"
#include "cuda/plugin.h"

#define INSIDE "/usr/local/nvidia/lib64"
#define READ_WRITE (AQ_ACCELERATOR_READ | AQ_ACCELERATOR_WRITE)

/* Files named "NAME.VERSION" belong to the driver; "soname" is what is loaded. */
static const struct {
    const char *name, *soname;
} libraries[] = {
    { "libcuda.so", "libcuda.so.1" },
    { "libnvidia-ml.so", "libnvidia-ml.so.1" },
    { "libnvidia-ptxjitcompiler.so", "libnvidia-ptxjitcompiler.so.1" },
    { "libnvidia-nvvm.so", "libnvidia-nvvm.so.4" },
    { "libnvidia-nvvm70.so", "libnvidia-nvvm70.so.4" },
    { "libcudadebugger.so", "libcudadebugger.so.1" },
    { "libnvidia-opencl.so", "libnvidia-opencl.so.1" },
    { "libnvidia-cfg.so", "libnvidia-cfg.so.1" },
    { "libnvidia-allocator.so", "libnvidia-allocator.so.1" },
    { "libnvidia-gpucomp.so", NULL }, /* loaded under its full name */
    { "libnvidia-pkcs11.so", NULL },
    { "libnvidia-pkcs11-openssl3.so", NULL },
    { "libnvcuvid.so", "libnvcuvid.so.1" },
    { "libnvidia-encode.so", "libnvidia-encode.so.1" },
};

static const char *const tools[] = { "/usr/bin/nvidia-smi", "/usr/bin/nvidia-debugdump",
                                     "/usr/bin/nvidia-cuda-mps-control",
                                     "/usr/bin/nvidia-cuda-mps-server" };

static const char *const control_nodes[] = { "/dev/nvidiactl", "/dev/nvidia-uvm",
                                             "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset" };

static void cuda_tell_need(const struct aq_accelerator_out *out, uint32_t kind, uint32_t flags,
                           const char *name, const char *value)
{
    out->need(out->data, &(struct aq_accelerator_need){
                             .kind = kind, .flags = flags, .name = name, .value = value });
}

static void cuda_mount_library(const struct cuda *cuda, size_t i,
                               const struct aq_accelerator_out *out)
{
    for (size_t k = 0; k < cuda->folders.count; k++) {
        AQ_CLEANUP(aq_freep) char *source = aq_format("%s/%s.%s", cuda->folders.items[k],
                                                      libraries[i].name, cuda->driver);
        AQ_CLEANUP(aq_freep) char *target = NULL;

        if (!sysfile_exists(cuda->host->root, source))
            continue;
        target = libraries[i].soname
                     ? aq_format("%s/%s", INSIDE, libraries[i].soname)
                     : aq_format("%s/%s.%s", INSIDE, libraries[i].name, cuda->driver);
        cuda_tell_need(out, AQ_ACCELERATOR_MOUNT, 0, source, target);
        return;
    }
}

static void cuda_tell_driver(const struct cuda *cuda, const struct aq_accelerator_out *out)
{
    for (size_t i = 0; i < AQ_COUNT(control_nodes); i++)
        if (sysfile_exists(cuda->host->root, control_nodes[i]))
            cuda_tell_need(out, AQ_ACCELERATOR_NODE, READ_WRITE, control_nodes[i], NULL);
    for (size_t i = 0; i < AQ_COUNT(libraries); i++)
        cuda_mount_library(cuda, i, out);
    for (size_t i = 0; i < AQ_COUNT(tools); i++)
        if (sysfile_exists(cuda->host->root, tools[i]))
            cuda_tell_need(out, AQ_ACCELERATOR_MOUNT, 0, tools[i], NULL);
    cuda_tell_need(out, AQ_ACCELERATOR_ENVIRON, 0, "LD_LIBRARY_PATH",
                   "/usr/local/nvidia/lib:" INSIDE);
    cuda_tell_need(out, AQ_ACCELERATOR_ENVIRON, 0, "NVIDIA_VISIBLE_DEVICES",
                   "void"); /* no vendor's hook */
    cuda_tell_need(out, AQ_ACCELERATOR_ENVIRON, 0, "TF_MIN_GPU_MULTIPROCESSOR_COUNT", "4");
}

/* A slice is reached through the capability files of its instances. */
static void cuda_tell_capability(const struct cuda *cuda, const char *path,
                                 const struct aq_accelerator_out *out)
{
    int64_t minor = sysfile_property(cuda->host->root, path, "DeviceFileMinor", -1);
    char node[64];

    if (minor < 0)
        return;
    (void)snprintf(node, sizeof(node), "/dev/nvidia-caps/nvidia-cap%lld", (long long)minor);
    cuda_tell_need(out, AQ_ACCELERATOR_NODE, AQ_ACCELERATOR_READ, node, NULL);
}

static void cuda_tell_device_files(const struct cuda *cuda, const struct cuda_device *d,
                                   const struct aq_accelerator_out *out)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/dev/nvidia%u", d->minor);
    cuda_tell_need(out, AQ_ACCELERATOR_NODE, READ_WRITE, path, NULL);
    if (!d->is_slice)
        return;
    (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/access",
                   d->minor, d->gpu_instance);
    cuda_tell_capability(cuda, path, out);
    (void)snprintf(path, sizeof(path),
                   "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access", d->minor,
                   d->gpu_instance, d->compute_instance);
    cuda_tell_capability(cuda, path, out);
}

static const struct cuda_device *attach_find(const struct cuda *cuda, const char *id)
{
    for (size_t i = 0; i < cuda->count; i++)
        if (strcmp(cuda->devices[i].id, id) == 0)
            return &cuda->devices[i];
    return NULL;
}

static int cuda_tell_part(const struct cuda *cuda, const struct aq_accelerator_grant *grant,
                          struct sharing_part *part, const struct aq_accelerator_out *out)
{
    const struct cuda_device *d = attach_find(cuda, grant->device);
    char text[128];

    if (!d) {
        (void)snprintf(text, sizeof(text), "device '%.80s' is gone", grant->device);
        out->error(out->data, text);
        return -ENODEV;
    }
    *part = (struct sharing_part){ .device = grant->device,
                                   .memory_bytes = d->memory_bytes,
                                   .processors = d->processors,
                                   .is_fractional = strcmp(grant->slot, "cuda.shares") == 0 };
    if (part->is_fractional) {
        part->memory_bytes = sharing_memory(&cuda->sharing, d->memory_bytes, d->processors,
                                            grant->amount);
        part->processors = sharing_processors(&cuda->sharing, d->memory_bytes, d->processors,
                                              grant->amount);
        part->time = sharing_time(&cuda->sharing, d->memory_bytes, d->processors, grant->amount);
    }
    cuda_tell_device_files(cuda, d, out);
    out->part(out->data, &(struct aq_accelerator_part){ .device = d->id,
                                                        .model = d->model,
                                                        .memory_bytes = part->memory_bytes,
                                                        .processors = part->processors,
                                                        .time = part->time });
    return 0;
}

int cuda_attach(void *self, const struct aq_accelerator_grant *grants, size_t count,
                const struct aq_accelerator_out *out)
{
    struct cuda *cuda = self;
    AQ_CLEANUP(aq_freep) struct sharing_part *parts = aq_alloc_array(count + 1, sizeof(*parts));
    struct aq_error err = { 0 };
    int r = 0;

    cuda_discover(cuda, &err); /* a restarted driver has other libraries */
    for (size_t i = 0; r == 0 && i < count; i++)
        r = cuda_tell_part(cuda, &grants[i], &parts[i], out);
    if (r < 0)
        return r;
    cuda_tell_driver(cuda, out);
    sharing_write_resource(&cuda->sharing, "cuda", parts, count, out);
    return 0;
}
