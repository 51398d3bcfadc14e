/* SPDX-License-Identifier: Apache-2.0 */
/* plain_copy.h - the folder of a backup's plain copy, while it is made or read
 *
 * ".backup" in the state folder under the lock ".backup.lock"; where that folder is not
 * there or not ours, "aliquot-backup-XXXXXX" in $TMPDIR (/tmp), which is locked itself.
 * What has no lock was left by a kill.
 */
#ifndef AQ_MANAGER_BACKUP_PLAIN_COPY_H
#define AQ_MANAGER_BACKUP_PLAIN_COPY_H

#include "base/error.h"

struct plain_copy {
    char *folder; /* mode 0700 */
    int lock;
};

#define PLAIN_COPY \
    {              \
        .lock = -1 \
    }

/* An empty one, after what kills have left is removed. -EBUSY: another works there. */
int plain_copy_make(const char *state_dir, struct plain_copy *ret, struct aq_error *err);
/* Remove it. */
void plain_copy_done(struct plain_copy *copy);

/* Remove what kills have left, not what is still made. */
void plain_copy_remove_leftovers(const char *state_dir);

#endif
