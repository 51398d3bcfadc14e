/* SPDX-License-Identifier: Apache-2.0 */
/* node_mounts.c - see node_mounts.h */
#include "monitor/node_mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mountinfo.h"
#include "base/strbuf.h"

#define MOUNTS_MAX 65536
#define STACKED_MAX 64 /* mounts at one path */

static bool node_mounts_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return strncmp(path, above, len) == 0 && (path[len] == '/' || !path[len]);
}

static bool node_mounts_is_kept(const char *path, const char *stage)
{
    static const char *const kept[] = { "/proc", "/sys", "/dev" };

    for (size_t i = 0; i < AQ_COUNT(kept); i++)
        if (node_mounts_is_below(path, kept[i]))
            return true;
    return strcmp(path, "/") == 0 || node_mounts_is_below(path, stage)
           || node_mounts_is_below(stage, path);
}

/* What is below a mount that goes, goes with it; what the node unmounts below a slave goes too. */
static bool node_mounts_must_go(const struct mountinfo *mounts, size_t count, size_t at,
                                const char *stage)
{
    if (node_mounts_is_kept(mounts[at].path, stage))
        return false;
    for (size_t i = 0; i < count; i++)
        if (mounts[i].id == mounts[at].parent)
            return !mounts[i].is_slave && node_mounts_is_kept(mounts[i].path, stage);
    return false;
}

/* The newest first, as it may cover older ones. */
static void node_mounts_detach(char *text, const char *stage)
{
    struct mountinfo *mounts = calloc(MOUNTS_MAX, sizeof(*mounts));
    size_t count = 0;
    char *line;

    while (mounts && count < MOUNTS_MAX && (line = strsep(&text, "\n")))
        count += mountinfo_parse(line, &mounts[count]);
    for (size_t i = count; i-- > 0;)
        for (int stacked = 0; node_mounts_must_go(mounts, count, i, stage) && stacked < STACKED_MAX
                              && umount2(mounts[i].path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
             stacked++)
            ;
    free(mounts);
}

static void node_mounts_run(int mount_namespace, const char *given)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char stage[PATH_MAX];

    if (setns(mount_namespace, CLONE_NEWNS) == 0 && realpath(given, stage)
        && fs_read(AT_FDCWD, "/proc/self/mountinfo", 16 << 20, &text, NULL) == 0)
        node_mounts_detach(text.data, stage);
}

int node_mounts_release(int mount_namespace, const char *stage, struct aq_error *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return aq_fail_errno(err, "fork to release the node's mounts");
    if (pid == 0) {
        node_mounts_run(mount_namespace, stage);
        _exit(0);
    }
    return 0;
}
