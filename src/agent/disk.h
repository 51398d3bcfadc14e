/* disk.h - changes of kernel folders, made in a worker thread, several to a flush
 *
 * The agent's truth is its folders; no order is acknowledged before it is
 * durable, and the loop never waits for a disk. Jobs run one after another in
 * the order they were added; all that wait meanwhile share one flush. Layout
 * below the state folder:
 *
 *   accepted                       which orders were taken: accepted.h
 *   kernels/ID/spec.json           the order, as a kernel.create message
 *   kernels/ID/image               digest of the image that a container has
 *   kernels/ID/config/resource.txt which devices it got (alloc/resource_txt.h)
 *   kernels/ID/config/environ.txt  NAME=value lines
 *   kernels/ID/work                the folder of a program that is a process of the node
 *   kernels/ID/scratch.img         what a container writes, /home/work included; or scratch/
 *   kernels/ID/run/ATTEMPT/        as of monitor/protocol.h; in it may be
 *     resize.txt                   like resource.txt: what it may hold next (resize.c)
 *   spares/NUMBER                  a folder that is filled, emptied or to be used
 *                                  again (folder.h). Gone after a restart
 *   logs/ID/ATTEMPT/               'log' and 'log.1', after the kernel was forgotten
 */
#ifndef AQ_AGENT_DISK_H
#define AQ_AGENT_DISK_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct disk;

enum disk_action {
    DISK_CREATE,   /* make the folder with all that is given */
    DISK_REPLACE,  /* give an existing folder a new spec.json, and what else is given */
    DISK_DESCRIBE, /* give an existing folder the config files that are given */
    DISK_INTEND,   /* keep 'resource' as what it may hold next; NULL = there is no such thing */
    DISK_CONCLUDE, /* record that the attempt ends without having been started */
    DISK_FORGET,   /* keep the log, remove the folder */
    DISK_PRUNE,    /* remove what is kept of a forgotten kernel */
};

struct disk_job {
    enum disk_action action;
    struct uuid id;
    int64_t attempt;
    uint64_t number;                 /* the caller's, to know it again */
    char *spec, *resource, *environ; /* owned; may be NULL */
    struct strbuf program;           /* DISK_CREATE: of runtime_describe(); owned */
    const char *reason;              /* DISK_CONCLUDE: of monitor/protocol.h, static */
    char *text;                      /* DISK_CONCLUDE: why, for people; owned */
    uid_t uid;                       /* who gets the work folder; (uid_t)-1 = nobody else */
    gid_t gid;
    /* On the loop; frees nothing. err->code 0 = done and durable. */
    void (*on_done)(void *data, const struct disk_job *job, const struct aq_error *err);
    void *data;
    /* results */
    int64_t kept_bytes;              /* DISK_FORGET: size of the kept log, 0 = nothing kept */
};

int disk_new(uv_loop_t *loop, const char *state, struct disk **ret, struct aq_error *err);
/* After the last job; no further callbacks. NULL is fine. */
void disk_free(struct disk *disk);
AQ_DEFINE_CLEANUP(struct disk, disk_free)

/* Queue a copy of the job; what it owns is the disk's from here on, also
 * after a failure. -ENOMEM.
 */
int disk_add(struct disk *disk, struct disk_job *job, struct aq_error *err);
/* Free what a job owns that was not added. */
void disk_job_done(struct disk_job *job);

/* "STATE/kernels/ID/rest" and so on; caller frees, NULL = no memory. */
char *disk_kernel_path(const struct disk *disk, const struct uuid *id, const char *rest);
char *disk_run_path(const struct disk *disk, const struct uuid *id, int64_t attempt);
char *disk_kept_path(const struct disk *disk, const struct uuid *id);

/* The largest number that names an entry of the folder, 0 if there is none. */
int64_t disk_newest_attempt(const char *folder);

#endif
