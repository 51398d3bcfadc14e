/* SPDX-License-Identifier: Apache-2.0 */
/* members.h - files within a sealed file
 *
 * Each is its name's length (2 bytes), its size (8 bytes, both little-endian),
 * name and bytes. Names are those that a backup has: a name of its own, or one
 * below "ca/".
 */
#ifndef AQ_MANAGER_BACKUP_MEMBERS_H
#define AQ_MANAGER_BACKUP_MEMBERS_H

#include <stdint.h>

#include "base/pace.h"
#include "manager/backup/sealed_file.h"

#define MEMBER_NAME_MAX 128

/* Add the file at 'path' under 'name', with pauses. */
int members_add_file(struct sealed_file *f, const char *name, const char *path, struct pace *pace,
                     struct aq_error *err);
/* All regular files of a folder, as "PREFIX/name"; nothing if it does not exist. */
int members_add_folder(struct sealed_file *f, const char *prefix, const char *path,
                       struct pace *pace, struct aq_error *err);

/* Write all members below 'folder', which is empty, mode 0600. -EBADMSG. */
int members_extract(struct sealed_file *f, const char *folder, struct aq_error *err) AQ_UNTRUSTED;

#endif
