/* SPDX-License-Identifier: Apache-2.0 */
/* slices.h - the slices of GPUs that one process serves: their clocks, and who goes past them
 *
 * Publishes the clocks of all regions. While there are slices, the driver is asked who uses the
 * devices (watchdog.c), and is told the limits by cgroup where it takes them. Whose a process is,
 * and who is told of a violation, is the business of who makes the slices. Everything belongs to
 * the thread of the libuv loop.
 */
#ifndef AQ_GPUSLICE_SLICES_H
#define AQ_GPUSLICE_SLICES_H

#include <uv.h>

#include "accelhost/accel.h"
#include "gpuhost/region_host.h"
#include "gpuhost/violation.h"
#include "gpuhost/watch_protocol.h"

struct slices;

/* One container's, inside of what its maker knows of it. */
struct slice {
    struct gpu_region_host *region; /* the maker's */
    /* private from here on */
    uint64_t number; /* no other slice has it */
    struct gpu_violation_check violations;
    uint32_t limited;  /* devices whose memory the driver limits, too */
    bool is_unlimited; /* it does not do that */
};

struct slices_conf {
    uv_loop_t *loop;
    const struct accel *accel; /* its plugins say by what library devices are watched */
    const char *watch_program; /* aliquot-gpu; NULL = nobody watches */
    bool conserving;           /* time that a container does not want is the others' */
    /* Is it a process of the slice's container? */
    bool (*owns)(void *data, const struct slice *slice, pid_t pid);
    /* The path of its cgroup of version 2, the caller's to free; NULL before it is there, or if
     * there is none.
     */
    char *(*find_cgroup)(void *data, const struct slice *slice);
    /* Told once for each process, with a text for users. The callee may remove the slice. */
    void (*on_violation)(void *data, struct slice *slice, const struct gpu_violation *violation,
                         const char *text);
    /* All processes on all devices, before slices are compared with them; may be NULL. */
    void (*on_processes)(void *data, const struct gpu_process_memory *uses, size_t count);
    void *data;
};

/* Texts are copied, the rest is borrowed. */
struct slices *slices_new(const struct slices_conf *conf);
/* There is no slice any more. NULL is fine. */
void slices_free(struct slices *slices);
AQ_DEFINE_CLEANUP(struct slices, slices_free)

/* Into and out of those whose clocks are published; zeroed before but for its region. */
void slices_add(struct slices *slices, struct slice *slice);
/* One that is not there is fine. */
void slices_remove(struct slices *slices, const struct slice *slice);

/* A process has attached, or a limit has changed: publish the clocks at once. */
void slices_wake(struct slices *slices);
/* The limits of a slice are others: the driver has to be told. */
void slices_changed(struct slices *slices, struct slice *slice);

/* Watch also while there are no slices, or not any more. */
void slices_keep_watching(struct slices *slices, bool is_wanted);

/* False for one that has ended and waits to be reaped. */
bool slices_is_running(pid_t pid);

#endif
