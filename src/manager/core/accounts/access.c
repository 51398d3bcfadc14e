/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - who may use which resource group
 *
 * The store has the lists; the answer for one owner (domain, project,
 * keypair) is read once and kept until a list or a group changes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/rules/domain_check.h"
#include "store/audit_log.h"
#include "store/query.h"
#include "store/resource_group_access.h"
#include "manager/core/accounts/access.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/state.h"

static void access_format_key(const struct session *s, char key[ACCESS_KEY_TEXT_MAX])
{
    char *at = stpcpy(key, s->access_key);

    *at++ = '|';
    (void)uuid_format(&s->project_id, at);
    at += UUID_TEXT_MAX - 1;
    *at++ = '|';
    *stpncpy(at, s->domain, 64) = '\0';
}

const struct allowed *access_find(const struct core *core, const struct session *s)
{
    char key[ACCESS_KEY_TEXT_MAX];

    access_format_key(s, key);
    return map_gets(&core->access, key);
}

bool access_is_same(const struct session *a, const struct session *b)
{
    return strcmp(a->access_key, b->access_key) == 0 && uuid_equals(&a->project_id, &b->project_id)
           && strcmp(a->domain, b->domain) == 0;
}

static void allowed_free(struct allowed *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->count; i++)
        free(a->names[i]);
    free(a->names);
    free(a);
}

int access_read(struct store_tx *tx, const struct session *s, struct allowed **ret,
                struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct allowed *a;
    int r = domain_check(store_check_domain(tx, s->domain, err), err);

    if (r == 0)
        r = store_list_allowed_resource_groups(tx, s->domain, &s->project_id, s->access_key, &page,
                                               err);
    if (r < 0)
        return r;
    a = aq_alloc(sizeof(*a));
    a->names = aq_alloc_array(page->count, sizeof(*a->names));
    for (size_t i = 0; i < page->count; i++)
        a->names[a->count++] = aq_strdup(page->resource_groups[i].resource_group.name);
    *ret = a;
    return 0;
}

void access_keep(struct core *core, const struct session *s, struct allowed *a)
{
    char key[ACCESS_KEY_TEXT_MAX];

    access_format_key(s, key);
    allowed_free(map_removes(&core->access, key));
    map_sets(&core->access, key, a);
}

void access_forget(struct core *core)
{
    for (size_t i = 0; i < core->access.count; i++)
        allowed_free(core->access.entries[i].value);
    map_done(&core->access);
    core->access = (struct map)MAP_INIT;
    core->access_version++;
}

uint64_t core_access_version(const struct core *core)
{
    return core->access_version;
}

/* ---- the command ---- */

/* On its way into the store, with copies of the texts. */
struct access_change {
    struct core *core;
    struct core_access_change wanted;
    struct arena arena;
    struct audit_by by;
    core_done_fn done;
    void *data;
};

static void access_change_free(struct access_change *change)
{
    arena_done(&change->arena);
    free(change);
}

static int access_write_one(struct store_tx *tx, const struct core_access_change *wanted,
                            enum allow_kind kind, const char *whom, struct aq_error *err)
{
    int r = 0;

    if (!whom)
        return 0;
    if (wanted->count == 0)
        return resource_group_disallow(tx, NULL, kind, whom, err);
    for (size_t i = 0; r == 0 && i < wanted->count; i++)
        r = wanted->is_allowed
                ? domain_check(
                    resource_group_allow(tx, wanted->resource_groups[i], kind, whom, err), err)
                : resource_group_disallow(tx, wanted->resource_groups[i], kind, whom, err);
    return r;
}

static void access_write_whom(const struct core_access_change *wanted, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    if (wanted->domain)
        jsonw_member_str(&w, "domain", wanted->domain);
    if (wanted->project_id)
        jsonw_member_str(&w, "project", wanted->project_id);
    if (wanted->access_key)
        jsonw_member_str(&w, "access_key", wanted->access_key);
    jsonw_object_end(&w);
}

/* Who may use it now, or could before. */
static int access_write_entry(struct store_tx *tx, const struct access_change *change,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT, whom = STRBUF_INIT;
    const struct core_access_change *wanted = &change->wanted;

    if (!change->by.is_some)
        return 0;
    for (size_t i = 0; i < wanted->count; i++)
        strbuf_addf(&names, "%s%s", i ? "," : "", wanted->resource_groups[i]);
    access_write_whom(wanted, &whom);
    return audit_log_add_change(
        tx, &change->by.who,
        &(struct audit_change){
            .action = wanted->is_allowed ? "allow-resource-group" : "disallow-resource-group",
            .object_kind = "resource-group",
            .object_name = wanted->count ? names.data : "*",
            .before = wanted->is_allowed ? NULL : whom.data,
            .after = wanted->is_allowed ? whom.data : NULL,
        },
        err);
}

static int access_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct access_change *change = data;
    const struct core_access_change *wanted = &change->wanted;
    int r = access_write_one(tx, wanted, ALLOW_DOMAIN, wanted->domain, err);

    if (r == 0)
        r = access_write_one(tx, wanted, ALLOW_PROJECT, wanted->project_id, err);
    if (r == 0)
        r = access_write_one(tx, wanted, ALLOW_KEYPAIR, wanted->access_key, err);
    return r < 0 ? r : access_write_entry(tx, change, err);
}

static void access_on_changed(void *data, int r, const struct aq_error *err)
{
    struct access_change *change = data;

    access_forget(change->core);
    change->done(change->data, r, err);
    access_change_free(change);
}

static void access_keep_text(struct arena *arena, const char **text)
{
    if (*text)
        *text = arena_strdup(arena, *text);
}

void core_change_access(struct core *core, const struct core_access_change *wanted,
                        const struct audit_who *by, core_done_fn done, void *data)
{
    struct access_change *change = aq_alloc(sizeof(*change));
    const char **names;

    *change = (struct access_change){ .core = core,
                                      .wanted = *wanted,
                                      .arena = ARENA_INIT,
                                      .by = audit_by_copy(by),
                                      .done = done,
                                      .data = data };
    names = arena_array(&change->arena, wanted->count, sizeof(*names));
    for (size_t i = 0; i < wanted->count; i++)
        names[i] = arena_strdup(&change->arena, wanted->resource_groups[i]);
    change->wanted.resource_groups = names;
    access_keep_text(&change->arena, &change->wanted.domain);
    access_keep_text(&change->arena, &change->wanted.project_id);
    access_keep_text(&change->arena, &change->wanted.access_key);
    store_write(core->store, access_write_change, access_on_changed, change);
}
