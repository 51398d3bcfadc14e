/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_region.h - the memory that a container with a GPU slice and its agent share
 *
 * The agent makes two memory files per container and hands them to each
 * process of it over a unix socket (SCM_RIGHTS), in answer to a struct
 * aq_gpu_hello:
 *
 *   limits  struct aq_gpu_limits: written by the agent alone. The memory file
 *           is sealed against writing by anyone who maps it later.
 *   usage   struct aq_gpu_usage: written by the library in every process of
 *           the container, and by the agent when a process dies. A hint that
 *           the agent checks against the driver, never the enforcement.
 *
 * Both are sealed against resizing. All words that several processes write
 * are accessed atomically. Times are CLOCK_MONOTONIC in nanoseconds. The
 * layout is frozen: another layout has another version.
 */
#ifndef ALIQUOT_GPU_REGION_H
#define ALIQUOT_GPU_REGION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_GPU_MAGIC 0x75706771u /* "qgpu" */
#define AQ_GPU_VERSION 1u

#define AQ_GPU_DEVICES_MAX 16
#define AQ_GPU_SLOTS_MAX 1024 /* processes at once; slot 0 is the agent's */

/* Device memory is charged in granules, the driver's physical unit. */
#define AQ_GPU_GRANULE_SHIFT 21
#define AQ_GPU_GRANULE ((uint64_t)1 << AQ_GPU_GRANULE_SHIFT)

/* A whole device's time, in millionths. */
#define AQ_GPU_WHOLE 1000000u

/* How a device's time passes for this container. Published by the agent under
 * 'seq' (odd while it writes): at time t the clock shows
 * value_ns + (t - at_ns) * rate / 10^6.
 */
struct aq_gpu_clock {
    uint32_t seq;
    uint32_t rate;
    int64_t at_ns;
    int64_t value_ns;
};
static_assert(sizeof(struct aq_gpu_clock) == 24, "frozen");

enum {
    AQ_GPU_HOST_MEMORY = 1u << 0, /* past the limit, allocate managed memory */
};

struct aq_gpu_limits_device {
    uint8_t uuid[16];
    uint64_t memory_bytes; /* of device memory; whole granules count */
    uint32_t share;        /* of the device's time, AQ_GPU_WHOLE = no limit */
    uint32_t flags;
    uint32_t processors; /* multiprocessors that the slice is worth */
    uint32_t takers;     /* active contenders: processes that took turns of late; 0 = not known */
    struct aq_gpu_clock grant; /* time granted: runs at the share in force */
    struct aq_gpu_clock own;   /* time to itself: runs at 1 / active containers */
    uint64_t held_bytes;       /* what it may hold from when memory_bytes was more; 0 = no more */
    uint8_t unused[32];
};
static_assert(sizeof(struct aq_gpu_limits_device) == 128, "frozen");

/* Whose slot it is: pid as the agent sees it, and as the process itself does. */
struct aq_gpu_owner {
    int32_t host_pid; /* 0 = nobody */
    int32_t own_pid;
    uint64_t start_time; /* field 22 of /proc/PID/stat */
};
static_assert(sizeof(struct aq_gpu_owner) == 16, "frozen");

struct aq_gpu_limits {
    uint32_t magic, version, size, device_count;
    int64_t alive_ns; /* when the agent last updated this container */
    uint8_t unused[104];
    struct aq_gpu_limits_device devices[AQ_GPU_DEVICES_MAX];
    struct aq_gpu_owner owners[AQ_GPU_SLOTS_MAX];
};
static_assert(sizeof(struct aq_gpu_limits) == 18560, "frozen");

/* One word says how much is charged and who changed it last, so that one
 * compare-and-swap reserves memory and leaves proof of having been done:
 * granules in 24 bits, slot in 12, that slot's sequence number in 28.
 */
#define AQ_GPU_CHARGE_SEQ_BITS 28
#define AQ_GPU_CHARGE_SLOT_BITS 12
#define AQ_GPU_CHARGE_GRANULE_BITS 24

