/* SPDX-License-Identifier: Apache-2.0 */
/* create_array.c - arrays and their elements, made the way of create.c
 *
 * An array is one draft, which becomes its row. Elements are drafts that are made from that row, as
 * many as are made at once; the row says in the same batch how far the array is.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/session/create.h"
#include "manager/core/session/creation.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/state.h"

int create_add_array(struct creation *c)
{
    struct create_draft *d = &c->drafts[0];
    struct session_array *a;
    int r;

    session_audit_created(c->core, c->batch, &d->s, "create-array", audit_by_get(&c->by));
    create_set_created(&c->created[0], &d->s, true);
    a = aq_alloc(sizeof(*a));
    r = session_array_init(a, &d->s, &c->indices, c->limit, &c->err);
    if (r < 0) {
        free(a);
        return r;
    }
    event_batch_add(c->batch, EVENT_ARRAY_CREATED, a->created_usec)->array = a;
    return 0;
}

void create_add_progress(struct creation *c)
{
    struct event *e = event_batch_add(c->batch, EVENT_ARRAY_CHANGED, clock_realtime_usec());
    const struct session_array *a = &c->entry->a;
    const struct session *first = &c->batch->events[0].session;
    bool is_met = a->element.dependency_count > 0;

    for (size_t i = 0; i < a->element.dependency_count; i++)
        is_met = is_met && a->element.dependencies[i].condition != DEPENDENCY_CORRESPONDING;
    for (size_t i = 0; i < first->dependency_count; i++)
        is_met = is_met && dependency_state(&first->dependencies[i]) == DEPENDENCY_MET;
    e->array_change = (struct event_array_change){ .id = a->id,
                                                   .version = a->version,
                                                   .next = c->drafts[c->count - 1].position + 1,
                                                   .made = a->made + (int64_t)c->count,
                                                   .skipped = a->skipped,
                                                   .drops_dependencies = is_met };
}

void core_create_array(struct core *core, const struct session_request *request,
                       const struct array_set *indices, int64_t limit,
                       const struct core_answered *answered, const struct audit_who *by,
                       core_create_fn done, void *data)
{
    struct creation *c = creation_new(core, 1, data);

    c->done = done;
    c->answered = answered;
    c->by = audit_by_copy(by);
    c->indices = array_set_copy(indices);
    c->limit = limit;
    create_start(c, &request, 1);
}

void create_elements(struct core *core, struct array_entry *entry, int64_t count,
                     core_create_fn done, void *data)
{
    const struct session_array *a = &entry->a;
    struct creation *c = creation_new(core, (size_t)count, data);
    struct array_cursor cursor = array_set_seek(&a->indices, a->next);
    int64_t position = a->next, index, now = clock_realtime_usec();

    c->done = done;
    c->entry = entry;
    c->count = 0;
    for (; (int64_t)c->count < count && (index = array_cursor_next(&cursor)) >= 0; position++) {
        struct create_draft *d = &c->drafts[c->count];

        if (array_set_has(&a->removed, index))
            continue;
        session_array_make(a, index, now, &d->s);
        d->position = position;
        d->resource_group = aq_strdup(a->element.resource_group);
        dependency_resolve_element(core, entry, c->count == 0, &d->s, &d->missing);
        c->count++;
    }
    create_go_on(c);
}
