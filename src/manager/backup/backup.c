/* SPDX-License-Identifier: Apache-2.0 */
/* All that is durable of a cluster, as one file. */
#include "manager/backup/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"
#include "base/pace.h"
#include "base/strbuf.h"
#include "manager/backup/members.h"
#include "manager/backup/passphrase.h"
#include "manager/backup/place.h"
#include "manager/backup/plain_copy.h"
#include "store/move.h"

#define NAME_BEGIN "aliquot-"
#define NAME_END ".backup"
#define PARTIAL ".partial"

/* ---- places ---- */

static char *backup_join(const char *folder, const char *name)
{
    return aq_format("%s/%s", folder, name);
}

/* The file that 'path' names, or a new one in that folder. */
static char *backup_name(const char *path)
{
    time_t now = time(NULL);
    struct tm utc;
    struct stat st;
    char name[64];

    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return aq_strdup(path);
    (void)gmtime_r(&now, &utc);
    (void)strftime(name, sizeof(name), NAME_BEGIN "%Y%m%d-%H%M%S" NAME_END, &utc);
    return backup_join(path, name);
}

/* ---- create ---- */

static int backup_add_all(struct sealed_file *f, const struct backup_options *o, const char *copy,
                          struct pace *pace, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(o->state_dir, o->database);
    AQ_CLEANUP(aq_freep) char *ca = backup_join(o->state_dir, "ca");
    int r = members_add_file(f, "aliquot.db", copy, pace, err);

    if (r == 0)
        r = members_add_file(f, "aliquot.db.key", place.key, pace, err);
    if (r == 0)
        r = members_add_folder(f, "ca", ca, pace, err);
    if (r == 0 && o->settings && access(o->settings, R_OK) == 0)
        r = members_add_file(f, "manager.toml", o->settings, pace, err);
    return r < 0 ? r : sealed_file_finish(f, err);
}

/* Under a name of its own until it is whole. */
static int backup_write(const struct backup_options *o, const char *path, const char *copy,
                        const char *passphrase, struct pace *pace, struct aq_error *err)
{
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = NULL;
    AQ_CLEANUP(aq_freep) char *partial = aq_format("%s" PARTIAL, path);
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    (void)unlink(partial);
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "create '%s'", partial);
    (void)flock(fd, LOCK_EX | LOCK_NB); /* it is at work: see backup_remove_partial() */
    r = sealed_file_create(fd, passphrase, &f, err);
    pace_step(pace); /* the key took some time */
    if (r == 0)
        r = backup_add_all(f, o, copy, pace, err);
    AQ_FAULT("manager.backup.written");
    if (r == 0 && fsync(fd) < 0)
        r = aq_fail_errno(err, "sync '%s'", partial);
    if (r == 0 && link(partial, path) < 0)
        r = aq_fail_errno(err, "name '%s'", path);
    (void)unlink(partial);
    if (r == 0 && (r = fs_sync_parent(AT_FDCWD, path, err)) < 0)
        (void)unlink(path);
    return r;
}

static bool backup_has_end(const struct dirent *entry, const char *end)
{
    size_t len = strlen(entry->d_name);

    return strncmp(entry->d_name, NAME_BEGIN, strlen(NAME_BEGIN)) == 0 && len > strlen(end)
           && strcmp(entry->d_name + len - strlen(end), end) == 0;
}

static int backup_is_one(const struct dirent *entry)
{
    return backup_has_end(entry, NAME_END);
}

static int backup_is_partial(const struct dirent *entry)
{
    return backup_has_end(entry, NAME_END PARTIAL);
}

typedef int (*backup_filter_fn)(const struct dirent *entry);

/* By time, as their names say it. */
static int backup_scan(const char *folder, backup_filter_fn filter, struct dirent ***ret,
                       struct aq_error *err)
{
    int count = scandir(folder, ret, filter, alphasort);

    return count < 0 ? aq_fail_errno(err, "read the folder '%s'", folder) : count;
}

