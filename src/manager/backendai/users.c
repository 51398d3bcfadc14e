/* SPDX-License-Identifier: Apache-2.0 */
/* users.c - Backend.AI's users, their memberships and keypairs */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/backendai/rows.h"
#include "model/ssh_key.h"
#include "store/fixture.h"

#define DEFAULT "default" /* domain and policy */

/* ---- users ---- */

static struct backendai_user *backendai_add_user(struct backendai_import *import,
                                                 const struct uuid *source_id,
                                                 const struct backendai_user *user)
{
    struct backendai_user *added = arena_alloc(&import->arena, sizeof(*added));

    *added = *user;
    map_set(&import->users, source_id->bytes, sizeof(source_id->bytes), added);
    return added;
}

static struct backendai_user *backendai_add_existing(struct backendai_import *import,
                                                     const struct uuid *source_id,
                                                     const struct user *user)
{
    return backendai_add_user(import, source_id,
                              &(struct backendai_user){ .id = user->id,
                                                        .email = user->email,
                                                        .domain = user->domain ? user->domain : "",
                                                        .existing = user,
                                                        .event = SIZE_MAX });
}

/* Whom an id of the source is; NULL with 'err' if nobody, there or here. */
static struct backendai_user *backendai_find_user(struct backendai_import *import,
                                                  const char *field, const char *id,
                                                  struct aq_error *err)
{
    struct backendai_user *user;
    const struct user *existing;
    struct uuid wanted;

    if (uuid_parse(id, &wanted) < 0) {
        api_fail_param(err, field, "is no UUID");
        return NULL;
    }
    if ((user = map_get(&import->users, wanted.bytes, sizeof(wanted.bytes))))
        return user;
    if ((existing = core_find_user(import->api->core, &wanted)))
        return backendai_add_existing(import, &wanted, existing);
    api_fail_param(err, field, "there is no user %.64s, there or here", id);
    return NULL;
}

static const char *backendai_find_domain(struct backendai_import *import, struct backendai_row *row,
                                         struct aq_error *err)
{
    const char *domain = row->domain ? row->domain : DEFAULT;

    if (!row->domain)
        backendai_note(import, row, "had no domain, and is of '%s'", DEFAULT);
    if (backendai_has_domain(import, domain))
        return domain;
    api_fail_param(err, "domain_name", "there is no domain '%.64s'", domain);
    return NULL;
}

/* What is kept of the password; NULL = nothing, or it is to be hashed first. */
static const char *backendai_read_password(struct backendai_import *import,
                                           struct backendai_row *row)
{
    row->needs_hash = false;
    if (!row->password || !row->password[0]) {
        backendai_note(import, row, "has no password; give one by 'admin user set'");
        return NULL;
    }
    if (password_is_foreign(row->password))
        return row->password;
    if (!import->params.plain_passwords) {
        backendai_note(import, row,
                       "needs a new password, by 'admin user set': what made its hash is not "
                       "known here");
        return NULL;
    }
    row->needs_hash = true;
    return row->hash;
}

static int backendai_check_user(struct backendai_import *import, struct backendai_row *row,
                                struct user *user, struct aq_error *err)
{
    const char *name = row->name ? row->name : row->email;
    const struct user *other = core_find_user_by_name(import->api->core, name);
    int r;

    if (!strchr(row->email, '@'))
        return api_fail_param(err, "email", "not an e-mail address");
    if (other)
        return api_fail_param(err, "username", "'%.64s' is the name of %.100s here; rename one",
                              name, other->email);
    if (user_role_parse(row->role ? row->role : "user", &user->role) < 0)
        return api_fail_param(err, "role", "must be superadmin, admin, user or monitor");
    if (user_status_parse(row->status ? row->status : "active", &user->status) < 0)
        return api_fail_param(err, "status",
                              "must be active, inactive, deleted or before-verification");
    r = backendai_claim(&import->usernames, name, strlen(name), "username", row, err);
    if (r < 0)
        return r;
    user->username = aq_strdup(name);
    return 0;
}

