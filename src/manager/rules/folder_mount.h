/* SPDX-License-Identifier: Apache-2.0 */
/* folder_mount.h - which folders a session mounts: those that it names, and whether they still are
 *
 * For functions given to store_read(). What a mount may is decided here, from what its session's
 * owner may do with the folder (model/folder.h); whether folders of a storage
 * host may be mounted at all, in session_mounts_may() of session/session_params.c.
 */
#ifndef AQ_MANAGER_RULES_FOLDER_MOUNT_H
#define AQ_MANAGER_RULES_FOLDER_MOUNT_H

#include "model/folder.h"
#include "model/folder_mount.h"
#include "store/query.h"

/* A folder as a request names it. */
struct named_mount {
    const char *folder;                /* its name or id, and after a slash a directory in it */
    const char *path;                  /* of a directory in that; NULL = that itself */
    const char *target;                /* NULL = FOLDER_MOUNT_WORK/NAME */
    enum folder_permission permission; /* FOLDER_NONE = as much as the owner may */
};

/* Of one session. */
struct folder_mount_request {
    const struct named_mount *named;
    size_t count;
    bool is_automatic; /* those whose names begin with a dot, too: the owner's, and the project's */
    struct folder_viewer owner; /* of the session */
    struct uuid project_id;
};

/* A mount and its folder, by index; in the order of the request. */
struct folder_mounts_found {
    struct folder_mounts mounts;
    struct folder *folders;
};

/* In the arena. An automatic one gives way to a named one of its folder or target.
 * -ENOENT (object-not-found), -EPERM (generic-forbidden), -EBUSY, -EINVAL with field "mounts".
 */
int folder_mounts_find(struct store_tx *tx, const struct folder_mount_request *request,
                       struct arena *arena, struct folder_mounts_found *ret, struct aq_error *err);

/* Before the session starts: is each still there, may its owner still do as much, and is none that
 * it may write to over its size? -ESTALE with words that name the folder.
 */
int folder_mounts_check_again(struct store_tx *tx, const struct folder_viewer *owner,
                              const struct folder_mounts *mounts, struct aq_error *err);

#endif
