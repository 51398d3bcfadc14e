/* SPDX-License-Identifier: Apache-2.0 */
/* watch_protocol.h - what the agent and `aliquot-gpu watch` say to each other over pipes
 *
 * The agent writes requests to its standard input, one at a time, and reads one answer
 * to each from its standard output. The program ends at the end of its input. Both are
 * of the same installation; numbers are in the machine's byte order.
 */
#ifndef AQ_GPUHOST_WATCH_PROTOCOL_H
#define AQ_GPUHOST_WATCH_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

/* What one process holds on one device; by any interface, compute or graphics. */
struct gpu_process_memory {
    uint8_t uuid[16];
    int32_t pid;
    uint32_t memory_busy; /* percent of the last second in which its work accessed device memory;
                             UINT32_MAX = the driver does not say */
    uint64_t bytes;       /* 0 = the driver does not say */
};
static_assert(sizeof(struct gpu_process_memory) == 32, "goes over a pipe");

#define GPU_PROCESSES_MAX 4096

enum {
    GPU_WATCH_LIST,  /* list the processes on all devices */
    GPU_WATCH_LIMIT, /* limit a cgroup's memory on one device: gpu_nvml_limit_memory() */
};

struct gpu_watch_request {
    uint32_t kind; /* GPU_WATCH_... */
    uint32_t reserved;
    uint8_t uuid[16]; /* from here on of GPU_WATCH_LIMIT */
    uint64_t bytes;
    char cgroup[512];
};
static_assert(sizeof(struct gpu_watch_request) == 544, "goes over a pipe");

/* The answer: this, then 'count' of struct gpu_process_memory. */
struct gpu_watch_response {
    uint32_t magic; /* AQ_GPU_MAGIC */
    uint32_t count; /* at most GPU_PROCESSES_MAX */
    int32_t result; /* of GPU_WATCH_LIMIT: 0 or -errno */
    uint32_t reserved;
};
static_assert(sizeof(struct gpu_watch_response) == 16, "goes over a pipe");

#endif
