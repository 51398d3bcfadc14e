/* share.h - one container's slice of the GPUs, from the agent's side
 *
 * Owns the two memory files (aliquot/gpu_region.h), answers the hand-over on a
 * unix socket, and gives back what a process held when it dies: the socket's
 * peer is known by its pidfd, so nothing polls. All file descriptors hang
 * under one epoll descriptor for the caller's loop. One thread per share.
 */
#ifndef AQ_GPUHOST_SHARE_H
#define AQ_GPUHOST_SHARE_H

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

struct gpu_share;

/* Make the memory files. */
int gpu_share_new(const struct gpu_grant *grants, size_t count, struct gpu_share **ret,
                  struct aq_error *err);

/* Keep who holds memory together (loans.h) in a file, for whoever adopts the share. */
int gpu_share_keep_loans(struct gpu_share *share, const char *path, struct aq_error *err);

/* Go on with memory files that outlived the process that made them, and with its
 * loans (NULL = they were not kept). Takes both descriptors, also on failure.
 * Processes that died meanwhile are given back.
 */
int gpu_share_adopt(int limits_fd, int usage_fd, const char *loans_path, struct gpu_share **ret,
                    struct aq_error *err);
void gpu_share_free(struct gpu_share *share);
AQ_DEFINE_CLEANUP(struct gpu_share, gpu_share_free)

/* The memory files, to be kept somewhere that lives longer. Borrowed. */
void gpu_share_files(const struct gpu_share *share, int *ret_limits, int *ret_usage);

/* Answer on a socket at 'path'. It is removed when the share is freed. */
int gpu_share_listen(struct gpu_share *share, const char *path, struct aq_error *err);

/* Readable when gpu_share_dispatch() has something to do. */
int gpu_share_poll_fd(const struct gpu_share *share);

/* Take hellos and deaths; never waits. */
void gpu_share_dispatch(struct gpu_share *share);

/* Change what is granted of a device, now. Less memory than is in use refuses
 * new memory and ends nothing. -ENODEV: no such device in the share.
 */
int gpu_share_set(struct gpu_share *share, const struct gpu_grant *grant, struct aq_error *err);

/* The memory itself. */
struct aq_gpu_limits *gpu_share_limits(struct gpu_share *share);
struct aq_gpu_usage *gpu_share_usage(struct gpu_share *share);

/* How many processes hold a slot, and the first slot beyond all of theirs. */
size_t gpu_share_count(const struct gpu_share *share);
uint32_t gpu_share_slot_end(const struct gpu_share *share);

/* Granules that the process of 'slot' holds and others are charged for; and how much
 * more all of them hold, each counted by itself, than is charged.
 */
uint64_t gpu_share_borrowed(const struct gpu_share *share, uint32_t slot, uint32_t device);
uint64_t gpu_share_repeated(const struct gpu_share *share, uint32_t device);

/* Answer one hello or loan order, 'len' bytes from the peer of 'socket'. Returns the
 * slot given (0 = to an onlooker, or an order followed), or -errno; the peer is told
 * in both cases.
 */
AQ_UNTRUSTED int gpu_share_answer(struct gpu_share *share, int socket, const void *hello,
                                  size_t len);

#endif
