/* SPDX-License-Identifier: Apache-2.0 */
/* account_audit.c - entries of the audit log about users, keypairs, domains, projects, policies
 * and resource groups
 *
 * A row is saved whole, so what changes is found by comparing it with the one in memory. Of what
 * is secret, or may be, an entry has only that it was changed.
 */
#include "manager/core/accounts/account_audit.h"

#include <jansson.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "manager/core/state/state.h"
#include "model/event.h"
#include "model/ssh_key.h"

#define FINGERPRINT_MAX (8 + BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE))

/* One event on its way. */
struct account_audit {
    const struct core *core;
    const struct event *event;
    const void *old, *new; /* rows; NULL = none before, none after */
    const char *noun;
    struct audit_change change;
    char id[UUID_TEXT_MAX], action[64];
};

/* ---- rows as JSON ---- */

static void account_audit_write_domain(const struct core *core, const void *row, struct jsonw *w)
{
    entity_write_json(&domain_entity, row, FIELD_UNAUDITED, core->types, w);
}

static void account_audit_write_project(const struct core *core, const void *row, struct jsonw *w)
{
    entity_write_json(&project_entity, row, FIELD_UNAUDITED, core->types, w);
}

static void account_audit_write_projects(const struct core *core, const struct user *user,
                                         struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_key(w, "projects");
    jsonw_array_begin(w);
    for (size_t i = 0; i < user->project_count; i++) {
        const struct project *project = core_find_project(core, &user->project_ids[i]);

        jsonw_str(w, project ? project->name : uuid_format(&user->project_ids[i], id));
    }
    jsonw_array_end(w);
}

/* entity_write_fn: names of projects, not their ids. */
static bool account_audit_write_groups(const void *data, const void *row, const struct field *field,
                                       struct jsonw *w)
{
    if (field->type == FIELD_UUIDS)
        account_audit_write_projects(data, row, w);
    return field->type == FIELD_UUIDS;
}

static void account_audit_write_user(const struct core *core, const void *row, struct jsonw *w)
{
    const struct user *user = row;

    entity_write_json_as(&user_entity, user, FIELD_UNAUDITED, core->types,
                         account_audit_write_groups, core, w);
    jsonw_member_str(w, "allowed_client_ip", user->allowed_client_ip);
    jsonw_member_bool(w, "need_password_change", user->need_password_change);
}

/* "SHA256:...", as ssh-keygen -l shows it. */
static void account_audit_fingerprint(const char *public_key, char ret[FINGERPRINT_MAX])
{
    const char *begin = strchr(public_key, ' ');
    const char *text = begin ? begin + 1 : public_key;
    struct base64_decode_ctx decode;
    uint8_t blob[SSH_PUBLIC_KEY_MAX], digest[SHA256_DIGEST_SIZE];
    size_t len = strcspn(text, " "), blob_len = sizeof(blob), end;
    struct sha256_ctx sha;

    base64_decode_init(&decode);
    if (len >= sizeof(blob) || !base64_decode_update(&decode, &blob_len, blob, len, text))
        blob_len = 0;
    sha256_init(&sha);
    sha256_update(&sha, blob_len, blob);
    sha256_digest(&sha, sizeof(digest), digest);
    memcpy(ret, "SHA256:", 7);
    base64_encode_raw(ret + 7, sizeof(digest), digest);
    end = 7 + BASE64_ENCODE_RAW_LENGTH(sizeof(digest));
    while (ret[end - 1] == '=')
        end--;
    ret[end] = '\0';
}

static void account_audit_write_keypair(const struct core *core, const void *row, struct jsonw *w)
{
    const struct keypair *key = row;
    const struct user *user = core_find_user(core, &key->user_id);
    char fingerprint[FINGERPRINT_MAX];

    if (key->ssh_public_key)
        account_audit_fingerprint(key->ssh_public_key, fingerprint);
    jsonw_member_str(w, "user", user ? user->email : NULL);
    entity_write_json(&keypair_entity, key, FIELD_UNAUDITED, core->types, w);
    jsonw_member_str(w, "ssh_key", key->ssh_public_key ? fingerprint : NULL);
}

static void account_audit_write_policy(const struct core *core, const void *row, struct jsonw *w)
{
    entity_write_json(&keypair_policy_entity, row, FIELD_UNAUDITED, core->types, w);
}

static void account_audit_write_rgroup(const struct core *core, const void *row, struct jsonw *w)
{
    entity_write_json(&resource_group_entity, row, FIELD_UNAUDITED, core->types, w);
}

/* ---- what an event does to which row ---- */

typedef void account_audit_write_fn(const struct core *core, const void *row, struct jsonw *w);

