/* SPDX-License-Identifier: Apache-2.0 */
/* folder_mount.c - folders that a session finds among its files */
#include "model/folder_mount.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define FIELD "mounts"

/* ---- paths ---- */

/* A path's parts, each after a slash, behind 'prefix'. */
static int folder_mount_clean(const char *prefix, const char *text, struct arena *arena,
                              const char **ret, struct aq_error *err)
{
    size_t used = strlen(prefix);
    char *clean = arena_array(arena, used + strlen(text) + 2, 1);

    memcpy(clean, prefix, used);
    for (const char *part = text; *part;) {
        size_t len = strcspn(part, "/");

        if (len == 2 && memcmp(part, "..", 2) == 0)
            return aq_fail_field(err, EINVAL, FIELD, "'%.200s' has '..' in it", text);
        if (len > 0 && !(len == 1 && *part == '.')) {
            clean[used++] = '/';
            memcpy(clean + used, part, len);
            used += len;
        }
        part += len + (part[len] == '/');
    }
    if (used == 0 && text[0] == '/')
        clean[used++] = '/';
    clean[used] = '\0';
    *ret = clean;
    return 0;
}

int folder_mount_path(const char *text, struct arena *arena, const char **ret, struct aq_error *err)
{
    int r;

    if (text[0] == '/')
        return aq_fail_field(err, EINVAL, FIELD,
                             "'%.200s' is not a path in a folder: it begins with '/'", text);
    r = folder_mount_clean("", text, arena, ret, err);
    if (r == 0)
        *ret = **ret ? *ret + 1 : NULL;
    return r;
}

int folder_mount_target(const char *text, struct arena *arena, const char **ret,
                        struct aq_error *err)
{
    return folder_mount_clean(text[0] == '/' ? "" : FOLDER_MOUNT_WORK, text, arena, ret, err);
}

/* A path that cleaning would leave as it is, behind its first character. */
static bool folder_mount_is_clean(const char *parts)
{
    for (const char *part = parts;; part++) {
        size_t len = strcspn(part, "/");

        if (len == 0 || (len <= 2 && strspn(part, ".") == len))
            return false;
        part += len;
        if (!*part)
            return true;
    }
}

/* Is 'path' the place, or below it? */
static bool folder_mount_is_at(const char *path, const char *place)
{
    size_t len = strcmp(place, "/") == 0 ? 0 : strlen(place);

    return strncmp(path, place, len) == 0 && (!path[len] || path[len] == '/');
}

/* A folder at ~/.ssh would keep who may log in to one session for later ones, and those of others.
 */
static const char *folder_mount_find_reserved(const char *target)
{
    static const char *const reserved[] = {
        "/proc", "/sys", "/dev", "/etc", "/opt/kernel", "/home/config", FOLDER_MOUNT_WORK "/.ssh"
    };

    if (folder_mount_is_at(FOLDER_MOUNT_WORK, target))
        return FOLDER_MOUNT_WORK;
    for (size_t i = 0; i < AQ_COUNT(reserved); i++)
        if (folder_mount_is_at(target, reserved[i]) || folder_mount_is_at(reserved[i], target))
            return reserved[i];
    return NULL;
}

bool folder_mount_is_reserved(const char *target)
{
    return folder_mount_find_reserved(target) != NULL;
}

/* ---- order ---- */

static size_t folder_mount_depth(const char *target)
{
    size_t depth = 0;

    for (; *target; target++)
        depth += *target == '/';
    return depth;
}

static int folder_mount_compare(const void *a, const void *b)
{
    const char *one = ((const struct folder_mount *)a)->target;
    const char *other = ((const struct folder_mount *)b)->target;
    size_t one_depth = folder_mount_depth(one), other_depth = folder_mount_depth(other);

    if (one_depth != other_depth)
        return one_depth < other_depth ? -1 : 1;
    return strcmp(one, other);
}

void folder_mounts_sort(struct folder_mounts *mounts)
{
    if (mounts->count > 1)
        qsort(mounts->items, mounts->count, sizeof(*mounts->items), folder_mount_compare);
}

/* ---- bounds ---- */

/* Lines of logs and of files in the container have them. */
static bool folder_mount_is_printable(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return utf8_is_valid(text, len);
}

static int folder_mount_check_texts(const struct folder_mount *mount, struct aq_error *err)
{
    const char *const texts[] = { mount->name, mount->host, mount->path ? mount->path : "",
                                  mount->target };

    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (!folder_mount_is_printable(texts[i]))
            return aq_fail_field(err, EINVAL, FIELD,
                                 "a mount's name or path is not UTF-8, or has control characters");
    if (mount->path && !folder_mount_is_clean(mount->path))
        return aq_fail_field(err, EINVAL, FIELD, "'%.200s' is not a path in folder '%.64s'",
                             mount->path, mount->name);
    return 0;
}

