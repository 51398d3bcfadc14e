/* SPDX-License-Identifier: Apache-2.0 */
/* model_service_entry.c - model services in memory, and which sessions are their replicas */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

struct model_service_entry *model_service_entry_find(const struct core *core, const struct uuid *id)
{
    LIST_FOREACH(link, &core->services) {
        struct model_service_entry *entry = LIST_ENTRY(link, struct model_service_entry, all_link);

        if (uuid_equals(&entry->s.id, id))
            return entry;
    }
    return NULL;
}

struct model_service_entry *model_service_entry_find_named(const struct core *core,
                                                           const char *name)
{
    LIST_FOREACH(link, &core->services) {
        struct model_service_entry *entry = LIST_ENTRY(link, struct model_service_entry, all_link);

        if (strcasecmp(entry->s.name, name) == 0)
            return entry;
    }
    return NULL;
}

/* By creation, then by id: the order of their rows. */
static void service_entry_list(struct core *core, struct model_service_entry *entry)
{
    struct list *place = &core->services;

    while (place->prev != &core->services) {
        const struct model_service *before =
            &LIST_ENTRY(place->prev, struct model_service_entry, all_link)->s;

        if (before->created_usec < entry->s.created_usec
            || (before->created_usec == entry->s.created_usec
                && uuid_compare(&before->id, &entry->s.id) < 0))
            break;
        place = place->prev;
    }
    list_add(place, &entry->all_link);
}

struct model_service_entry *model_service_entry_add(struct core *core, struct model_service *s,
                                                    int64_t last_replica)
{
    struct model_service_entry *entry = aq_alloc(sizeof(*entry));

    entry->s = *s;
    *s = (struct model_service){ .name = "" };
    durable_init(&entry->durable, core->service_ops);
    list_init(&entry->changed_link);
    list_init(&entry->replicas);
    entry->last_replica = last_replica;
    entry->base_version = entry->s.version;
    service_entry_list(core, entry);
    core->service_count++;
    durable_add(core, &entry->durable);
    return entry;
}

void model_service_entry_replace(struct model_service_entry *entry, struct model_service *s)
{
    struct model_service_token *tokens = s->tokens;
    size_t count = s->token_count;

    for (size_t i = 0; i < s->revision_count; i++) {
        const struct model_service_revision *was = model_service_find_revision(
            &entry->s, s->revisions[i].number);

        s->revisions[i].failures = was ? was->failures : 0;
    }
    s->tokens = entry->s.tokens;
    s->token_count = entry->s.token_count;
    entry->s.tokens = tokens;
    entry->s.token_count = count;
    model_service_done(&entry->s);
    entry->s = *s;
    *s = (struct model_service){ .name = "" };
}

void model_service_entry_add_token(struct model_service_entry *entry,
                                   struct model_service_token *token)
{
    struct model_service *s = &entry->s;
    size_t at = s->token_count;

    s->tokens = aq_realloc(s->tokens, (s->token_count + 1) * sizeof(*s->tokens));
    while (at > 0
           && (s->tokens[at - 1].created_usec > token->created_usec
               || (s->tokens[at - 1].created_usec == token->created_usec
                   && uuid_compare(&s->tokens[at - 1].id, &token->id) > 0)))
        at--;
    memmove(&s->tokens[at + 1], &s->tokens[at], (s->token_count - at) * sizeof(*s->tokens));
    s->tokens[at] = *token;
    s->token_count++;
    *token = (struct model_service_token){ .hash = "" };
}

void model_service_entry_note_change(struct core *core, struct model_service_entry *entry)
{
    if (list_is_empty(&entry->changed_link))
        list_add(&core->changed_services, &entry->changed_link);
    durable_touch(core, &entry->durable);
}

void model_service_entry_retire(struct core *core, struct model_service_entry *entry)
{
    while (!list_is_empty(&entry->replicas))
        replica_entry_leave(core,
                            LIST_ENTRY(entry->replicas.next, struct replica_entry, link)->session);
    list_remove(&entry->all_link);
    core->service_count--;
    durable_retire(core, &entry->durable);
}

void model_service_entry_free(struct model_service_entry *entry)
{
    list_remove(&entry->changed_link);
    model_service_done(&entry->s);
    free(entry->failure.text);
    free(entry->problem);
    free(entry->uses.items);
    free(entry->uses.writing);
    free(entry);
}

/* ---- replicas ---- */

void replica_entry_join(struct core *core, struct session_entry *l)
{
    struct model_service_entry *entry;
    struct replica_entry *replica;
    struct list *place;

    if (!l->s.replica)
        return;
    entry = model_service_entry_find(core, &l->s.replica->service_id);
    if (!entry) { /* its service has ended: nobody would end it otherwise */
        l->commands.end_reason = REASON_SERVICE_ENDED;
        return;
    }
    replica = aq_alloc(sizeof(*replica));
    replica->session = l;
    replica->service = entry;
    l->replica = replica;
    place = &entry->replicas;
    while (place->prev != &entry->replicas
           && LIST_ENTRY(place->prev, struct replica_entry, link)->session->s.row > l->s.row)
        place = place->prev;
    list_add(place, &replica->link);
    if (entry->last_replica < l->s.replica->number)
        entry->last_replica = l->s.replica->number;
    model_service_entry_note_change(core, entry);
}

void replica_entry_leave(struct core *core, struct session_entry *l)
{
    struct replica_entry *replica = AQ_TAKE(l->replica);

    if (!replica)
        return;
    list_remove(&replica->link);
    model_service_entry_note_change(core, replica->service);
    free(replica->health_text);
    free(replica->last_lines);
    free(replica->share.text);
    free(replica);
}
