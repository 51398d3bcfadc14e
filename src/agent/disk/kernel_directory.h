/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_directory.h - creates, changes and removes kernel directories; run by the disk worker
 *
 * Nothing here waits for the disk (accepted_log.h says why) but a new command for a
 * directory that is there: its spec.json must not be an older one.
 *
 * A directory is filled, emptied and removed below spares/, and one rename moves
 * it to or from kernels/: what is in kernels/ is whole. Emptied directories are
 * used again with the files in them, because where many inodes are made and
 * removed some file systems get slow.
 */
#ifndef AQ_AGENT_DISK_KERNEL_DIRECTORY_H
#define AQ_AGENT_DISK_KERNEL_DIRECTORY_H

#include "agent/disk/disk_worker.h"

#define SPARES_MAX 128

struct kernel_directories {
    int kernels, logs, spares;
    uint64_t spare_names[SPARES_MAX]; /* emptied directories are called by numbers */
    size_t spare_count;
    uint64_t last_name;
};

/* Write and remove a file of 64 KiB: tells whether the file system takes new data. */
int kernel_directories_try_room(struct kernel_directories *directories, struct aq_error *err);

/* Make what is missing below 'state'; whatever spares/ had is removed. */
int kernel_directories_open(struct kernel_directories *directories, const char *state,
                            struct aq_error *err);
/* Also after a failed open. */
void kernel_directories_close(struct kernel_directories *directories);

/* Each does what disk_worker.h says of the job's action. */
int kernel_directory_create(struct kernel_directories *directories, const struct disk_job *job,
                            struct aq_error *err);
int kernel_directory_replace(struct kernel_directories *directories, const struct disk_job *job,
                             struct aq_error *err);
int kernel_directory_describe(struct kernel_directories *directories, const struct disk_job *job,
                              struct aq_error *err);
int kernel_directory_intend(struct kernel_directories *directories, const struct disk_job *job,
                            struct aq_error *err);
int kernel_directory_conclude(struct kernel_directories *directories, const struct disk_job *job,
                              struct aq_error *err);
int kernel_directory_forget(struct kernel_directories *directories, struct disk_job *job,
                            struct aq_error *err);
int kernel_directory_prune(struct kernel_directories *directories, const struct disk_job *job,
                           struct aq_error *err);

/* Remove what kernel_directory_create() made. */
void kernel_directory_undo_create(struct kernel_directories *directories,
                                  const struct disk_job *job);

#endif
