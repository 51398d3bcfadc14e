/* SPDX-License-Identifier: Apache-2.0 */
/* The resource groups whose nodes a user sees: see live.h. */
#include "manager/live/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/query.h"

struct live_groups {
    live_groups_fn fn; /* NULL = cancelled */
    void *data;
    char *domain;
    char access_key[ACCESS_KEY_MAX];
    struct uuid *projects;
    size_t project_count;
    struct strbuf names;
};

static void live_groups_add(struct strbuf *names, const char *name)
{
    AQ_CLEANUP(aq_freep) char *line = aq_format("\n%s\n", name);

    if (!strstr(names->data, line))
        strbuf_addf(names, names->len ? "%s\n" : "\n%s\n", name);
}

/* store_tx_fn */
static int live_groups_list(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct live_groups *groups = data;
    int r = 0;

    for (size_t i = 0; r == 0 && i < groups->project_count; i++) {
        AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;

        r = store_list_allowed_resource_groups(tx, groups->domain, &groups->projects[i],
                                               groups->access_key, &page, err);
        for (size_t k = 0; r == 0 && k < page->count; k++)
            live_groups_add(&groups->names, page->resource_groups[k].resource_group.name);
    }
    return AQ_MIN(r, 0);
}

static void live_groups_free(struct live_groups *groups)
{
    if (!groups)
        return;
    strbuf_done(&groups->names);
    free(groups->projects);
    free(groups->domain);
    free(groups);
}

AQ_DEFINE_CLEANUP(struct live_groups, live_groups_free)

/* store_done_fn */
static void live_groups_on_listed(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(live_groups_freep) struct live_groups *groups = data;

    if (groups->fn)
        groups->fn(groups->data, r, r == 0 ? strbuf_steal(&groups->names) : NULL, err);
}

struct live_groups *live_groups_read(struct core *core, const struct user *user,
                                     const char *access_key, live_groups_fn fn, void *data)
{
    struct live_groups *groups = aq_alloc(sizeof(*groups));

    groups->fn = fn;
    groups->data = data;
    strbuf_init(&groups->names);
    groups->project_count = user ? user->project_count : 0;
    (void)stpncpy(groups->access_key, access_key, sizeof(groups->access_key) - 1);
    groups->domain = aq_strdup(user && user->domain ? user->domain : "");
    groups->projects = aq_alloc_array(groups->project_count + 1, sizeof(*groups->projects));
    if (groups->project_count)
        memcpy(groups->projects, user->project_ids,
               groups->project_count * sizeof(*groups->projects));
    store_read(core_store(core), live_groups_list, live_groups_on_listed, groups);
    return groups;
}

void live_groups_cancel(struct live_groups *groups)
{
    if (groups)
        groups->fn = NULL;
}

uint64_t live_groups_version(const struct core *core, const struct user *user)
{
    uint64_t version = core_access_version(core);

    return user && user->project_count
               ? version
                     ^ aq_hash(user->project_ids, user->project_count * sizeof(*user->project_ids))
               : version;
}