static void backup_scan_free(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

static int backup_remove_old(const char *folder, int keep, struct aq_error *err)
{
    struct dirent **entries = NULL;
    int count = backup_scan(folder, backup_is_one, &entries, err), r = AQ_MIN(count, 0);

    for (int i = 0; r == 0 && i < count - keep; i++) {
        AQ_CLEANUP(aq_freep) char *path = backup_join(folder, entries[i]->d_name);

        if (unlink(path) < 0)
            r = aq_fail_errno(err, "remove '%s'", path);
        else
            (void)printf("removed %s\n", path);
    }
    backup_scan_free(entries, count);
    return r;
}

/* Those in the folder that a kill has left: who makes one holds its lock. */
static void backup_remove_partial(const char *folder)
{
    struct dirent **entries = NULL;
    int count = backup_scan(folder, backup_is_partial, &entries, NULL);

    for (int i = 0; i < count; i++) {
        AQ_CLEANUP(aq_freep) char *path = backup_join(folder, entries[i]->d_name);
        AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlink(path);
    }
    backup_scan_free(entries, count);
}

static int backup_create_at(const struct backup_options *o, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(o->state_dir, o->database);
    AQ_CLEANUP(plain_copy_done) struct plain_copy room = PLAIN_COPY;
    AQ_CLEANUP(aq_freep) char *copy = NULL;
    char passphrase[PASSPHRASE_MAX + 1];
    struct pace pace;
    struct stat st;
    int r;

    if ((r = passphrase_read(o->passphrase_file, true, passphrase, err)) < 0
        || (r = plain_copy_make(o->state_dir, &room, err)) < 0)
        return r;
    pace_begin(&pace);
    copy = backup_join(room.folder, "aliquot.db");
    r = store_copy(place.where, copy, &pace, err);
    AQ_FAULT("manager.backup.copied");
    if (r == 0)
        r = backup_write(o, path, copy, passphrase, &pace, err);
    explicit_bzero(passphrase, sizeof(passphrase));
    if (r == 0 && stat(path, &st) == 0)
        (void)printf("%s: %lld bytes\n", path, (long long)st.st_size);
    return r;
}

/* The manager's own work comes first, for processors and for the disk: what somebody has
 * chosen, as the unit does, stays.
 */
static void backup_yield(void)
{
    if (getpriority(PRIO_PROCESS, 0) != 0)
        return;
    (void)setpriority(PRIO_PROCESS, 0, 10);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

int backup_create(const struct backup_options *o, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = backup_name(o->path);
    int r;

    backup_yield();
    if (strcmp(path, o->path) != 0)
        backup_remove_partial(o->path);
    r = backup_create_at(o, path, err);
    if (r < 0 || o->keep == 0)
        return r;
    return strcmp(path, o->path) == 0
               ? aq_fail_field(err, EINVAL, "--keep", "belongs to a folder, '%s' is a file", path)
               : backup_remove_old(o->path, o->keep, err);
}

/* ---- verify and restore ---- */

/* Unpack and audit. */
static int backup_unpack(const struct backup_options *o, struct plain_copy *room, int64_t *ret_rows,
                         struct aq_error *err)
{
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = NULL;
    AQ_CLEANUP(aq_closep) int fd = open(o->path, O_RDONLY | O_CLOEXEC);
    AQ_CLEANUP(aq_freep) char *file = NULL, *key = NULL;
    char passphrase[PASSPHRASE_MAX + 1];
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", o->path);
    r = passphrase_read(o->passphrase_file, false, passphrase, err);
    if (r == 0)
        r = sealed_file_open(fd, passphrase, &f, err);
    explicit_bzero(passphrase, sizeof(passphrase));
    if (r == 0)
        r = plain_copy_make(o->state_dir, room, err);
    if (r == 0)
        r = members_extract(f, room->folder, err);
    AQ_FAULT("manager.restore.unpacked");
    if (r < 0)
        return aq_error_wrap(err, "'%s'", o->path);
    file = backup_join(room->folder, "aliquot.db");
    key = backup_join(room->folder, "aliquot.db.key");
    if (access(file, F_OK) < 0 || access(key, F_OK) < 0)
        return aq_fail(err, EBADMSG, "'%s' has no database and key", o->path);
    return store_verify(file, key, ret_rows, err);
}

int backup_verify(const struct backup_options *o, struct aq_error *err)
{
    AQ_CLEANUP(plain_copy_done) struct plain_copy room = PLAIN_COPY;
    int64_t rows = 0;
    int r = backup_unpack(o, &room, &rows, err);

    if (r == 0)
        (void)printf("%s: whole; %lld rows, the ledger is clean\n", o->path, (long long)rows);
    return r;
}

static int backup_fail_taken(const char *path, struct aq_error *err)
{
    return aq_fail(err, EEXIST,
                   "'%s' is there: a cluster is not overwritten; move its state folder away, or "
                   "name another --state",
                   path);
}

/* A key is there if a restore of this backup broke off, or of another cluster. */
static int backup_check_key(const struct backup_options *o, const struct place *place,
                            const char *folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *from = backup_join(folder, "aliquot.db.key");
    AQ_CLEANUP(aq_freep) char *ca = backup_join(o->state_dir, "ca");
    AQ_CLEANUP(strbuf_donep) struct strbuf mine = STRBUF_INIT, there = STRBUF_INIT;
    int r;

    if (access(place->key, F_OK) < 0)
        return access(ca, F_OK) == 0 ? backup_fail_taken(ca, err) : 0;
    r = fs_read(AT_FDCWD, from, 4096, &mine, err);
    if (r == 0)
        r = fs_read(AT_FDCWD, place->key, 4096, &there, err);
    if (r < 0)
        return r;
    return mine.len == there.len && memcmp(mine.data, there.data, mine.len) == 0
               ? 0
               : backup_fail_taken(place->key, err);
}

/* What is there already is of a restore that broke off. */
static int backup_move_in(const char *folder, const char *state, const char *name,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *from = backup_join(folder, name), *to = backup_join(state, name);

    if (access(from, F_OK) < 0 || access(to, F_OK) == 0)
        return 0;
    return rename(from, to) < 0 ? aq_fail_errno(err, "put '%s' into place", to)
                                : fs_sync_parent(AT_FDCWD, to, err);
}

/* The key first, it tells whose the rest is; the database last, a manager looks for it. */
static int backup_put(const struct backup_options *o, const struct place *place, const char *folder,
                      struct aq_error *err)
{
    static const char *const names[] = { "aliquot.db.key", "ca", "manager.toml" };
    AQ_CLEANUP(aq_freep) char *file = backup_join(folder, "aliquot.db");
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(names); i++) {
        r = backup_move_in(folder, o->state_dir, names[i], err);
        AQ_FAULT("manager.restore.moved");
    }
    if (r < 0)
        return r;
    return o->database ? store_move(
               &(struct store_move){ .from = file, .to = o->database, .key_path = place->key }, err)
                       : backup_move_in(folder, o->state_dir, "aliquot.db", err);
}

/* The file's time stands for when it was made: the same if a restore is given again. */
static int backup_mark(const struct backup_options *o, const char *folder, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *file = backup_join(folder, "aliquot.db");
    AQ_CLEANUP(aq_freep) char *key = backup_join(folder, "aliquot.db.key");
    struct stat st;

    if (stat(o->path, &st) < 0)
        return aq_fail_errno(err, "look at '%s'", o->path);
    return store_mark_restored(file, key, (int64_t)st.st_mtime * USEC_PER_SEC, err);
}

int backup_restore(const struct backup_options *o, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(o->state_dir, o->database);
    AQ_CLEANUP(plain_copy_done) struct plain_copy room = PLAIN_COPY;
    int64_t rows = 0;
    int r = fs_mkdirs(o->state_dir, 0700, err);

    if (r < 0)
        return r;
    if (access(place.file, F_OK) == 0)
        return backup_fail_taken(place.file, err);
    if ((r = backup_unpack(o, &room, &rows, err)) < 0
        || (r = backup_check_key(o, &place, room.folder, err)) < 0
        || (r = backup_mark(o, room.folder, err)) < 0
        || (r = backup_put(o, &place, room.folder, err)) < 0)
        return r;
    (void)printf("%lld rows are restored to %s%s\n", (long long)rows, o->state_dir,
                 o->database ? " and to the server" : "");
    (void)printf("the settings of then are in %s/manager.toml, if there were any\n", o->state_dir);
    (void)printf(
        "start the manager: it starts no session, and keeps what is newer on agents, until "
        "'aliquot admin orphan ls' is worked through\n");
    return 0;
}

/* ---- list ---- */

int backup_list(const struct backup_options *o, struct aq_error *err)
{
    struct dirent **entries = NULL;
    int count = backup_scan(o->path, backup_is_one, &entries, err);

    for (int i = 0; i < count; i++) {
        AQ_CLEANUP(aq_freep) char *path = backup_join(o->path, entries[i]->d_name);
        struct stat st;

        if (stat(path, &st) == 0)
            (void)printf("%-40s %12lld bytes\n", entries[i]->d_name, (long long)st.st_size);
    }
    backup_scan_free(entries, count);
    return AQ_MIN(count, 0);
}
