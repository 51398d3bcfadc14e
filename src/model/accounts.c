/* SPDX-License-Identifier: Apache-2.0 */
/* Domains, projects, users, keypairs, policies, resource groups. */
#include "model/accounts.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const char *const role_names[] = { "superadmin", "admin", "user", "monitor" };
static const char *const status_names[] = { "active", "inactive", "deleted",
                                            "before-verification" };

static int account_find_name(const char *const *names, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(names[i], text) == 0)
            return (int)i;
    return -EINVAL;
}

const char *user_role_name(enum user_role r)
{
    return role_names[r];
}

int user_role_parse(const char *text, enum user_role *ret)
{
    int i = account_find_name(role_names, AQ_COUNT(role_names), text);

    if (i < 0)
        return i;
    *ret = (enum user_role)i;
    return 0;
}

const char *user_status_name(enum user_status s)
{
    return status_names[s];
}

int user_status_parse(const char *text, enum user_status *ret)
{
    int i = account_find_name(status_names, AQ_COUNT(status_names), text);

    if (i < 0)
        return i;
    *ret = (enum user_status)i;
    return 0;
}

void user_done(struct user *u)
{
    free(u->username);
    free(u->email);
    free(u->full_name);
    free(u->description);
    free(u->domain);
    free(u->allowed_client_ip);
    free(u->project_ids);
    slots_done(&u->total_slots);
    *u = (struct user){ 0 };
}
