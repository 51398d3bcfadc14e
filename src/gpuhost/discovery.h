/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.h - find the other slices of this user on this machine
 *
 * Every `aliquot gpu run` answers on a socket in one directory per user. A process that finds it
 * maps its region read-only. One thread.
 */
#ifndef AQ_GPUHOST_DISCOVERY_H
#define AQ_GPUHOST_DISCOVERY_H

#include "base/error.h"
#include "gpuhost/time_share.h"

#define GPU_PEERS_MAX 64

struct gpu_peer {
    struct gpu_region_view view; /* view.limits NULL = no answer yet, or free */
    char name[32];               /* of the socket: the pid of its `aliquot gpu run`; "" = free */
    int fd;                      /* while it has not answered */
    int64_t asked_ns;
};

/* The directory of the sockets, made if need be. Caller frees; NULL with 'err'. */
char *gpu_discovery_directory(struct aq_error *err);

/* Bring 'peers' up to date with the directory: read replies, connect to new ones, close
 * silent ones. Never waits, so that two peers that find each other both make progress.
 * 'skip' is a socket to leave out (NULL = none).
 */
void gpu_discovery_scan(const char *directory, const char *skip,
                        struct gpu_peer peers[GPU_PEERS_MAX]);
void gpu_peer_close(struct gpu_peer *peer);

#endif