static account_audit_write_fn *account_audit_name_user(struct account_audit *a)
{
    const struct user *user = a->new ? a->new : a->old;

    a->noun = "user";
    a->change.object_id = user ? uuid_format(&user->id, a->id) : NULL;
    a->change.object_name = user ? user->email : NULL;
    a->change.object_domain = user ? user->domain : NULL;
    return account_audit_write_user;
}

static account_audit_write_fn *account_audit_name_project(struct account_audit *a)
{
    const struct project *project = a->new ? a->new : a->old;

    a->noun = "project";
    a->change.object_id = project ? uuid_format(&project->id, a->id) : NULL;
    a->change.object_name = project ? project->name : NULL;
    a->change.object_domain = project ? project->domain : NULL;
    return account_audit_write_project;
}

/* Its user may be new, too: an earlier event of the batch. */
static const struct user *account_audit_user_of(const struct core *core,
                                                const struct event_batch *batch,
                                                const struct uuid *id)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->events[i].kind == EVENT_USER_SAVED
            && uuid_equals(&batch->events[i].user.user.id, id))
            return &batch->events[i].user.user;
    return core_find_user(core, id);
}

static account_audit_write_fn *account_audit_name_keypair(struct account_audit *a,
                                                          const struct event_batch *batch)
{
    const struct keypair *key = a->new ? a->new : a->old;
    const struct user *user = key ? account_audit_user_of(a->core, batch, &key->user_id) : NULL;

    a->noun = "keypair";
    a->change.object_id = key ? key->access_key : NULL;
    a->change.object_name = user ? user->email : NULL;
    a->change.object_domain = user ? user->domain : NULL;
    return account_audit_write_keypair;
}

static account_audit_write_fn *account_audit_name_other(struct account_audit *a, const char *noun,
                                                        const char *name,
                                                        account_audit_write_fn *write)
{
    a->noun = noun;
    a->change.object_name = name;
    a->change.object_domain = write == account_audit_write_domain ? name : NULL;
    return write;
}

static account_audit_write_fn *account_audit_name_purge(struct account_audit *a)
{
    const struct event_purge *purge = &a->event->purge_account;

    switch (purge->kind) {
    case PURGE_USER:
        a->old = core_find_user(a->core, &purge->id);
        return account_audit_name_user(a);
    case PURGE_PROJECT:
        a->old = core_find_project(a->core, &purge->id);
        return account_audit_name_project(a);
    case PURGE_DOMAIN:
        a->old = core_find_domain(a->core, purge->name);
        return account_audit_name_other(a, "domain", purge->name, account_audit_write_domain);
    case PURGE_POLICY:
        a->old = core_find_policy(a->core, purge->name);
        return account_audit_name_other(a, "keypair-policy", purge->name,
                                        account_audit_write_policy);
    case PURGE_RESOURCE_GROUP:
        break;
    }
    a->old = core_find_resource_group(a->core, purge->name);
    return account_audit_name_other(a, "resource-group", purge->name, account_audit_write_rgroup);
}

/* The row that becomes this one: it may get the name with the same batch. */
static const struct domain *account_audit_old_domain(const struct core *core,
                                                     const struct event_batch *batch,
                                                     const char *name)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct event *e = &batch->events[i];

        if (e->kind == EVENT_DOMAIN_RENAMED && strcmp(e->domain_renamed.to, name) == 0)
            return core_find_domain(core, e->domain_renamed.from);
    }
    return core_find_domain(core, name);
}

/* NULL: of another kind. */
static account_audit_write_fn *account_audit_name(struct account_audit *a,
                                                  const struct event_batch *batch)
{
    const struct event *e = a->event;

    switch (e->kind) {
    case EVENT_DOMAIN_SAVED:
        a->new = &e->domain;
        a->old = account_audit_old_domain(a->core, batch, e->domain.name);
        return account_audit_name_other(a, "domain", e->domain.name, account_audit_write_domain);
    case EVENT_PROJECT_SAVED:
        a->new = &e->project;
        a->old = core_find_project(a->core, &e->project.id);
        return account_audit_name_project(a);
    case EVENT_USER_SAVED:
        a->new = &e->user.user;
        a->old = core_find_user(a->core, &e->user.user.id);
        return account_audit_name_user(a);
    case EVENT_KEYPAIR_SAVED:
        a->new = &e->keypair;
        a->old = core_find_keypair(a->core, e->keypair.access_key);
        return account_audit_name_keypair(a, batch);
    case EVENT_KEYPAIR_REMOVED:
        a->old = core_find_keypair(a->core, e->keypair.access_key);
        return account_audit_name_keypair(a, batch);
    case EVENT_KEYPAIR_POLICY_SAVED:
        a->new = &e->policy;
        a->old = core_find_policy(a->core, e->policy.name);
        return account_audit_name_other(a, "keypair-policy", e->policy.name,
                                        account_audit_write_policy);
    case EVENT_RESOURCE_GROUP_SAVED:
        a->new = &e->resource_group;
        a->old = core_find_resource_group(a->core, e->resource_group.name);
        return account_audit_name_other(a, "resource-group", e->resource_group.name,
                                        account_audit_write_rgroup);
    case EVENT_ACCOUNT_PURGED:
        return account_audit_name_purge(a);
    default:
        return NULL;
    }
}

