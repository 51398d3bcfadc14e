/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a backup's plain copy. */
#include "manager/backup/plain_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

#define TEMPORARY "aliquot-backup-"
#define TEMPORARY_NAME TEMPORARY "XXXXXX"
#define ATTEMPTS 10

/* ---- in the state folder ---- */

static int plain_copy_lock(const char *state, struct plain_copy *copy, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/.backup.lock", state);

    copy->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (copy->lock < 0)
        return aq_fail_errno(err, "open '%s'", path);
    return flock(copy->lock, LOCK_EX | LOCK_NB) < 0 ? aq_fail(
               err, EBUSY, "another backup or restore works in '%s': wait for its end", state)
                                                    : 0;
}

static int plain_copy_make_in_state(const char *state, struct plain_copy *copy,
                                    struct aq_error *err)
{
    int r = plain_copy_lock(state, copy, err);

    if (r < 0)
        return r;
    copy->folder = aq_format("%s/.backup", state);
    r = fs_remove_tree(AT_FDCWD, copy->folder, err);
    if (r == 0 && mkdir(copy->folder, 0700) < 0)
        r = aq_fail_errno(err, "make the folder '%s'", copy->folder);
    return r;
}

/* ---- in the folder for temporary files ---- */

static const char *plain_copy_tmpdir(void)
{
    const char *set = getenv("TMPDIR");

    return set && *set ? set : "/tmp";
}

static int plain_copy_is_temporary(const struct dirent *entry)
{
    return strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)) == 0
           && strlen(entry->d_name) == strlen(TEMPORARY_NAME);
}

/* Its lock, if it is a folder of ours that nobody works in; or -1. */
static int plain_copy_take(const char *path)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return AQ_TAKE_FD(fd);
}

static void plain_copy_remove_temporary(void)
{
    struct dirent **entries = NULL;
    int count = scandir(plain_copy_tmpdir(), &entries, plain_copy_is_temporary, NULL);

    for (int i = 0; i < count; i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", plain_copy_tmpdir(),
                                                    entries[i]->d_name);
        AQ_CLEANUP(aq_closep) int lock = plain_copy_take(path);

        if (lock >= 0)
            (void)fs_remove_tree(AT_FDCWD, path, NULL);
        free(entries[i]);
    }
    free(entries);
}

/* Another one may take it for a leftover before it is locked. */
static int plain_copy_make_temporary(struct plain_copy *copy, struct aq_error *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/" TEMPORARY_NAME, plain_copy_tmpdir());

        if (!mkdtemp(folder))
            return aq_fail_errno(err, "make a folder in '%s'", plain_copy_tmpdir());
        copy->lock = plain_copy_take(folder);
        if (copy->lock >= 0 && access(folder, F_OK) == 0) {
            copy->folder = AQ_TAKE(folder);
            return 0;
        }
        aq_closep(&copy->lock);
    }
    return aq_fail(err, EBUSY, "lock a folder in '%s'", plain_copy_tmpdir());
}

/* ---- both ---- */

int plain_copy_make(const char *state, struct plain_copy *ret, struct aq_error *err)
{
    plain_copy_remove_temporary();
    return access(state, W_OK) == 0 ? plain_copy_make_in_state(state, ret, err)
                                    : plain_copy_make_temporary(ret, err);
}

void plain_copy_done(struct plain_copy *copy)
{
    if (copy->folder)
        (void)fs_remove_tree(AT_FDCWD, copy->folder, NULL);
    free(copy->folder);
    aq_closep(&copy->lock);
}

void plain_copy_remove_leftovers(const char *state)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/.backup", state);
    struct plain_copy copy = PLAIN_COPY;

    if (access(folder, F_OK) == 0 && plain_copy_lock(state, &copy, NULL) == 0)
        (void)fs_remove_tree(AT_FDCWD, folder, NULL);
    aq_closep(&copy.lock);
    plain_copy_remove_temporary();
}
