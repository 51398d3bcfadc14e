/* SPDX-License-Identifier: Apache-2.0 */
/* region_host_internal.h - shared by region_host.c (memory files) and region_server.c (its socket)
 */
#ifndef AQ_GPUHOST_REGION_HOST_INTERNAL_H
#define AQ_GPUHOST_REGION_HOST_INTERNAL_H

#include <stdbool.h>

#include "gpuhost/shared_alloc_table.h"
#include "gpuhost/region_host.h"

#define REGION_HOST_WAITING_MAX 256 /* connected and not yet heard of */

/* What an epoll event is about: the kind above, the number below. */
enum { REGION_HOST_ON_LISTENER, REGION_HOST_ON_CLIENT, REGION_HOST_ON_DEATH };

struct gpu_region_host {
    int limits_fd, usage_fd, epoll, listener;
    struct aq_gpu_limits *limits;
    struct aq_gpu_usage *usage;
    struct gpu_shared_allocs *shared_allocs;
    char *path;
    int clients[REGION_HOST_WAITING_MAX];
    uint32_t next_client;
    int pidfds[AQ_GPU_SLOTS_MAX]; /* -1 = free */
    size_t count;
    uint32_t slot_end; /* no slot from here on is owned; at least 1 */
};

/* ---- region_host.c ---- */

int region_host_watch(struct gpu_region_host *host, int fd, uint64_t kind, uint64_t number);

/* Field 22 of /proc/PID/stat, behind the name in brackets; 0 = no such process. */
uint64_t region_host_start_time(pid_t pid);
int region_host_open_pid(pid_t pid);

/* Watch the process of an owned slot; false = it is dead. */
bool region_host_follow(struct gpu_region_host *host, uint32_t slot, int pidfd);

/* Everything the slot held goes back; the slot is free. */
void region_host_end_slot(struct gpu_region_host *host, uint32_t slot);

/* Charge the container for the shared allocations whose exporter no longer holds them. */
void region_host_charge_container(struct gpu_region_host *host);

#endif
