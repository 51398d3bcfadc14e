/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - folders of users and projects: their states, and who may do what with them */
#include "model/folder.h"

#include <errno.h>
#include <string.h>

static const char *const folder_permissions[] = { [FOLDER_NONE] = "none",
                                                  [FOLDER_READ_ONLY] = "ro",
                                                  [FOLDER_READ_WRITE] = "rw",
                                                  [FOLDER_WRITE_DELETE] = "wd" };
static const char *const folder_usages[] = {
    [FOLDER_GENERAL] = "general", [FOLDER_MODEL] = "model", [FOLDER_DATA] = "data"
};
static const char *const folder_statuses[] = { [FOLDER_READY] = "ready",
                                               [FOLDER_PERFORMING] = "performing",
                                               [FOLDER_CLONING] = "cloning",
                                               [FOLDER_DELETE_PENDING] = "delete-pending",
                                               [FOLDER_DELETE_ONGOING] = "delete-ongoing" };

static int folder_find_word(const char *const *words, size_t count, size_t first, const char *text)
{
    for (size_t i = first; i < count; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    return -EINVAL;
}

const char *folder_permission_name(enum folder_permission permission)
{
    return folder_permissions[permission];
}

int folder_permission_parse(const char *text, enum folder_permission *ret)
{
    int i = folder_find_word(folder_permissions, AQ_COUNT(folder_permissions), FOLDER_READ_ONLY,
                             text);

    if (i >= 0)
        *ret = (enum folder_permission)i;
    return AQ_MIN(i, 0);
}

const char *folder_usage_name(enum folder_usage usage)
{
    return folder_usages[usage];
}

int folder_usage_parse(const char *text, enum folder_usage *ret)
{
    int i = folder_find_word(folder_usages, AQ_COUNT(folder_usages), 0, text);

    if (i >= 0)
        *ret = (enum folder_usage)i;
    return AQ_MIN(i, 0);
}

const char *folder_status_name(enum folder_status status)
{
    return folder_statuses[status];
}

int folder_status_parse(const char *text, enum folder_status *ret)
{
    int i = folder_find_word(folder_statuses, AQ_COUNT(folder_statuses), 0, text);

    if (i >= 0)
        *ret = (enum folder_status)i;
    return AQ_MIN(i, 0);
}

const char *folder_status_words(enum folder_status status)
{
    static const char *const words[] = {
        [FOLDER_READY] = "not in the trash",       [FOLDER_PERFORMING] = "being made",
        [FOLDER_CLONING] = "being cloned to",      [FOLDER_DELETE_PENDING] = "in the trash",
        [FOLDER_DELETE_ONGOING] = "being removed",
    };

    return words[status];
}

bool folder_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *rest = name + (*name == '.');
    struct uuid id;

    if (!*rest || !strchr(letters, *rest) || strlen(name) > FOLDER_NAME_MAX
        || uuid_parse(name, &id) == 0 || strcmp(name, "invitations") == 0
        || strcmp(name, ".ssh") == 0) /* it would be mounted over each session's keys */
        return false;
    rest += strspn(rest, letters);
    while (*rest && strchr("._-", *rest))
        rest += 1 + strspn(rest + 1, letters);
    return !*rest;
}

/* ---- rights ---- */

#define BIT(op) (1u << FOLDER_##op)

/* Of who has a permission on its files. */
static const unsigned folder_ops_of_permission[] = {
    [FOLDER_NONE] = 0,
    [FOLDER_READ_ONLY] = BIT(SEE) | BIT(READ) | BIT(CLONE),
    [FOLDER_READ_WRITE] = BIT(SEE) | BIT(READ) | BIT(CLONE) | BIT(WRITE),
    [FOLDER_WRITE_DELETE] = BIT(SEE) | BIT(READ) | BIT(CLONE) | BIT(WRITE) | BIT(DELETE),
};

#define OPS_LIFE (BIT(SEE) | BIT(DELETE) | BIT(RESTORE) | BIT(PURGE) | BIT(CHANGE))
#define OPS_OWNER (OPS_LIFE | BIT(READ) | BIT(WRITE) | BIT(CLONE) | BIT(INVITE))
/* A user's files are not the administrators' to read, unless they take the folder. */
#define OPS_ADMIN_OF_USER (OPS_LIFE | BIT(GIVE))
#define OPS_ADMIN_OF_PROJECT (OPS_LIFE | BIT(READ) | BIT(WRITE) | BIT(CLONE) | BIT(SHARE))

bool folder_is_owner(const struct folder *folder, const struct folder_viewer *who)
{
    return !uuid_is_nil(&folder->user_id) && uuid_equals(&folder->user_id, &who->user_id);
}

static bool folder_is_admin(const struct folder *folder, const struct folder_viewer *who)
{
    return who->is_superadmin
           || (who->admin_of && folder->domain && strcmp(who->admin_of, folder->domain) == 0);
}

static bool folder_is_of_project(const struct folder *folder)
{
    return !uuid_is_nil(&folder->project_id);
}

/* Of shares and membership; a member keeps what a share gives while it is one. */
static enum folder_permission folder_given_permission(const struct folder *folder)
{
    if (!folder_is_of_project(folder))
        return folder->shared;
    if (!folder->is_member)
        return FOLDER_NONE;
    return folder->shared != FOLDER_NONE ? folder->shared : folder->permission;
}

static bool folder_has_all(const struct folder *folder, const struct folder_viewer *who)
{
    return folder_is_owner(folder, who)
           || (folder_is_of_project(folder) && folder_is_admin(folder, who));
}

enum folder_permission folder_permission_of(const struct folder *folder,
                                            const struct folder_viewer *who)
{
    return folder_has_all(folder, who) ? FOLDER_WRITE_DELETE : folder_given_permission(folder);
}

enum folder_permission folder_permission_shown(const struct folder *folder,
                                               const struct folder_viewer *who)
{
    enum folder_permission given = folder_given_permission(folder);

    return folder_is_owner(folder, who) || given == FOLDER_NONE ? folder->permission : given;
}

bool folder_may(const struct folder *folder, const struct folder_viewer *who, enum folder_op op)
{
    enum folder_permission given = folder_given_permission(folder);
    unsigned ops = folder_ops_of_permission[given];

    if (folder_is_owner(folder, who))
        ops |= OPS_OWNER;
    else if (!folder_is_of_project(folder) && given != FOLDER_NONE)
        ops |= BIT(LEAVE);
    if (folder_is_admin(folder, who))
        ops |= folder_is_of_project(folder) ? OPS_ADMIN_OF_PROJECT : OPS_ADMIN_OF_USER;
    if (!folder->is_cloneable)
        ops &= ~BIT(CLONE);
    return ops & 1u << op;
}