/* Columns that become members as they are, and what 'given' has beside them. */
static int backendai_merge(struct backendai_import *import, struct backendai_row *row,
                           enum backendai_table table, const struct field *fields, void *decoded,
                           json_t *given, void *ret, struct aq_error *err)
{
    const struct backendai_kind *kind = &backendai_kinds[table];
    int r;

    backendai_copy_columns(import, row, kind, given);
    r = decode_object(fields, given, &import->arena, decoded, err);
    return r < 0 ? r : entity_merge(kind->entity, ret, decoded, given, NULL, err);
}

static int backendai_fill_user(struct backendai_import *import, struct backendai_row *row,
                               const struct uuid *id, struct aq_error *err)
{
    struct event *event = event_batch_add(import->change->batch, EVENT_USER_SAVED,
                                          clock_realtime_usec());
    struct account_row parts = { .api = import->api, .arena = &import->arena };
    struct user *user = &event->user.user;
    struct user_request decoded = { .role = NULL };
    json_auto_t *given = json_object();
    const char *domain, *hash;
    int r;

    entity_init(&user_entity, user);
    user->id = *id;
    if ((r = backendai_check_user(import, row, user, err)) < 0)
        return r;
    if (!(domain = backendai_find_domain(import, row, err)))
        return -err->code;
    hash = backendai_read_password(import, row);
    user->email = account_text(&parts, row->email, NULL);
    user->full_name = account_text(&parts, row->full_name, NULL);
    user->domain = account_text(&parts, domain, NULL);
    event->user.password_hash = account_text(&parts, hash, NULL);
    r = backendai_merge(import, row, BACKENDAI_USERS, user_change, &decoded, given, user, err);
    if (r < 0)
        return r;
    backendai_add_user(import, id,
                       &(struct backendai_user){ .id = *id,
                                                 .email = row->email,
                                                 .domain = domain,
                                                 .event = import->change->batch->count - 1 });
    return 0;
}

int backendai_take_user(struct backendai_import *import, struct backendai_row *row,
                        struct aq_error *err)
{
    const struct core *core = import->api->core;
    const struct user *existing;
    struct uuid id;
    int r;

    row->label = row->email;
    if (uuid_parse(row->id, &id) < 0)
        return api_fail_param(err, "uuid", "is no UUID");
    if (map_get(&import->users, id.bytes, sizeof(id.bytes)))
        return api_fail_param(err, "uuid", "another row has it, too; leave one of them out");
    r = backendai_claim(&import->emails, row->email, strlen(row->email), "email", row, err);
    if (r < 0)
        return r;
    if (!(existing = core_find_user_by_email(core, row->email)))
        existing = core_find_user(core, &id);
    if (!existing)
        return backendai_fill_user(import, row, &id, err);
    backendai_add_existing(import, &id, existing);
    return backendai_exists(import, row, &account_user, existing);
}

/* ---- memberships ---- */

/* The event that saves the user, with room for one more project. */
static struct user *backendai_open_user(struct backendai_import *import,
                                        struct backendai_user *user)
{
    struct event_batch *batch = import->change->batch;
    struct event *event;
    struct user *saved;

    if (user->event != SIZE_MAX) {
        saved = &batch->events[user->event].user.user;
    } else {
        event = event_batch_add(batch, EVENT_USER_SAVED, clock_realtime_usec());
        saved = &event->user.user;
        user->event = batch->count - 1;
        entity_copy(&user_entity, saved, user->existing);
    }
    vec_grow(&saved->project_ids, &saved->project_cap, saved->project_count + 1,
             sizeof(*saved->project_ids));
    return saved;
}

static bool backendai_is_member(const struct backendai_import *import,
                                const struct backendai_user *user, const struct uuid *project)
{
    const struct user *row = user->event != SIZE_MAX
                                 ? &import->change->batch->events[user->event].user.user
                                 : user->existing;

    for (size_t i = 0; i < row->project_count; i++)
        if (uuid_equals(&row->project_ids[i], project))
            return true;
    return false;
}

int backendai_take_member(struct backendai_import *import, struct backendai_row *row,
                          struct aq_error *err)
{
    struct backendai_user *user = backendai_find_user(import, "user_id", row->user, err);
    struct backendai_project project;
    struct user *saved;

