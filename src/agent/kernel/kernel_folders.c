/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_folders.c - see kernel_folders.h */
#include "agent/kernel/kernel_folders.h"

#include <errno.h>
#include <string.h>

#include "agent/volume/volumes.h"
#include "transfer/volume_layout.h"

#define FIELD "mounts"

static bool kernel_folders_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return strncmp(path, above, len) == 0 && (path[len] == '/' || !path[len]);
}

/* Nothing of the node may end up in a folder, nor a folder in what is the node's. */
static int kernel_folders_check_target(const struct volume_mount *folder, const char *target,
                                       struct aq_error *err)
{
    return kernel_folders_is_below(folder->target, target)
                   || kernel_folders_is_below(target, folder->target)
               ? aq_fail_field(err, EINVAL, FIELD,
                               "folder '%s' cannot be mounted at '%s': this node needs '%s'",
                               folder->name, folder->target, target)
               : 0;
}

static int kernel_folders_check(const struct volume_mount *folder, const struct container_spec *c,
                                struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->mount_count; i++)
        r = kernel_folders_check_target(folder, c->mounts[i].target, err);
    for (size_t i = 0; r == 0 && i < c->device_count; i++)
        r = kernel_folders_check_target(folder, c->devices[i].target, err);
    return r;
}

static int kernel_folders_specify(const struct local_kernel *k, const struct folder_mount *mount,
                                  struct arena *arena, struct volume_mount *ret,
                                  struct aq_error *err)
{
    char path[VOLUME_FOLDER_MAX];

    *ret = (struct volume_mount){ .folder = arena_strdup(arena,
                                                         volume_layout_path(&mount->folder, path)),
                                  .path = mount->path ? mount->path : "",
                                  .name = mount->name,
                                  .target = mount->target,
                                  .may_write = !mount->is_read_only };
    return volumes_find(k->agent->volumes, mount->host, &ret->volume, err);
}

int kernel_folders_add(const struct local_kernel *k, struct arena *arena, struct container_spec *c,
                       struct aq_error *err)
{
    const struct folder_mounts *mounts = &kernel_get_spec(k)->session.mounts;
    struct volume_mount *folders = arena_array(arena, mounts->count + 1, sizeof(*folders));
    int r = folder_mounts_check(mounts, err);

    for (size_t i = 0; r == 0 && i < mounts->count; i++) {
        r = kernel_folders_specify(k, &mounts->items[i], arena, &folders[i], err);
        if (r == 0)
            r = kernel_folders_check(&folders[i], c, err);
    }
    c->folders = folders;
    c->folder_count = mounts->count;
    return r;
}

int kernel_folders_check_process(const struct local_kernel *k, struct aq_error *err)
{
    return kernel_get_spec(k)->session.mounts.count
               ? aq_fail_as(err, ENOTSUP, "no-containers", FIELD,
                            "a session that is a process of its node has no folders: name an image")
               : 0;
}
