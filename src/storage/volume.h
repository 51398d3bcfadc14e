/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h - a directory in which folders lie, by their ids
 *
 * Where, is said by transfer/volume_layout.h. What is to be removed is renamed to ".purge-..." in
 * the volume first; a copy that is not whole is called ".copy-...". All calls block for the disk:
 * never on the loop's thread. A directory is opened by each of them, so that one that is mounted
 * again is found. They fail with -ENODEV where a volume is not there, others can enter it, or it
 * has been there and its mark is no more: nothing is made, or taken for removed, below a file
 * system that is not mounted.
 */
#ifndef AQ_STORAGE_VOLUME_H
#define AQ_STORAGE_VOLUME_H

#include <stdbool.h>

#include "base/error.h"
#include "base/uuid.h"

struct volume_dir {
    const char *name; /* errors have it, as users see them */
    const char *path;
    const char *seen; /* a file elsewhere: the mark has been seen at the path */
};

/* Has it been there, and has no mark now? */
bool volume_is_away(const struct volume_dir *volume);

/* -EPERM where users of the machine who are neither owner nor of the group have any permission: a
 * setuid program in a folder would give them the rights of its owner. 0 for a volume that is not
 * there, or away.
 */
int volume_check_mode(const struct volume_dir *volume, struct aq_error *err);

/* The folder's directory (O_PATH), -ENOENT if it is not there, -errno of the volume. */
int volume_open_folder(const struct volume_dir *volume, const struct uuid *id,
                       struct aq_error *err);

/* -EEXIST if it is there. */
int volume_create_folder(const struct volume_dir *volume, const struct uuid *id,
                         struct aq_error *err);

/* Its files are out of reach and on the way out after this, whatever happens; one that is not
 * there is fine. volume_purge() frees the space.
 */
int volume_drop_folder(const struct volume_dir *volume, const struct uuid *id,
                       struct aq_error *err);

/* Make a folder that has what another one has; *done grows by the bytes that are copied. -EEXIST,
 * -EDQUOT if these are more than 'quota' (0 = none). May
 * take long.
 */
int volume_clone_folder(const struct volume_dir *volume, const struct uuid *id,
                        const struct uuid *to, uint64_t quota, _Atomic uint64_t *done,
                        struct aq_error *err);

/* Have agents know it for a volume, by a file in it; the other calls do so where they can. */
int volume_mark(const struct volume_dir *volume, struct aq_error *err);

/* Remove all that was dropped, and at the start ('is_first') what a killed process left half
 * copied. May take long.
 */
int volume_purge(const struct volume_dir *volume, bool is_first, struct aq_error *err);

#endif
