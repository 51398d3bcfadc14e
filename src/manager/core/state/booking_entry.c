/* SPDX-License-Identifier: Apache-2.0 */
/* booking_entry.c - bookings in memory, and which sessions are theirs */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

struct booking_entry *booking_entry_find(const struct core *core, const struct uuid *id)
{
    LIST_FOREACH(link, &core->bookings) {
        struct booking_entry *entry = LIST_ENTRY(link, struct booking_entry, all_link);

        if (uuid_equals(&entry->b.id, id))
            return entry;
    }
    return NULL;
}

struct booking_entry *booking_entry_find_named(const struct core *core, const char *name)
{
    LIST_FOREACH(link, &core->bookings) {
        struct booking_entry *entry = LIST_ENTRY(link, struct booking_entry, all_link);

        if (strcmp(entry->b.name, name) == 0)
            return entry;
    }
    return NULL;
}

struct booking_entry *booking_entry_add(struct core *core, struct booking *b, int64_t used_usec)
{
    struct booking_entry *entry = aq_alloc(sizeof(*entry));

    entry->b = *b;
    *b = (struct booking){ .name = "" };
    durable_init(&entry->durable, core->booking_ops);
    list_init(&entry->sessions);
    entry->used_usec = used_usec;
    entry->resource_group = resource_group_entry_get(core, entry->b.resource_group);
    list_add(&core->bookings, &entry->all_link);
    core->booking_count++;
    durable_add(core, &entry->durable);
    return entry;
}

void booking_entry_replace(struct booking_entry *entry, struct booking *b)
{
    booking_done(&entry->b);
    entry->b = *b;
    *b = (struct booking){ .name = "" };
}

void booking_entry_retire(struct core *core, struct booking_entry *entry)
{
    LIST_FOREACH(link, &entry->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, booking_link);

        list_remove(&l->booking_link);
        l->booking = NULL;
    }
    list_remove(&entry->all_link);
    core->booking_count--;
    durable_retire(core, &entry->durable);
}

void booking_entry_free(struct booking_entry *entry)
{
    booking_done(&entry->b);
    free(entry);
}

void booking_entry_join(struct core *core, struct session_entry *l)
{
    struct booking_entry *entry = uuid_is_nil(&l->s.booking_id)
                                      ? NULL
                                      : booking_entry_find(core, &l->s.booking_id);

    if (!entry)
        return;
    l->booking = entry;
    list_add(&entry->sessions, &l->booking_link);
    durable_touch(core, &entry->durable);
}

void booking_entry_leave(struct core *core, struct session_entry *l)
{
    struct booking_entry *entry = AQ_TAKE(l->booking);

    if (!entry)
        return;
    list_remove(&l->booking_link);
    durable_touch(core, &entry->durable);
}
