/* SPDX-License-Identifier: Apache-2.0 */
/* dotfile.c - files that are put into the home directory of a session's containers */
#include "model/dotfile.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"

bool dotfile_path_is_valid(const char *path)
{
    if (strlen(path) > DOTFILE_PATH_MAX)
        return false;
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");

        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
            return false;
        for (size_t i = 0; i < len; i++)
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return false;
        at += len;
        if (!*at)
            return true;
    }
}

bool dotfile_permission_is_valid(const char *permission)
{
    return strspn(permission, "01234567") == 3 && strlen(permission) == 3;
}

static bool dotfile_is_replaced(const struct dotfile *files, size_t count, size_t i)
{
    for (size_t k = i + 1; k < count; k++)
        if (strcmp(files[k].path, files[i].path) == 0)
            return true;
    return false;
}

void dotfiles_write(const struct dotfile *files, size_t count, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        if (dotfile_is_replaced(files, count, i))
            continue;
        jsonw_object_begin(w);
        jsonw_member_str(w, "path", files[i].path);
        jsonw_member_str(w, "permission", files[i].permission);
        jsonw_member_str(w, "data", files[i].data);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

int dotfiles_parse(const char *text, struct arena *arena, struct dotfile **ret,
                   struct aq_error *err)
{
    json_auto_t *list = json_load_string(text, JSON_REJECT_DUPLICATES);
    size_t count = json_array_size(list);
    struct dotfile *files = arena_array(arena, count + 1, sizeof(*files));

    if (!json_is_array(list))
        return aq_fail_field(err, EINVAL, "dotfiles", "dotfiles are no list");
    for (size_t i = 0; i < count; i++) {
        const json_t *file = json_array_get(list, i);
        const char *path = json_string_value(json_object_get(file, "path"));
        const char *permission = json_string_value(json_object_get(file, "permission"));
        const char *data = json_string_value(json_object_get(file, "data"));

        if (!path || !permission || !data || !dotfile_path_is_valid(path)
            || !dotfile_permission_is_valid(permission))
            return aq_fail_field(err, EINVAL, "dotfiles", "what is listed at %zu is no dotfile", i);
        files[i] = (struct dotfile){ .path = arena_strdup(arena, path),
                                     .permission = arena_strdup(arena, permission),
                                     .data = arena_strdup(arena, data) };
    }
    *ret = files;
    return (int)count;
}