    if (!user)
        return -err->code;
    if (!backendai_find_project(import, row->project, &project))
        return api_fail_param(err, "group_id", "there is no project %.64s, there or here",
                              row->project);
    row->label = backendai_format(import, "%s in %s", user->email, project.name);
    if (strcmp(user->domain, project.domain) != 0)
        return backendai_leave(import, row, "the user is of domain '%.64s', the project of '%.64s'",
                               user->domain, project.domain);
    if (backendai_is_member(import, user, &project.id))
        return backendai_exists(import, row, NULL, NULL);
    saved = backendai_open_user(import, user);
    saved->project_ids[saved->project_count++] = project.id;
    return 0;
}

/* ---- keypairs ---- */

static bool backendai_is_spelled(const char *text, size_t most)
{
    size_t len = text ? strlen(text) : 0;

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] > '~')
            return false;
    return len > 0 && len <= most;
}

/* A secret may have signs that ours have not, as Backend.AI's own examples do. */
static bool backendai_can_have_keys(const struct backendai_row *row)
{
    return backendai_is_spelled(row->access_key, ACCESS_KEY_MAX - 1)
           && !strpbrk(row->access_key, ":,;\"'/\\")
           && backendai_is_spelled(row->secret_key,
                                   sizeof(((struct keypair *)NULL)->secret_key) - 1);
}

static void backendai_read_ssh_key(struct backendai_import *import, struct backendai_row *row,
                                   struct account_row *parts, struct keypair *key)
{
    char text[SSH_PUBLIC_KEY_MAX];
    struct aq_error why = { 0 };

    if (!row->ssh_public_key || !row->ssh_public_key[0])
        return;
    if (ssh_public_key_parse(row->ssh_public_key, text, &why) < 0)
        backendai_note(import, row, "its SSH key is left: %s", why.text);
    else
        key->ssh_public_key = account_text(parts, text, NULL);
}

static int backendai_fill_keypair(struct backendai_import *import, struct backendai_row *row,
                                  const struct backendai_user *user, const char *policy,
                                  struct aq_error *err)
{
    struct event *event = event_batch_add(import->change->batch, EVENT_KEYPAIR_SAVED,
                                          clock_realtime_usec());
    struct account_row parts = { .api = import->api, .arena = &import->arena };
    json_auto_t *given = json_pack("{s:s}", "policy", policy);
    struct keypair_request decoded = { .user = NULL };
    struct keypair *key = &event->keypair;
    int r;

    entity_init(&keypair_entity, key);
    key->user_id = user->id;
    memcpy(key->access_key, row->access_key, strlen(row->access_key) + 1);
    memcpy(key->secret_key, row->secret_key, strlen(row->secret_key) + 1);
    r = backendai_merge(import, row, BACKENDAI_KEYPAIRS, keypair_change, &decoded, given, key, err);
    if (r == 0)
        backendai_read_ssh_key(import, row, &parts, key);
    return r;
}

int backendai_take_keypair(struct backendai_import *import, struct backendai_row *row,
                           struct aq_error *err)
{
    const struct core *core = import->api->core;
    const struct keypair *existing = core_find_keypair(core, row->access_key);
    const char *policy = row->policy ? row->policy : DEFAULT;
    const struct backendai_user *user;
    int r;

    row->label = row->access_key;
    if (!(user = backendai_find_user(import, "user", row->user, err)))
        return -err->code;
    r = backendai_claim(&import->keypairs, row->access_key, strlen(row->access_key), "access_key",
                        row, err);
    if (r < 0)
        return r;
    if (existing && !uuid_equals(&existing->user_id, &user->id))
        return api_fail_param(err, "access_key", "is another user's here, not that of %.100s",
                              user->email);
    if (existing)
        return backendai_exists(import, row, NULL, NULL);
    if (!core_is_dev(core) && fixture_is_published_key(row->access_key))
        return backendai_leave(import, row,
                               "everybody knows this key: it is in Backend.AI's "
                               "documentation");
    if (!backendai_can_have_keys(row))
        return backendai_leave(import, row,
                               "its keys cannot be had here; make others by 'admin "
                               "keypair create'");
    if (!backendai_has_policy(import, policy))
        return api_fail_param(err, "resource_policy", "there is no policy '%.64s'", policy);
    r = backendai_fill_keypair(import, row, user, policy, err);
    if (r == 0)
        r = backendai_attach_dotfiles(import, row, DOTFILE_KEYPAIR, row->access_key, err);
    if (r == 0)
        backendai_attach_script(import, row);
    return r;
}
