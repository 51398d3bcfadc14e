/* SPDX-License-Identifier: Apache-2.0 */
/* array_entry.c - arrays in memory: indexes, elements, what they take */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/state/account.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define ARRAY_BESIDE 512 /* bytes: indexes, and what malloc() adds */

struct array_entry *array_entry_find(const struct core *core, const struct uuid *id)
{
    return map_get(&core->arrays_by_id, id->bytes, sizeof(id->bytes));
}

struct array_entry *array_entry_find_named(const struct core *core, const struct uuid *user_id,
                                           const char *name)
{
    LIST_FOREACH(link, &core->arrays) {
        struct array_entry *entry = LIST_ENTRY(link, struct array_entry, all_link);

        if (uuid_equals(&entry->a.element.user_id, user_id) && strcmp(entry->a.name, name) == 0)
            return entry;
    }
    return NULL;
}

int64_t array_bytes_of(const struct array_set *indices)
{
    return (int64_t)(sizeof(struct array_entry) + ARRAY_BESIDE
                     + indices->count * sizeof(*indices->ranges));
}

void array_entry_measure(struct core *core, struct array_entry *entry)
{
    const struct session_array *a = &entry->a;
    int64_t bytes = array_bytes_of(&a->indices) + session_bytes_of(&a->element)
                    + (int64_t)session_spec_size(a->element.spec)
                    + (int64_t)(a->removed.count * sizeof(*a->removed.ranges));

    session_bytes_add(core, entry->user, bytes - entry->bytes);
    entry->bytes = bytes;
}

static void array_entry_list_by_row(struct core *core, struct array_entry *entry)
{
    struct list *place = &core->arrays;

    while (place->prev != &core->arrays
           && LIST_ENTRY(place->prev, struct array_entry, all_link)->a.row > entry->a.row)
        place = place->prev;
    list_add(place, &entry->all_link);
}

struct array_entry *array_entry_add(struct core *core, struct session_array *a)
{
    struct array_entry *entry = aq_alloc(sizeof(*entry));
    char user[UUID_TEXT_MAX];

    entry->a = *a;
    *a = (struct session_array){ .row = 0 };
    durable_init(&entry->durable, core->array_ops);
    list_init(&entry->all_link);
    list_init(&entry->living);
    list_init(&entry->waiters);
    entry->user = account_get(core, SCHED_USER, uuid_format(&entry->a.element.user_id, user));
    map_set(&core->arrays_by_id, entry->a.id.bytes, sizeof(entry->a.id.bytes), entry);
    array_entry_list_by_row(core, entry);
    durable_add(core, &entry->durable);
    array_entry_measure(core, entry);
    return entry;
}

void array_entry_retire(struct core *core, struct array_entry *entry)
{
    session_bytes_add(core, entry->user, -entry->bytes);
    map_remove(&core->arrays_by_id, entry->a.id.bytes, sizeof(entry->a.id.bytes));
    list_remove(&entry->all_link);
    durable_retire(core, &entry->durable);
}

void array_entry_free(struct array_entry *entry)
{
    session_array_done(&entry->a);
    free(entry->stop_text);
    free(entry);
}

struct session_entry *array_entry_find_element(const struct core *core,
                                               const struct array_entry *entry, int64_t index)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s[%" PRId64 "]", entry->a.name, index);
    const struct session *s = core_find_session_named(core, &entry->a.element.user_id, name);

    if (s && session_entry_of(s)->array == entry && s->array_index == index)
        return session_entry_of(s);
    LIST_FOREACH(link, &entry->living) { /* it may have been renamed */
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, array_link);

        if (l->s.array_index == index)
            return l;
    }
    return NULL;
}

static void array_entry_count_admitted(struct session_entry *l, bool is_admitted)
{
    l->array->admitted_count += is_admitted - l->array_admitted;
    l->array_admitted = is_admitted;
}

bool array_entry_admit(const struct core *core, struct session_entry *l)
{
    struct array_entry *entry = l->array;

    if (!entry || !entry->a.limit || l->array_admitted)
        return true;
    if (!core->is_started || entry->admitted_count >= entry->a.limit) { /* not all are loaded yet */
        entry->held_count += !l->array_held;
        l->array_held = true;
        return false;
    }
    array_entry_count_admitted(l, true);
    return true;
}

void array_entry_release(struct session_entry *l)
{
    if (!l->array_held)
        return;
    l->array->held_count--;
    l->array_held = false;
}

void array_entry_dismiss(struct core *core, struct session_entry *l)
{
    if (!l->array || !l->array_admitted)
        return;
    array_entry_count_admitted(l, false);
    durable_touch(core, &l->array->durable);
}

void array_entry_follow(struct session_entry *l)
{
    bool is_waiting = l->s.status == SESSION_PENDING;
    bool has_begun = l->array_begun || l->s.running_usec != 0;

    if (!l->array)
        return;
    l->array->waiting_count += is_waiting - l->array_waiting;
    l->array->begun_count += has_begun - l->array_begun;
    l->array_waiting = is_waiting;
    l->array_begun = has_begun;
    if (!is_waiting)
        array_entry_count_admitted(l, true);
}

void array_entry_join(struct core *core, struct session_entry *l)
{
    struct array_entry *entry = array_entry_find(core, &l->s.array_id);

    if (!entry)
        return;
    l->array = entry;
    list_add(&entry->living, &l->array_link);
    entry->living_count++;
    array_entry_follow(l);
}

void array_entry_leave(struct core *core, struct session_entry *l)
{
    struct array_entry *entry = l->array;

    if (!entry)
        return;
    array_entry_release(l);
    l->array = NULL;
    list_remove(&l->array_link);
    assert(entry->living_count > 0);
    entry->living_count--;
    entry->waiting_count -= l->array_waiting;
    entry->begun_count -= l->array_begun;
    entry->admitted_count -= l->array_admitted;
    l->array_waiting = l->array_begun = l->array_admitted = false;
    durable_touch(core, &entry->durable);
}
