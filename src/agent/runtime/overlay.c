/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.c - can containers write over their images in this directory? */
#include "agent/runtime/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/strbuf.h"

static int overlay_create(const char *probe, struct aq_error *err)
{
    static const char *const keys[] = { "lowerdir", "upperdir", "workdir" };
    AQ_CLEANUP(aq_closep) int fs = fsopen("overlay", FSOPEN_CLOEXEC);

    if (fs < 0)
        return aq_fail_errno(err, "overlayfs cannot be used");
    for (size_t i = 0; i < AQ_COUNT(keys); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", probe, keys[i]);
        int r = fs_mkdirs(path, 0700, err);

        if (r < 0)
            return r;
        if (fsconfig(fs, FSCONFIG_SET_STRING, keys[i], path, 0) < 0)
            return aq_fail_errno(err, "overlayfs refuses '%s'", path);
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return aq_fail_errno(err, "overlayfs cannot write to the file system of '%s'", probe);
    return 0;
}

int overlay_check(const char *directory, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *probe = aq_format("%s/probe", directory);
    int r = overlay_create(probe, err);

    (void)fs_remove_tree(AT_FDCWD, probe, NULL);
    return r;
}
