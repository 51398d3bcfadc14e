/* watch.h - who uses a device past the library
 *
 * What the region says is written by those it limits. The driver's own list
 * says who holds how much: a process of the container that holds a context
 * without a slot, or more than its slot is charged, is found out.
 */
#ifndef AQ_GPUHOST_WATCH_H
#define AQ_GPUHOST_WATCH_H

#include <stdbool.h>

#include "gpuhost/share.h"

/* What the driver rounds and keeps on its own may differ by so much. */
#define GPU_WATCH_TOLERANCE ((uint64_t)64 << 20)

struct gpu_watch;

enum gpu_finding_kind {
    GPU_UNREGISTERED, /* uses the device without having asked for a slot */
    GPU_UNDERSTATED,  /* holds more than it is charged */
};

struct gpu_finding {
    enum gpu_finding_kind kind;
    pid_t pid;
    uint32_t device; /* of the slice */
    uint64_t used_bytes, charged_bytes;
};

/* A device of the driver. */
struct gpu_device_info {
    uint8_t uuid[16];
    char uuid_text[64], name[64];
    uint64_t memory_bytes;
    uint32_t processors; /* 0 = the driver does not say */
};

/* Load NVML from wherever the loader finds it. -ENOENT: no driver here. */
int gpu_watch_new(struct gpu_watch **ret, struct aq_error *err);
void gpu_watch_free(struct gpu_watch *watch);
AQ_DEFINE_CLEANUP(struct gpu_watch, gpu_watch_free)

/* The devices of this machine, in the driver's order; how many there are, of
 * which at most 'room' are put into 'ret'.
 */
int gpu_watch_devices(struct gpu_watch *watch, struct gpu_device_info *ret, size_t room,
                      struct aq_error *err);

/* Compare. 'belongs' says whether a pid is of the share's container. Puts at
 * most 'room' findings into 'ret'; how many there are, or -errno.
 */
int gpu_watch_scan(struct gpu_watch *watch, struct gpu_share *share,
                   bool (*belongs)(pid_t pid, void *data), void *data, struct gpu_finding *ret,
                   size_t room, struct aq_error *err);

/* What one process holds by the driver's list on a device of the share; 0 = nothing. */
uint64_t gpu_watch_used(struct gpu_watch *watch, const uint8_t uuid[16], pid_t pid);

#endif