/* ---- what changes ---- */

static json_t *account_audit_describe(const struct core *core, account_audit_write_fn *write,
                                      const void *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (!row)
        return NULL;
    jsonw_object_begin(&w);
    write(core, row, &w);
    jsonw_object_end(&w);
    return json_load_string(text.data, 0);
}

/* What is the same goes from both. */
static void account_audit_drop_same(json_t *before, json_t *after)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(before, next, key,
                             value) if (json_equal(value, json_object_get(after, key)))
    {
        (void)json_object_del(after, key);
        (void)json_object_del(before, key);
    }
}

static bool account_audit_texts_differ(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") != 0;
}

/* What is not shown, but that it was changed. */
static const char *account_audit_hidden(const struct account_audit *a)
{
    const struct event *e = a->event;

    if (e->kind == EVENT_USER_SAVED && e->user.password_hash)
        return "password";
    if (e->kind == EVENT_KEYPAIR_SAVED && a->old && e->keypair.secret_key[0]
        && account_audit_texts_differ(((const struct keypair *)a->old)->secret_key,
                                      e->keypair.secret_key))
        return "secret_key";
    if (e->kind == EVENT_RESOURCE_GROUP_SAVED
        && account_audit_texts_differ(a->old ? ((const struct resource_group *)a->old)->driver_opts
                                             : NULL,
                                      e->resource_group.driver_opts))
        return "driver_opts";
    return NULL;
}

/* Rows that are only out of use are changed back and forth. */
static bool account_audit_is_hidden(const struct account_audit *a, const void *row)
{
    switch (a->event->kind) {
    case EVENT_DOMAIN_SAVED:
        return !((const struct domain *)row)->is_active;
    case EVENT_PROJECT_SAVED:
        return !((const struct project *)row)->is_active;
    case EVENT_USER_SAVED:
        return ((const struct user *)row)->status == USER_DELETED;
    case EVENT_KEYPAIR_POLICY_SAVED:
        return !((const struct keypair_policy *)row)->is_active;
    case EVENT_RESOURCE_GROUP_SAVED:
        return !((const struct resource_group *)row)->is_active;
    default:
        return false;
    }
}

static const char *account_audit_verb(const struct account_audit *a)
{
    bool was_hidden, is_hidden;

    if (a->event->kind == EVENT_ACCOUNT_PURGED)
        return "purge";
    if (!a->new)
        return "delete";
    if (!a->old)
        return "create";
    was_hidden = account_audit_is_hidden(a, a->old);
    is_hidden = account_audit_is_hidden(a, a->new);
    return was_hidden == is_hidden ? "modify" : is_hidden ? "delete" : "restore";
}

static void account_audit_write(struct account_audit *a, struct event_batch *batch,
                                const json_t *before, const json_t *after,
                                const struct audit_who *by)
{
    AQ_CLEANUP(aq_freep) char *before_text = before ? json_dump_text(before, JSON_COMPACT) : NULL;
    AQ_CLEANUP(aq_freep) char *after_text = after ? json_dump_text(after, JSON_COMPACT) : NULL;

    (void)snprintf(a->action, sizeof(a->action), "%s-%s", account_audit_verb(a), a->noun);
    a->change.action = a->action;
    a->change.object_kind = a->noun;
    a->change.before = before_text;
    a->change.after = after_text;
    event_batch_audit(batch, by, &a->change);
}

static void account_audit_event(const struct core *core, struct event_batch *batch, size_t i,
                                const struct audit_who *by)
{
    const struct event event = batch->events[i]; /* they may move */
    struct account_audit a = { .core = core, .event = &event };
    account_audit_write_fn *write = account_audit_name(&a, batch);
    json_auto_t *before = NULL, *after = NULL;
    const char *hidden;

    if (!write)
        return;
    before = account_audit_describe(core, write, a.old);
    after = account_audit_describe(core, write, a.new);
    if (before && after)
        account_audit_drop_same(before, after);
    hidden = account_audit_hidden(&a);
    if (hidden)
        json_object_set_new(after, hidden, json_string(a.old ? "changed" : "set"));
    if (before && after && !json_object_size(before) && !json_object_size(after))
        return; /* saved as it was */
    account_audit_write(&a, batch, before, after, by);
}

void account_audit_add(const struct core *core, struct event_batch *batch,
                       const struct audit_who *by)
{
    struct audit_by next = audit_by_copy(by);
    size_t count = batch->count;

    for (size_t i = 0; next.is_some && i < count; i++) {
        account_audit_event(core, batch, i, &next.who);
        next.who.action = NULL;
    }
}
