/* judge.h - does a container use a device past what holds it?
 *
 * Compares what the driver says of the processes of one container with its
 * region: a process that uses a device without having asked for a slot, one
 * that holds more than its slot is charged, or more held by all than was
 * granted, whatever the region says.
 *
 * The driver's list is older than the look at the region, and a program may
 * have given memory back in between. So whoever seems to hold too much is a
 * suspect first: what it is charged is sampled from then on, and it is found
 * guilty if it held more than the largest sample each time, GPU_JUDGE_LOOKS
 * times in a row. A process without a slot needs no second look: it gets one
 * before the driver has anything for it.
 */
#ifndef AQ_GPUHOST_JUDGE_H
#define AQ_GPUHOST_JUDGE_H

#include <stdbool.h>

#include "gpuhost/share.h"
#include "gpuhost/watch.h"

/* What the driver rounds and keeps on its own may differ by so much, per process. */
#define GPU_JUDGE_TOLERANCE ((uint64_t)64 << 20)
#define GPU_JUDGE_LOOKS 3
#define GPU_SUSPECTS_MAX 32

enum gpu_finding_kind {
    GPU_UNREGISTERED, /* uses the device without having asked for a slot */
    GPU_UNDERSTATED,  /* holds more than it is charged */
    GPU_OVER,         /* all processes together hold more than was granted */
};

struct gpu_finding {
    enum gpu_finding_kind kind;
    pid_t pid;       /* GPU_OVER: of the process that holds most */
    uint32_t device; /* of the slice */
    uint64_t used_bytes, allowed_bytes;
};

struct gpu_suspect {
    struct gpu_finding what; /* pid 0 = free; GPU_OVER: any */
    uint32_t looks;          /* in a row */
    bool is_seen, is_told;
};

/* Of one share; zeroed = no suspicion. */
struct gpu_judge {
    struct gpu_suspect suspects[GPU_SUSPECTS_MAX];
};

/* Look again at what suspects are charged; call it often between looks. */
void gpu_judge_sample(struct gpu_judge *judge, struct gpu_share *share);

/* Compare 'uses' of all devices and processes. 'belongs' says whether a pid is
 * of the share's container. Puts at most 'room' findings that were not told
 * before into 'ret'; returns how many.
 */
size_t gpu_judge_look(struct gpu_judge *judge, struct gpu_share *share, const struct gpu_use *uses,
                      size_t count, bool (*belongs)(pid_t pid, void *data), void *data,
                      struct gpu_finding *ret, size_t room);

/* Reason enough to end it? Not GPU_UNDERSTATED: memory that a process has imported
 * is charged to the exporter, and the driver may show it at both.
 */
bool gpu_finding_is_breach(const struct gpu_finding *finding);

/* For people: "process 17 uses GPU-513a5f0e past its limits (1024 MiB)". */
void gpu_finding_write(const struct gpu_finding *finding, struct gpu_share *share,
                       char *ret, size_t size);

#endif
