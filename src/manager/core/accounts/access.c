/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - who may use which resource group
 *
 * The store has the lists; the answer for one owner (domain, project,
 * keypair) is read once and kept until a list or a group changes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/query.h"
#include "store/token.h"
#include "manager/core/accounts/access.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
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
    int r = store_list_allowed_resource_groups(tx, s->domain, &s->project_id, s->access_key, &page,
                                               err);

    if (r < 0)
        return r;
    if (!(a = calloc(1, sizeof(*a)))
        || !(a->names = calloc(AQ_MAX(page->count, 1), sizeof(*a->names)))) {
        free(a);
        return aq_fail_oom(err);
    }
    for (size_t i = 0; i < page->count; i++)
        if (!(a->names[a->count++] = strdup(page->resource_groups[i].resource_group.name))) {
            allowed_free(a);
            return aq_fail_oom(err);
        }
    *ret = a;
    return 0;
}

int access_keep(struct core *core, const struct session *s, struct allowed *a)
{
    char key[ACCESS_KEY_TEXT_MAX];

    access_format_key(s, key);
    allowed_free(map_removes(&core->access, key));
    if (map_sets(&core->access, key, a) == 0)
        return 0;
    allowed_free(a);
    return -ENOMEM;
}

void access_forget(struct core *core)
{
    for (size_t i = 0; i < core->access.count; i++)
        allowed_free(core->access.entries[i].value);
    map_done(&core->access);
    core->access = (struct map)MAP_INIT;
}

/* ---- the command ---- */

struct allowing {
    struct core *core;
    char *resource_group, *domain, *group, *access_key;
    core_done_fn done;
    void *data;
};

static void allowing_free(struct allowing *a)
{
    free(a->resource_group);
    free(a->domain);
    free(a->group);
    free(a->access_key);
    free(a);
}

static int access_write_allowed(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct allowing *a = data;
    int r = 0;

    if (a->domain)
        r = resource_group_allow(tx, a->resource_group, ALLOW_DOMAIN, a->domain, err);
    if (r == 0 && a->group)
        r = resource_group_allow(tx, a->resource_group, ALLOW_PROJECT, a->group, err);
    if (r == 0 && a->access_key)
        r = resource_group_allow(tx, a->resource_group, ALLOW_KEYPAIR, a->access_key, err);
    return r;
}

static void access_on_allowed(void *data, int r, const struct aq_error *err)
{
    struct allowing *a = data;

    access_forget(a->core);
    a->done(a->data, r, err);
    allowing_free(a);
}

void core_allow_resource_group(struct core *core, const char *resource_group, const char *domain,
                               const char *group_id, const char *access_key, core_done_fn done,
                               void *data)
{
    struct allowing *a = calloc(1, sizeof(*a));

    if (a) {
        *a = (struct allowing){ .core = core,
                                .resource_group = strdup(resource_group),
                                .domain = domain ? strdup(domain) : NULL,
                                .group = group_id ? strdup(group_id) : NULL,
                                .access_key = access_key ? strdup(access_key) : NULL,
                                .done = done,
                                .data = data };
        if (a->resource_group && !domain == !a->domain && !group_id == !a->group
            && !access_key == !a->access_key
            && store_write(core->store, access_write_allowed, access_on_allowed, a) == 0)
            return;
        allowing_free(a);
    }
    core_defer(core, done, data, -ENOMEM,
               &(struct aq_error){ .code = ENOMEM, .text = "out of memory" });
}
