/* SPDX-License-Identifier: Apache-2.0 */
/* folder_mount.c - which folders a session mounts: those that it names, and whether they still are
 */
#include "manager/rules/folder_mount.h"

#include <errno.h>
#include <string.h>

#include "manager/rules/folder_find.h"

#define FIELD "mounts"
#define AUTOMATIC_MAX 1000 /* rows that are looked through */

/* ---- one ---- */

static int mount_check_folder(const struct folder *folder,
                              const struct folder_mount_request *request,
                              enum folder_permission wanted, struct aq_error *err)
{
    enum folder_permission given = folder_permission_of(folder, &request->owner);

    if (given == FOLDER_NONE)
        return aq_fail_kind(
            err, EPERM, "generic-forbidden",
            "the folder '%s' cannot be mounted: the session's owner may not read it", folder->name);
    if (folder->status != FOLDER_READY)
        return aq_fail_kind(err, EBUSY, "vfolder-operation-failed", "the folder '%s' is %s%s",
                            folder->name, folder_status_words(folder->status),
                            folder->status == FOLDER_DELETE_PENDING ? "; restore it first" : "");
    if (wanted >= FOLDER_READ_WRITE && given == FOLDER_READ_ONLY)
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "the folder '%s' can only be mounted read-only: the session's "
                            "owner may not write to it",
                            folder->name);
    return 0;
}

/* "data/sub" becomes "data" and "sub". */
static void mount_split(const char *text, struct arena *arena, const char **ret_folder,
                        const char **ret_path)
{
    size_t len = strcspn(text, "/");

    *ret_folder = arena_strndup(arena, text, len);
    *ret_path = text[len] ? text + len + 1 : "";
}

/* Both parts of a path in the folder, clean. */
static int mount_join(const char *first, const char *second, struct arena *arena, const char **ret,
                      struct aq_error *err)
{
    size_t len = strlen(first);
    char *both = arena_array(arena, len + (second ? strlen(second) : 0) + 2, 1);

    if (second && second[0] == '/')
        return folder_mount_path(second, arena, ret, err); /* refuses it */
    memcpy(both, first, len + 1);
    if (second) {
        both[len] = '/';
        memcpy(both + len + (len > 0), second, strlen(second) + 1);
    }
    return folder_mount_path(both, arena, ret, err);
}

static int mount_find(struct store_tx *tx, const struct folder_mount_request *request,
                      const struct named_mount *named, struct arena *arena,
                      struct folder_mount *ret, struct folder *ret_folder, struct aq_error *err)
{
    const char *name, *path;
    int r;

    mount_split(named->folder, arena, &name, &path);
    if ((r = folder_find(tx, &request->owner, name, arena, ret_folder, err)) < 0
        || (r = mount_check_folder(ret_folder, request, named->permission, err)) < 0)
        return r;
    *ret = (struct folder_mount){
        .folder = ret_folder->id,
        .name = ret_folder->name,
        .host = ret_folder->host,
        .is_read_only = named->permission == FOLDER_READ_ONLY
                        || folder_permission_of(ret_folder, &request->owner) == FOLDER_READ_ONLY,
    };
    r = mount_join(path, named->path, arena, &ret->path, err);
    return r < 0 ? r
                 : folder_mount_target(named->target ? named->target : ret->name, arena,
                                       &ret->target, err);
}

/* ---- automatic ones ---- */

static bool mount_is_taken(const struct folder_mounts *mounts, const struct folder_mount *mount)
{
    for (size_t i = 0; i < mounts->count; i++)
        if (strcmp(mounts->items[i].target, mount->target) == 0
            || uuid_equals(&mounts->items[i].folder, &mount->folder))
            return true;
    return false;
}

/* Of the owner ('is_own'), or of the session's project. */
static int mount_add_automatic(struct store_tx *tx, const struct folder_mount_request *request,
                               const struct store_page *page, bool is_own, struct arena *arena,
                               struct folder_mounts_found *ret, struct aq_error *err)
{
    const struct folder *rows = page->rows;

