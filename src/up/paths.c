/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - everything that has a place below the state directory, and the programs */
#include "up/paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/strbuf.h"

/* Database, its reserve, logs, and a first session. */
#define NEW_MIB 16u
#define NEW_INODES 100

static int paths_find_program(const char *name, char **ret, struct aq_error *err)
{
    char *path = installed_find(name);

    if (!path)
        return aq_fail(err, ENOENT,
                       "the program %s is neither beside aliquot-up nor in bin; "
                       "install or build it",
                       name);
    *ret = path;
    return 0;
}

int paths_check_room(const struct paths *paths, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/aliquot.db.key", paths->manager_state);
    AQ_CLEANUP(aq_freep) char *folder = fs_find_existing(paths->state);
    struct statvfs fs;
    uint64_t free_mib;

    if (access(key, F_OK) == 0 || statvfs(folder, &fs) < 0)
        return 0;
    if (fs.f_flag & ST_RDONLY)
        return aq_fail(err, EROFS,
                       "the file system of '%s' is mounted read-only; remount it writable, or "
                       "choose another --state",
                       paths->state);
    free_mib = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
    if (free_mib < NEW_MIB)
        return aq_fail(err, ENOSPC,
                       "a new cluster needs %u MiB, but the file system of '%s' has %llu MiB free; "
                       "free some space there, or choose another --state",
                       NEW_MIB, paths->state, (unsigned long long)free_mib);
    if (fs.f_files && fs.f_favail < NEW_INODES)
        return aq_fail(err, ENOSPC,
                       "a new cluster needs %u inodes, but the file system of '%s' has %llu free; "
                       "remove files there, or choose another --state",
                       NEW_INODES, paths->state, (unsigned long long)fs.f_favail);
    return 0;
}

int paths_make_folders(const struct paths *paths, struct aq_error *err)
{
    const char *const folders[] = { paths->state, paths->manager_state };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(folders); i++)
        r = fs_mkdirs(folders[i], 0700, err);
    return r;
}

int paths_init(struct paths *paths, const char *state_dir, const struct paths_wanted *wanted,
               struct aq_error *err)
{
    const struct {
        char **path;
        const char *name;
    } files[] = {
        { &paths->state, "" },
        { &paths->lock, "/lock" },
        { &paths->info, "/up.json" },
        { &paths->log, "/up.log" },
        { &paths->manager_state, "/manager" },
        { &paths->manager_log, "/manager.log" },
        { &paths->manager_notify, "/manager.notify" },
        { &paths->credentials, "/admin.json" },
    };
    int r;

    *paths = (struct paths){ .state = NULL };
    for (size_t i = 0; i < AQ_COUNT(files); i++)
        *files[i].path = aq_format("%s%s", state_dir, files[i].name);
    r = paths_find_program("aliquot-manager", &paths->manager, err);
    if (r == 0)
        r = paths_find_program("aliquot-agent", &paths->agent, err);
    if (r == 0 && wanted->proxy)
        r = paths_find_program("aliquot-proxy", &paths->proxy, err);
    if (r == 0 && wanted->storage)
        r = paths_find_program("aliquot-storage", &paths->storage, err);
    if (r == 0 && wanted->web)
        r = paths_find_program("aliquot-web", &paths->web, err);
    return r < 0 ? r : paths_find_program("aliquot", &paths->cli, err);
}

void paths_done(struct paths *paths)
{
    char **const all[] = {
        &paths->state,         &paths->lock,        &paths->info,           &paths->log,
        &paths->manager_state, &paths->manager_log, &paths->manager_notify, &paths->credentials,
        &paths->manager,       &paths->agent,       &paths->proxy,          &paths->storage,
        &paths->web,           &paths->cli,
    };

    for (size_t i = 0; i < AQ_COUNT(all); i++) {
        free(*all[i]);
        *all[i] = NULL;
    }
}
