/* SPDX-License-Identifier: Apache-2.0 */
/* What may be a dotfile. */
#include "manager/template/template.h"

#include <string.h>

#include "base/utf8.h"
#include "manager/call/api.h"
#include "model/dotfile.h"

/* What sessions make themselves, and by which one gets into them. */
static const char *const dotfile_reserved[] = { ".terminfo", ".jupyter",
                                                ".ssh",      ".ssh/authorized_keys",
                                                ".local",    ".config" };

int dotfile_check_path(const char *path, struct aq_error *err)
{
    uint32_t code;

    for (size_t i = 0; i < AQ_COUNT(dotfile_reserved); i++)
        if (strcmp(path, dotfile_reserved[i]) == 0)
            return api_fail_param(err, "path", "'%s' is reserved", path);
    if (dotfile_path_is_valid(path) && utf8_is_shown(path, strlen(path), &code))
        return 0;
    return api_fail_param(err, "path",
                          "must be below the home directory, such as .vimrc or .config/app.toml, "
                          "without control and invisible characters");
}

int dotfile_check_permission(const char *permission, struct aq_error *err)
{
    if (dotfile_permission_is_valid(permission))
        return 0;
    return api_fail_param(err, "permission", "is three octal digits, such as 644");
}