struct aq_gpu_usage_device {
    uint64_t charged;    /* the word above */
    uint64_t refused;    /* allocations past the limit, counted */
    int64_t refused_ns;  /* when the last one was */
    uint8_t unused[40];  /* own cache line */
    int64_t paid_ns;     /* on the grant clock: work is paid for up to here */
    int64_t used_ns;     /* device time used by all processes so far */
    uint64_t launches;   /* of GPU kernels, on any device; see gpu_region_count_launches() */
    uint8_t unused2[40]; /* own cache line */
};
static_assert(sizeof(struct aq_gpu_usage_device) == 128, "frozen");

/* A process's part in one device. 'state' and 'intent' hold granules (signed
 * in 'intent') in the upper 36 bits and a sequence number in the lower 28:
 * an operation is under way while the two numbers differ.
 */
struct aq_gpu_slot_device {
    uint64_t state;    /* charged to this process, after operation N */
    uint64_t intent;   /* what operation N adds */
    uint64_t seen;     /* the last operation whose mark another process replaced */
    int64_t busy_ns;   /* work is outstanding until about then */
    uint64_t contexts; /* bytes of the above that are contexts and code */
    int64_t used_ns;   /* device time used by this process so far */
};
static_assert(sizeof(struct aq_gpu_slot_device) == 48, "frozen");

struct aq_gpu_slot {
    struct aq_gpu_slot_device devices[AQ_GPU_DEVICES_MAX];
};
static_assert(sizeof(struct aq_gpu_slot) == 768, "frozen");

struct aq_gpu_usage {
    uint32_t magic, version, size, unknown_symbols;
    uint8_t unused[112];
    struct aq_gpu_usage_device devices[AQ_GPU_DEVICES_MAX];
    struct aq_gpu_slot slots[AQ_GPU_SLOTS_MAX];
};
static_assert(sizeof(struct aq_gpu_usage) == 788608, "frozen");

/* The handshake, over a SOCK_SEQPACKET socket, one packet each way. The
 * reply carries the descriptors of limits and usage, in this order, unless
 * 'error' (an errno) says why not. Nobody keeps the connection.
 */
#define AQ_GPU_SOCKET "/run/aliquot/gpu.sock"

struct aq_gpu_hello {
    uint32_t magic, version;
    int32_t own_pid; /* 0 = an observer: gets no slot */
    uint32_t slot;   /* 0, or the caller's: it has one and wants the limits of a new agent */
    int64_t now_ns;  /* on the process's own clock: time namespaces shift it */
};
static_assert(sizeof(struct aq_gpu_hello) == 24, "frozen");

struct aq_gpu_welcome {
    uint32_t magic, version;
    int32_t error;
    uint32_t slot;
    int64_t now_ns; /* on the agent's clock */
};
static_assert(sizeof(struct aq_gpu_welcome) == 24, "frozen");

/* Shared allocations ("loans" in these names): memory that processes of the container
 * export to each other, requested on the same socket. The agent alone keeps the table of
 * who holds it and who is charged. As long as the process that exported it holds it, it
 * is charged; then the container is (slot 0), until the last holder has left or died.
 * 'token' names the memory: not 0, below 2^63.
 */
enum {
    AQ_GPU_LOAN_OFFER = 1, /* the caller holds 'granules' and is charged; EEXIST = it holds
                              it, and others are charged; ENOSPC = the table is full */
    AQ_GPU_LOAN_JOIN,      /* the caller holds it, too; ENOENT = nobody here is charged */
    AQ_GPU_LOAN_LEAVE,     /* the caller releases it, and gives back its charge after that */
};

#define AQ_GPU_LOANS_MAX 1024 /* at once, in one container */

struct aq_gpu_loan_order {
    uint32_t magic, version;
    uint32_t kind, device;
    uint64_t token;
    uint64_t granules; /* of an offer */
};
static_assert(sizeof(struct aq_gpu_loan_order) == 32, "frozen");

struct aq_gpu_loan_reply {
    uint32_t magic, version;
    int32_t error; /* an errno, 0 = done */
    uint32_t device;
    uint64_t granules;
};
static_assert(sizeof(struct aq_gpu_loan_reply) == 24, "frozen");

#endif
