/* SPDX-License-Identifier: Apache-2.0 */
/* What may be a dotfile. */
#include "manager/request/dotfile_rules.h"

#include <string.h>

#include "manager/request/api.h"

/* What sessions make themselves, and by which one gets into them. */
static const char *const dotfile_reserved[] = { ".terminfo", ".jupyter",
                                                ".ssh",      ".ssh/authorized_keys",
                                                ".local",    ".config" };

int dotfile_check_path(const char *path, struct aq_error *err)
{
    for (size_t i = 0; i < AQ_COUNT(dotfile_reserved); i++)
        if (strcmp(path, dotfile_reserved[i]) == 0)
            return api_fail_param(err, "path", "'%s' is reserved", path);
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");

        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
            return api_fail_param(err, "path",
                                  "must be below the home directory, such as .vimrc or "
                                  ".config/app.toml");
        for (size_t i = 0; i < len; i++)
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return api_fail_param(err, "path", "has control characters");
        at += len;
        if (!*at)
            return 0;
    }
}

int dotfile_check_permission(const char *permission, struct aq_error *err)
{
    if (strspn(permission, "01234567") == 3 && strlen(permission) == 3)
        return 0;
    return api_fail_param(err, "permission", "is three octal digits, such as 644");
}
