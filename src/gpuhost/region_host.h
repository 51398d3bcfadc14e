/* SPDX-License-Identifier: Apache-2.0 */
/* region_host.h - one container's slice of the GPUs, from the agent's side
 *
 * Owns the two memory files of the region (aliquot/gpu_region.h), answers the handshake
 * on a unix socket, and reclaims what a process held when it dies: the socket's peer is
 * known by its pidfd, so nothing polls. All file descriptors are under one epoll
 * descriptor for the caller's loop. One thread per region.
 */
#ifndef AQ_GPUHOST_REGION_HOST_H
#define AQ_GPUHOST_REGION_HOST_H

#include <stdint.h>
#include <sys/types.h>

#include "aliquot/gpu_region.h"
#include "base/error.h"
#include "gpu/uuid.h" /* how grants name devices */

/* What the container gets of one device. */
struct gpu_grant {
    uint8_t uuid[16];
    uint64_t memory_bytes;
    uint32_t share; /* of its time; AQ_GPU_WHOLE = no limit */
    uint32_t processors;
    uint32_t flags; /* AQ_GPU_HOST_MEMORY */
};

struct gpu_region_host;

/* Make the memory files. */
int gpu_region_host_new(const struct gpu_grant *grants, size_t count, struct gpu_region_host **ret,
                        struct aq_error *err);

/* Keep the table of shared allocations in a file, for the agent that adopts the region. */
int gpu_region_host_persist_allocs(struct gpu_region_host *host, const char *path,
                                   struct aq_error *err);

/* Adopt memory files that outlived the process that made them, and with its
 * table of shared allocations (NULL = it was not kept). Takes both descriptors,
 * also on failure. What processes held that died meanwhile is reclaimed.
 */
int gpu_region_host_adopt(int limits_fd, int usage_fd, const char *shared_allocs_path,
                          struct gpu_region_host **ret, struct aq_error *err);
void gpu_region_host_free(struct gpu_region_host *host);
AQ_DEFINE_CLEANUP(struct gpu_region_host, gpu_region_host_free)

/* The memory files, to be kept somewhere that lives longer. Borrowed. */
void gpu_region_host_files(const struct gpu_region_host *host, int *ret_limits, int *ret_usage);

/* Answer on a socket at 'path'. It is removed when the region is freed. */
int gpu_region_host_listen(struct gpu_region_host *host, const char *path, struct aq_error *err);

/* Readable when gpu_region_host_dispatch() has something to do. */
int gpu_region_host_poll_fd(const struct gpu_region_host *host);

/* Handle requests and deaths; never waits. */
void gpu_region_host_dispatch(struct gpu_region_host *host);

/* Change what is granted of a device, now. Less memory than is in use rejects
 * new allocations and ends nothing. -ENODEV: no such device in the slice.
 */
int gpu_region_host_set(struct gpu_region_host *host, const struct gpu_grant *grant,
                        struct aq_error *err);

/* The memory itself. */
struct aq_gpu_limits *gpu_region_host_limits(struct gpu_region_host *host);
struct aq_gpu_usage *gpu_region_host_usage(struct gpu_region_host *host);

/* How many processes hold a slot, and the first slot beyond all of theirs. */
size_t gpu_region_host_count(const struct gpu_region_host *host);
uint32_t gpu_region_host_slot_end(const struct gpu_region_host *host);

/* Granules that the process of 'slot' holds and others are charged for; and how much
 * more all of them hold, each counted by itself, than is charged.
 */
uint64_t gpu_region_host_uncharged(const struct gpu_region_host *host, uint32_t slot,
                                   uint32_t device);
uint64_t gpu_region_host_overcounted(const struct gpu_region_host *host, uint32_t device);

/* Answer one hello or request about shared memory, 'len' bytes from the peer of 'socket'.
 * Returns the slot given (0 = to an observer, or a request executed), or -errno; the peer
 * is told in both cases.
 */
AQ_UNTRUSTED int gpu_region_host_answer(struct gpu_region_host *host, int socket, const void *hello,
                                        size_t len);

/* For who has one socket for many regions. The process at the other end: a pidfd, which stays that
 * process, and its pid; -1 if it has ended, or is in a pid namespace that is not seen from here.
 */
int gpu_region_peer(int socket, pid_t *ret_pid);
/* Tell a peer that sent 'len' bytes that it gets nothing, by an errno. 0, or -errno of sending. */
int gpu_region_refuse(int socket, size_t len, int error);

#define GPU_REQUEST_MAX sizeof(struct aq_gpu_loan_order) /* the longest */

#endif
