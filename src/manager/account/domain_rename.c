/* SPDX-License-Identifier: Apache-2.0 */
/* domain_rename.c - what a change saves besides the row when it renames a domain
 *
 * The store renames the domain in its rows, the core in memory. Weights of fair share and rules of
 * folders have the name inside of texts.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/account/account.h"

#define WEIGHT_MAX 80

/* The options with the weight under the new name, to be freed; NULL: the domain has no weight. */
static char *rename_weight(const struct resource_group *group, const char *from, const char *to)
{
    json_auto_t *opts = json_load_string(group->scheduler_opts, 0);
    json_t *weights = json_object_get(opts, "fair_share"), *weight;
    char old[WEIGHT_MAX], new[WEIGHT_MAX];

    (void)snprintf(old, sizeof(old), "domain:%s", from);
    (void)snprintf(new, sizeof(new), "domain:%s", to);
    if (!(weight = json_object_get(weights, old)))
        return NULL;
    (void)json_object_set(weights, new, weight);
    (void)json_object_del(weights, old);
    return json_dump_text(opts, JSON_COMPACT);
}

/* Takes 'opts'. */
static void rename_save_group(struct account_change *change, const struct resource_group *old,
                              char *opts)
{
    struct event *e = event_batch_add(change->batch, EVENT_RESOURCE_GROUP_SAVED,
                                      clock_realtime_usec());

    entity_copy(&resource_group_entity, &e->resource_group, old);
    free(e->resource_group.scheduler_opts);
    e->resource_group.scheduler_opts = opts;
}

void account_rename_domain_row(struct account_change *change, struct account_row *row)
{
    const struct domain *old = row->old;
    struct event_batch *batch = change->batch;
    size_t at = (size_t)(row->event - batch->events);
    const struct resource_group *group;
    struct event *e, saved;

    if (!old || strcmp(old->name, row->event->domain.name) == 0)
        return;
    change->rules.from = account_keep(row, old->name);
    change->rules.to = account_keep(row, row->event->domain.name);

    /* The name comes first: what else changes is saved under the new one. */
    e = event_batch_add(batch, EVENT_DOMAIN_RENAMED, clock_realtime_usec());
    e->domain_renamed.from = account_text(row, change->rules.from, NULL);
    e->domain_renamed.to = account_text(row, change->rules.to, NULL);
    saved = batch->events[at];
    batch->events[at] = *e;
    *e = saved;

    for (size_t i = 0; (group = core_get_resource_group(change->api->core, i)); i++) {
        char *opts = rename_weight(group, change->rules.from, change->rules.to);

        if (opts)
            rename_save_group(change, group, opts);
    }
    e = event_batch_add(batch, EVENT_ROWS_ADDED, clock_realtime_usec());
    e->rows_added.write = folder_rules_rename;
    e->rows_added.data = &change->rules;
    row->event = &batch->events[at + 1]; /* the events have moved */
}