static int folder_mount_check_target(const struct folder_mount *mount, struct aq_error *err)
{
    const char *reserved;

    if (strcmp(mount->target, "/") != 0
        && (mount->target[0] != '/' || !folder_mount_is_clean(mount->target + 1)))
        return aq_fail_field(err, EINVAL, FIELD, "folder '%.64s': '%.200s' is not an absolute path",
                             mount->name, mount->target);
    reserved = folder_mount_find_reserved(mount->target);
    if (reserved)
        return aq_fail_field(
            err, EINVAL, FIELD,
            "folder '%.64s' cannot be mounted at '%.200s': %s is the container's own", mount->name,
            mount->target, reserved);
    return 0;
}

static int folder_mount_check_order(const struct folder_mount *mount,
                                    const struct folder_mount *next, struct aq_error *err)
{
    int order = folder_mount_compare(mount, next);

    if (order == 0)
        return aq_fail_field(err, EINVAL, FIELD,
                             "folders '%.64s' and '%.64s' are both to be mounted at '%.200s'",
                             mount->name, next->name, mount->target);
    return order < 0 ? 0
                     : aq_fail_field(err, EINVAL, FIELD, "mounts are not in the order of depth");
}

int folder_mounts_check(const struct folder_mounts *mounts, struct aq_error *err)
{
    size_t bytes = 0;
    int r = 0;

    if (mounts->count > FOLDER_MOUNTS_MAX)
        return aq_fail_field(err, EINVAL, FIELD, "a session can mount %d folders at most",
                             FOLDER_MOUNTS_MAX);
    for (size_t i = 0; r == 0 && i < mounts->count; i++) {
        const struct folder_mount *mount = &mounts->items[i];

        bytes += strlen(mount->name) + strlen(mount->host) + strlen(mount->target)
                 + (mount->path ? strlen(mount->path) : 0);
        r = folder_mount_check_texts(mount, err);
        if (r == 0)
            r = folder_mount_check_target(mount, err);
        if (r == 0 && i + 1 < mounts->count)
            r = folder_mount_check_order(mount, mount + 1, err);
    }
    if (r == 0 && bytes > FOLDER_MOUNTS_BYTES_MAX)
        r = aq_fail_field(err, EINVAL, FIELD, "mounts are longer than %d bytes",
                          FOLDER_MOUNTS_BYTES_MAX);
    return r;
}

/* ---- JSON ---- */

void folder_mounts_write(const struct folder_mounts *mounts, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_array_begin(w);
    for (size_t i = 0; i < mounts->count; i++) {
        const struct folder_mount *mount = &mounts->items[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "folder", uuid_format(&mount->folder, id));
        jsonw_member_str(w, "name", mount->name);
        jsonw_member_str(w, "host", mount->host);
        if (mount->path)
            jsonw_member_str(w, "path", mount->path);
        jsonw_member_str(w, "target", mount->target);
        jsonw_member_str(w, "mode", mount->is_read_only ? "ro" : "rw");
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static int folder_mount_read_text(const json_t *object, const char *key, struct arena *arena,
                                  const char **ret, struct aq_error *err)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value))
        return aq_fail_field(err, EINVAL, FIELD, "a mount's '%s' must be text", key);
    *ret = arena_strdup(arena, json_string_value(value));
    return 0;
}

static int folder_mount_read(const json_t *object, struct arena *arena, struct folder_mount *ret,
                             struct aq_error *err)
{
    const char *folder = NULL, *mode = NULL;
    int r = folder_mount_read_text(object, "folder", arena, &folder, err);

    *ret = (struct folder_mount){ .path = NULL };
    if (r == 0 && uuid_parse(folder, &ret->folder) < 0)
        r = aq_fail_field(err, EINVAL, FIELD, "a mount's 'folder' must be a folder's id");
    if (r == 0)
        r = folder_mount_read_text(object, "name", arena, &ret->name, err);
    if (r == 0)
        r = folder_mount_read_text(object, "host", arena, &ret->host, err);
    if (r == 0 && json_object_get(object, "path"))
        r = folder_mount_read_text(object, "path", arena, &ret->path, err);
    if (r == 0)
        r = folder_mount_read_text(object, "target", arena, &ret->target, err);
    if (r == 0)
        r = folder_mount_read_text(object, "mode", arena, &mode, err);
    if (r < 0)
        return r;
    ret->is_read_only = strcmp(mode, "ro") == 0;
    return ret->is_read_only || strcmp(mode, "rw") == 0
               ? 0
               : aq_fail_field(err, EINVAL, FIELD, "a mount's 'mode' must be ro or rw");
}

int folder_mounts_read(const json_t *list, struct arena *arena, struct folder_mounts *ret,
                       struct aq_error *err)
{
    size_t count = json_array_size(list);
    int r = 0;

    *ret = (struct folder_mounts){ .count = count };
    if (!json_is_array(list))
        return aq_fail_field(err, EINVAL, FIELD, "mounts must be a list");
    if (count > FOLDER_MOUNTS_MAX)
        return aq_fail_field(err, EINVAL, FIELD, "a session can mount %d folders at most",
                             FOLDER_MOUNTS_MAX);
    ret->items = arena_array(arena, count + 1, sizeof(*ret->items));
    for (size_t i = 0; r == 0 && i < count; i++)
        r = folder_mount_read(json_array_get(list, i), arena, &ret->items[i], err);
    return r;
}