    for (size_t i = 0; i < page->count && ret->mounts.count < FOLDER_MOUNTS_MAX; i++) {
        const struct folder *row = &rows[i];
        size_t at = ret->mounts.count;
        char id[UUID_TEXT_MAX];
        int r;

        if (row->status != FOLDER_READY
            || (is_own ? !folder_is_owner(row, &request->owner)
                       : !uuid_equals(&row->project_id, &request->project_id)))
            continue;
        r = mount_find(tx, request, &(struct named_mount){ .folder = uuid_format(&row->id, id) },
                       arena, &ret->mounts.items[at], &ret->folders[at], err);
        if (r < 0)
            return r;
        if (!mount_is_taken(&ret->mounts, &ret->mounts.items[at])
            && !folder_mount_is_reserved(ret->mounts.items[at].target))
            ret->mounts.count++;
    }
    return 0;
}

static int mount_find_automatic(struct store_tx *tx, const struct folder_mount_request *request,
                                struct arena *arena, struct folder_mounts_found *ret,
                                struct aq_error *err)
{
    const struct folder_list list = { .who = request->owner,
                                      .scope = FOLDERS_AUTOMATIC,
                                      .hides_trash = true };
    const struct store_query query = { .limit = AUTOMATIC_MAX };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    int r = store_list_folders(tx, &list, &query, &page, err);

    if (r == 0)
        r = mount_add_automatic(tx, request, page, true, arena, ret, err);
    return r < 0 ? r : mount_add_automatic(tx, request, page, false, arena, ret, err);
}

/* ---- all ---- */

int folder_mounts_find(struct store_tx *tx, const struct folder_mount_request *request,
                       struct arena *arena, struct folder_mounts_found *ret, struct aq_error *err)
{
    size_t most = request->count + (request->is_automatic ? FOLDER_MOUNTS_MAX : 0);
    int r = 0;

    *ret = (struct folder_mounts_found){ .folders = NULL };
    if (request->count > FOLDER_MOUNTS_MAX)
        return aq_fail_field(err, EINVAL, FIELD, "a session can mount %d folders at most",
                             FOLDER_MOUNTS_MAX);
    ret->mounts.items = arena_array(arena, most + 1, sizeof(*ret->mounts.items));
    ret->folders = arena_array(arena, most + 1, sizeof(*ret->folders));
    for (size_t i = 0; r == 0 && i < request->count; i++) {
        r = mount_find(tx, request, &request->named[i], arena, &ret->mounts.items[i],
                       &ret->folders[i], err);
        ret->mounts.count++;
    }
    return r == 0 && request->is_automatic ? mount_find_automatic(tx, request, arena, ret, err) : r;
}

/* ---- before the start ---- */

static int mount_check_again(struct store_tx *tx, const struct folder_viewer *owner,
                             const struct folder_mount *mount, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    enum folder_permission given;
    struct folder folder;
    char id[UUID_TEXT_MAX];
    int r = folder_find(tx, owner, uuid_format(&mount->folder, id), &arena, &folder, err);

    if (r == -ENOENT)
        return aq_fail_field(err, ESTALE, FIELD,
                             "folder '%s' is gone, or the session's owner may not see it any more",
                             mount->name);
    if (r < 0)
        return r;
    given = folder_permission_of(&folder, owner);
    if (folder.status != FOLDER_READY)
        return aq_fail_field(err, ESTALE, FIELD, "folder '%s' is %s", mount->name,
                             folder_status_words(folder.status));
    if (given == FOLDER_NONE || (given == FOLDER_READ_ONLY && !mount->is_read_only))
        return aq_fail_field(err, ESTALE, FIELD,
                             "the session's owner may not %s folder '%s' any more",
                             given == FOLDER_NONE ? "read" : "write to", mount->name);
    if (folder.bytes_max && folder.bytes > folder.bytes_max && !mount->is_read_only)
        return aq_fail_field(err, ESTALE, FIELD,
                             "folder '%s' is over its size: it has %lld bytes and may have %lld",
                             mount->name, (long long)folder.bytes, (long long)folder.bytes_max);
    return 0;
}

int folder_mounts_check_again(struct store_tx *tx, const struct folder_viewer *owner,
                              const struct folder_mounts *mounts, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < mounts->count; i++)
        r = mount_check_again(tx, owner, &mounts->items[i], err);
    return r;
}
