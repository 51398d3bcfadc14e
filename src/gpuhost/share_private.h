/* share_private.h - inside a share: its memory (share.c), its hand-over (handover.c) */
#ifndef AQ_GPUHOST_SHARE_PRIVATE_H
#define AQ_GPUHOST_SHARE_PRIVATE_H

#include <stdbool.h>

#include "gpuhost/loans.h"
#include "gpuhost/share.h"

#define SHARE_WAITING_MAX 256 /* connected and not yet heard of */

/* What an epoll event is about: the kind above, the number below. */
enum { SHARE_ON_LISTENER, SHARE_ON_CLIENT, SHARE_ON_DEATH };

struct gpu_share {
    int limits_fd, usage_fd, epoll, listener;
    struct aq_gpu_limits *limits;
    struct aq_gpu_usage *usage;
    struct gpu_loans *loans;
    char *path;
    int clients[SHARE_WAITING_MAX];
    uint32_t next_client;
    int pidfds[AQ_GPU_SLOTS_MAX]; /* -1 = free */
    size_t count;
    uint32_t slot_end; /* no slot from here on is owned; at least 1 */
};

/* ---- share.c ---- */

int share_watch(struct gpu_share *share, int fd, uint64_t kind, uint64_t number);

/* Field 22 of /proc/PID/stat, behind the name in brackets; 0 = no such process. */
uint64_t share_start_time(pid_t pid);
int share_open_pid(pid_t pid);

/* Watch the process of an owned slot; false = it is dead. */
bool share_follow(struct gpu_share *share, uint32_t slot, int pidfd);

/* Everything the slot held goes back; the slot is free. */
void share_end_slot(struct gpu_share *share, uint32_t slot);

/* Charge the container for the loans that it pays itself now. */
void share_settle_loans(struct gpu_share *share);

#endif
