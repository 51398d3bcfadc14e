/* SPDX-License-Identifier: Apache-2.0 */
/* login_end.c - which changes of users and keypairs end their logins by browsers */
#include "manager/core/accounts/login_end.h"

#include <string.h>

#include "manager/core/state/state.h"

void core_on_login_end(struct core *core, core_login_end_fn *fn, void *data)
{
    core->on_login_end = fn;
    core->login_end_data = data;
}

bool login_end_is_due(const struct core *core, const struct event *e)
{
    const struct keypair *key = &e->keypair, *old;

    if (e->kind == EVENT_USER_SAVED)
        return e->user.user.status != USER_ACTIVE || e->user.password_hash;
    if (e->kind != EVENT_KEYPAIR_SAVED)
        return false;
    /* Other changes of a keypair come with its secret, too. */
    old = core_find_keypair(core, key->access_key);
    return !key->is_active
           || (key->secret_key[0] && old && strcmp(old->secret_key, key->secret_key) != 0);
}

void login_end_tell(const struct core *core, const struct event *e)
{
    bool is_due = login_end_is_due(core, e), is_user = is_due && e->kind == EVENT_USER_SAVED;
    bool is_key = (is_due && !is_user) || e->kind == EVENT_KEYPAIR_REMOVED;

    if (core->on_login_end && (is_user || is_key))
        core->on_login_end(core->login_end_data, is_user ? &e->user.user.id : NULL,
                           is_key ? e->keypair.access_key : NULL);
}
