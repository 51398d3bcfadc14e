/* watch.h - who uses the devices, as the driver says
 *
 * What the region says is written by those it limits; the driver's own lists
 * say who holds how much. NVML is loaded into the calling process, which it
 * can crash or hang: the agent has `aliquot-gpu watch` call it.
 */
#ifndef AQ_GPUHOST_WATCH_H
#define AQ_GPUHOST_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "aliquot/gpu_region.h"
#include "base/error.h"

struct gpu_watch;

/* A device of the driver. */
struct gpu_device_info {
    uint8_t uuid[16];
    char uuid_text[64], name[64];
    uint64_t memory_bytes;
    uint32_t processors; /* 0 = the driver does not say */
};

/* What one process holds on one device; by any interface, compute or graphics. */
struct gpu_use {
    uint8_t uuid[16];
    int32_t pid;
    uint32_t reserved;
    uint64_t bytes; /* 0 = the driver does not say */
};
static_assert(sizeof(struct gpu_use) == 32, "goes over a pipe");

#define GPU_USES_MAX 4096

/* What `aliquot-gpu watch` is told; it ends with its input. */
struct gpu_watch_order {
    uint32_t kind; /* of the two below */
    uint32_t reserved;
    uint8_t uuid[16];
    uint64_t bytes;
    char cgroup[512];
};
static_assert(sizeof(struct gpu_watch_order) == 544, "goes over a pipe");

enum {
    GPU_ORDER_LOOK,  /* who uses which device? */
    GPU_ORDER_LIMIT, /* gpu_watch_limit() */
};

/* What it answers: this, then 'count' of struct gpu_use. */
struct gpu_watch_head {
    uint32_t magic; /* AQ_GPU_MAGIC */
    uint32_t count; /* at most GPU_USES_MAX */
    int32_t result; /* of GPU_ORDER_LIMIT: 0 or -errno */
    uint32_t reserved;
};
static_assert(sizeof(struct gpu_watch_head) == 16, "goes over a pipe");

/* Load NVML: 'library', or NULL = wherever the loader finds it. -ENOENT: no driver here. */
int gpu_watch_new(const char *library, struct gpu_watch **ret, struct aq_error *err);
void gpu_watch_free(struct gpu_watch *watch);
AQ_DEFINE_CLEANUP(struct gpu_watch, gpu_watch_free)

/* The devices of this machine, in the driver's order; how many there are, of
 * which at most 'room' are put into 'ret'.
 */
int gpu_watch_devices(struct gpu_watch *watch, struct gpu_device_info *ret, size_t room,
                      struct aq_error *err);

/* Who uses which device now: how many, at most 'room'; or -errno. */
int gpu_watch_list(struct gpu_watch *watch, struct gpu_use *ret, size_t room,
                   struct aq_error *err);

/* Have the driver refuse a device's memory past 'bytes' to all processes below a
 * cgroup, a path of version 2. -ENOSYS: this driver does not do that (r615 does).
 */
int gpu_watch_limit(struct gpu_watch *watch, const uint8_t uuid[16], const char *cgroup,
                    uint64_t bytes, struct aq_error *err);

#endif
