/* SPDX-License-Identifier: Apache-2.0 */
/* folder_mount.h - folders that a session finds among its files
 *
 * Pure. The manager says which folder, the agent opens its files by the id and mounts them at the
 * target. In kernel.create and in the store one is
 *
 *     {"folder": ID, "name": "data", "host": "local:volume1", "path": "sub/dir",
 *      "target": "/home/work/data", "mode": "ro"}
 *
 * without a path where the whole folder is meant; "mode" is "ro" or "rw".
 */
#ifndef AQ_MODEL_FOLDER_MOUNT_H
#define AQ_MODEL_FOLDER_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/uuid.h"

struct json_t;

#define FOLDER_MOUNTS_MAX 64               /* of one session */
#define FOLDER_MOUNTS_BYTES_MAX (16 << 10) /* of all their texts */
#define FOLDER_MOUNT_WORK "/home/work"     /* where targets are that name no place of their own */

struct folder_mount {
    struct uuid folder;
    const char *name;   /* the folder's, to speak of it */
    const char *host;   /* "STORAGE:VOLUME" */
    const char *path;   /* of a directory in it, clean; NULL = the folder itself */
    const char *target; /* absolute and clean, inside */
    bool is_read_only;
};

struct folder_mounts {
    struct folder_mount *items;
    size_t count;
};

/* A path in a folder as it is kept: without "." and doubled slashes; *ret is NULL for the folder
 * itself. -EINVAL with field "mounts" for an absolute one and one with "..".
 */
int folder_mount_path(const char *text, struct arena *arena, const char **ret,
                      struct aq_error *err) AQ_UNTRUSTED;

/* The same of a target: one that is relative is below FOLDER_MOUNT_WORK. */
int folder_mount_target(const char *text, struct arena *arena, const char **ret,
                        struct aq_error *err) AQ_UNTRUSTED;

/* Is the clean target what a container has of the platform or its Linux, in such a place, or above
 * one?
 */
bool folder_mount_is_reserved(const char *target);

/* By depth of their targets: what lies within another one's comes after it. */
void folder_mounts_sort(struct folder_mounts *mounts);

/* Count, sizes, paths and order; each target once, and none over what a container has of the
 * platform or its Linux. -EINVAL with field "mounts", in words that name the folder.
 */
int folder_mounts_check(const struct folder_mounts *mounts, struct aq_error *err);

/* The list as JSON. */
void folder_mounts_write(const struct folder_mounts *mounts, struct jsonw *w);

/* From JSON, texts copied into the arena; not checked beyond types. -EINVAL with field "mounts".
 */
int folder_mounts_read(const struct json_t *list, struct arena *arena, struct folder_mounts *ret,
                       struct aq_error *err) AQ_UNTRUSTED;

#endif
