/* SPDX-License-Identifier: Apache-2.0 */
/* disk_worker.h - a worker thread that changes kernel directories, several changes to a flush
 *
 * The agent's truth is its directories; no command is acknowledged before it is
 * durable, and the loop never waits for a disk. Jobs run one after another in
 * the order they were added; all that wait meanwhile share one flush. Layout
 * below the state directory:
 *
 *   accepted                       which commands were taken: accepted_log.h
 *   kernels/ID/spec.json           the command, as a kernel.create message
 *   kernels/ID/image               digest of the image that a container has
 *   kernels/ID/config/resource.txt which devices it got (alloc/resource_txt.h)
 *   kernels/ID/config/environ.txt  NAME=value lines
 *   kernels/ID/work                the directory of a program that is a process of the node
 *   kernels/ID/scratch.img         what a container writes, /home/work included; or scratch/
 *   kernels/ID/run/ATTEMPT/        as of monitor/protocol.h; in it may be
 *     resize.txt                   like resource.txt: what it may hold next (resize.c)
 *   spares/NUMBER                  a directory that is filled, emptied or to be used
 *                                  again (kernel_directory.h). Gone after a restart
 *   logs/ID/ATTEMPT/               'log' and 'log.1' with their times, after the kernel was
 *                                  forgotten
 */
#ifndef AQ_AGENT_DISK_DISK_WORKER_H
#define AQ_AGENT_DISK_DISK_WORKER_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct disk_worker;

enum disk_action {
    DISK_CREATE,   /* make the directory with all that is given */
    DISK_REPLACE,  /* give an existing directory a new spec.json, and what else is given */
    DISK_DESCRIBE, /* give an existing directory the config files that are given */
    DISK_INTEND,   /* keep 'resource' as what it may hold next; NULL = there is no such thing */
    DISK_CONCLUDE, /* record that the attempt ends without having been started */
    DISK_FORGET,   /* keep the log, remove the directory */
    DISK_PRUNE,    /* remove what is kept of a forgotten kernel */
    DISK_TRY,      /* see whether there is room, and write what there was none for */
};

struct disk_job {
    enum disk_action action;
    struct uuid id;
    int64_t attempt;
    uint64_t number;                 /* the caller's, to know it again */
    char *spec, *resource, *environ; /* owned; may be NULL */
    struct strbuf program;           /* DISK_CREATE: of runtime_describe(); owned */
    const char *reason;              /* DISK_CONCLUDE: of monitor/protocol.h, static */
    char *text;                      /* DISK_CONCLUDE: why, for users; owned */
    uid_t uid;                       /* whose process it is; (uid_t)-1 = a container, or our own */
    gid_t gid;
    /* On the loop; frees nothing. err->code 0 = done and durable. */
    void (*on_done)(void *data, const struct disk_job *job, const struct aq_error *err);
    void *data;
    /* results */
    int64_t retained_bytes; /* DISK_FORGET: size of the kept log, 0 = nothing kept */
};

int disk_worker_new(uv_loop_t *loop, const char *state, struct disk_worker **ret,
                    struct aq_error *err);
/* After the last job; no further callbacks. NULL is fine. */
void disk_worker_free(struct disk_worker *disk);
AQ_DEFINE_CLEANUP(struct disk_worker, disk_worker_free)

/* Queue a copy of the job; what it owns is the disk's from here on. */
void disk_worker_add(struct disk_worker *disk, const struct disk_job *job);
/* Free what a job owns that was not added. */
void disk_job_done(struct disk_job *job);

/* Did the last job fail because the file system was full, over a quota or read-only? */
bool disk_worker_lacks_room(const struct disk_worker *disk);

/* "STATE/kernels/ID/rest" and so on; caller frees. */
char *disk_worker_kernel_path(const struct disk_worker *disk, const struct uuid *id,
                              const char *rest);
char *disk_worker_run_path(const struct disk_worker *disk, const struct uuid *id, int64_t attempt);
char *disk_worker_log_path(const struct disk_worker *disk, const struct uuid *id);

/* The largest number that names an entry of the directory, 0 if there is none. */
int64_t disk_worker_newest_attempt(const char *directory);

#endif
