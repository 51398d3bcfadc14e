/* SPDX-License-Identifier: Apache-2.0 */
/* joined_state.c - see joined_state.h */
#include "manager/joined_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"
#include "store/seal.h"

#define FOLDER_WRITING ".joining" /* incomplete, of no use to anybody */
#define FOLDER_READY ".joined"    /* complete */
#define LINE_MAX_BYTES 8192
#define ROOM_BYTES 32768 /* of all files together */

static const char *const joined_state_files[] = { "ca", "aliquot.db.key", "name", "database" };

static char *joined_state_path(const char *state_dir, const char *name)
{
    return aq_format("%s/%s", state_dir, name);
}

static int joined_state_write_line(const char *folder, const char *file, const char *text,
                                   struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = joined_state_path(folder, file);
    AQ_CLEANUP(aq_freep) char *line = aq_format("%s\n", text);

    return fs_write_atomic(AT_FDCWD, path, line, strlen(line), 0600, err);
}

int joined_state_prepare(const char *state_dir, struct aq_error *err)
{
    static const char *const marks[] = { "aliquot.db", "aliquot.db.key", "ca", "database" };
    static const char room[ROOM_BYTES];
    AQ_CLEANUP(aq_freep) char *path = joined_state_path(state_dir, ".room");
    struct aq_error why = { 0 };
    int r;

    for (size_t i = 0; i < AQ_COUNT(marks); i++) {
        AQ_CLEANUP(aq_freep) char *mark = joined_state_path(state_dir, marks[i]);

        if (access(mark, F_OK) == 0)
            return aq_fail(err, EEXIST,
                           "the state folder '%s' has a cluster already (%s): stop its manager, "
                           "and name another folder by --state, or remove this one",
                           state_dir, marks[i]);
    }
    /* Files that do not fit would cost the token, which is good for one join. */
    if ((r = fs_mkdirs(state_dir, 0700, &why)) == 0)
        r = fs_write_quick(AT_FDCWD, path, room, sizeof(room), 0600, &why);
    if (r < 0)
        return aq_fail(err, -r, "cannot join; cannot write to '%s': %s", state_dir,
                       fs_is_out_of_room(-r) ? fs_explain(-r) : why.text);
    (void)unlink(path);
    return 0;
}

int joined_state_write(const char *state_dir, const char *name, const char *ca,
                       const struct link_join_keys *keys, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *writing = joined_state_path(state_dir, FOLDER_WRITING);
    AQ_CLEANUP(aq_freep) char *ready = joined_state_path(state_dir, FOLDER_READY);
    AQ_CLEANUP(aq_freep) char *authority = joined_state_path(writing, "ca");
    AQ_CLEANUP(aq_freep) char *seal = joined_state_path(writing, "aliquot.db.key");
    int r = fs_remove_tree(AT_FDCWD, writing, err);

    if (r == 0)
        r = fs_mkdirs(writing, 0700, err);
    if (r == 0)
        r = pki_ca_import(authority, ca, keys->ca_key, err);
    if (r == 0)
        r = seal_import(seal, keys->seal_key, err);
    if (r == 0)
        r = joined_state_write_line(writing, "name", name, err);
    if (r == 0)
        r = joined_state_write_line(writing, "database", keys->database, err);
    AQ_FAULT("manager.join.written");
    if (r == 0 && rename(writing, ready) < 0)
        r = aq_fail_errno(err, "rename '%s' to '%s'", writing, ready);
    if (r == 0)
        r = fs_sync_parent(AT_FDCWD, ready, err);
    AQ_FAULT("manager.join.ready");
    return r < 0 ? r : joined_state_settle(state_dir, err);
}

int joined_state_settle(const char *state_dir, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *ready = joined_state_path(state_dir, FOLDER_READY);

    if (access(ready, F_OK) < 0)
        return 0;
    for (size_t i = 0; i < AQ_COUNT(joined_state_files); i++) {
        AQ_CLEANUP(aq_freep) char *from = joined_state_path(ready, joined_state_files[i]);
        AQ_CLEANUP(aq_freep) char *to = joined_state_path(state_dir, joined_state_files[i]);

        if (rename(from, to) < 0 && errno != ENOENT)
            return aq_fail_errno(err, "move '%s' to '%s'", from, to);
        AQ_FAULT("manager.join.moved");
    }
    if (rmdir(ready) < 0)
        return aq_fail_errno(err, "remove the folder '%s'", ready);
    return fs_sync_parent(AT_FDCWD, ready, err);
}

int joined_state_read(const char *state_dir, const char *file, char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = joined_state_path(state_dir, file);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, LINE_MAX_BYTES, &text, err);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    *ret = aq_strndup(text.len ? text.data : "", strcspn(text.len ? text.data : "", "\n"));
    return 0;
}

int joined_state_keep_name(const char *state_dir, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *kept = NULL;
    int r = joined_state_read(state_dir, "name", &kept, err);

    if (r < 0 || (kept && strcmp(kept, name) == 0))
        return r;
    r = fs_mkdirs(state_dir, 0700, err);
    return r < 0 ? r : joined_state_write_line(state_dir, "name", name, err);
}
