/* folder.h - what is done to kernels' folders, by the worker thread of disk.h
 *
 * Nothing here waits for the disk (accepted.h says why) but a new order for a
 * folder that is there: its spec.json must not be an older one.
 *
 * A folder is filled, emptied and removed below spares/, and one rename moves
 * it to or from kernels/: what is in kernels/ is whole. Emptied folders are
 * used again with the files in them, because where many inodes are made and
 * removed some file systems get slow.
 */
#ifndef AQ_AGENT_FOLDER_H
#define AQ_AGENT_FOLDER_H

#include "agent/disk.h"

#define SPARES_MAX 128

struct folders {
    int kernels, logs, spares;
    uint64_t spare_names[SPARES_MAX]; /* emptied folders are called by numbers */
    size_t spare_count;
    uint64_t last_name;
};

/* Make what is missing below 'state'; whatever spares/ had is removed. */
int folders_open(struct folders *folders, const char *state, struct aq_error *err);
/* Also after a failed open. */
void folders_close(struct folders *folders);

/* Each does what disk.h says of the job's action. */
int folder_create(struct folders *folders, const struct disk_job *job, struct aq_error *err);
int folder_replace(struct folders *folders, const struct disk_job *job, struct aq_error *err);
int folder_describe(struct folders *folders, const struct disk_job *job, struct aq_error *err);
int folder_intend(struct folders *folders, const struct disk_job *job, struct aq_error *err);
int folder_conclude(struct folders *folders, const struct disk_job *job, struct aq_error *err);
int folder_forget(struct folders *folders, struct disk_job *job, struct aq_error *err);
int folder_prune(struct folders *folders, const struct disk_job *job, struct aq_error *err);

/* Remove what folder_create() made. */
void folder_undo_create(struct folders *folders, const struct disk_job *job);

#endif
