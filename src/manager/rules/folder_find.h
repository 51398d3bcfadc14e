/* SPDX-License-Identifier: Apache-2.0 */
/* folder_find.h - which folder a client means, and whether it may have a name
 *
 * For functions given to store_read() and store_write().
 */
#ifndef AQ_MANAGER_RULES_FOLDER_FIND_H
#define AQ_MANAGER_RULES_FOLDER_FIND_H

#include "store/folder.h"

/* Those that the viewer can name: own, of projects, shared; administrators those of their domain,
 * superadmins all. By id, or by name: of own, then of projects, then of shared folders, and what
 * is in the trash only where no other has the name. Names are not looked for among what others
 * own. In the arena. -ENOENT (object-not-found), -EEXIST (too-many-vfolders): the name does not
 * tell which.
 */
int folder_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                struct arena *arena, struct folder *ret, struct aq_error *err);

/* -EEXIST (vfolder-already-exists): the owner sees a folder of this name that is not in the trash
 * and not 'but' (NULL = none).
 */
int folder_check_name(struct store_tx *tx, const struct folder_owner *owner, const char *name,
                      const struct uuid *but, struct aq_error *err);

#endif
