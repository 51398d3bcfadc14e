/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.c - sessions that wait for the success of others */
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "store/query.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/session/dependency.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

struct dependents {
    struct session_entry **items;
    size_t count, cap;
};

static void dependents_free(struct dependents *d)
{
    free(d->items);
    free(d);
}

/* The session 'id' has ended: tell who waits for it. */
static void dependency_depend_resolve(struct core *core, const struct uuid *id,
                                      enum session_result result)
{
    struct dependents *d = map_remove(&core->dependents, id->bytes, sizeof(id->bytes));

    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++) {
        struct session *s = &d->items[i]->s;

        for (size_t k = 0; k < s->dependency_count; k++)
            if (uuid_equals(&s->dependencies[k].id, id)) {
                s->dependencies[k].ended = true;
                s->dependencies[k].result = result;
            }
        queue_unpark(core, d->items[i]);
    }
    dependents_free(d);
}

void dependency_ended(struct core *core, struct session_entry *l)
{
    dependency_depend_resolve(core, &l->s.id, l->s.result);
}

/* ---- one that ended while the session that waits for it was being stored ---- */

struct depend_question {
    struct core *core;
    struct uuid id;
    enum session_result result;
};

static int dependency_read_result(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct depend_question *q = data;
    struct store_query query = { .ids = &q->id, .id_count = 1 };
    int r = store_list_sessions(tx, &query, &page, err);

    if (r == 0 && page->count > 0)
        q->result = page->sessions[0].session.result;
    return r;
}

static void dependency_depend_ask(struct core *core, const struct uuid *id);

static void dependency_depend_on_result(void *data, int r, const struct aq_error *err)
{
    struct depend_question *q = data;

    if (r < 0) {
        log_warning("a dependency's result could not be read, trying again: %s", err->text);
        dependency_depend_ask(q->core, &q->id);
    } else {
        dependency_depend_resolve(q->core, &q->id, q->result);
    }
    free(q);
}

static void dependency_depend_ask(struct core *core, const struct uuid *id)
{
    struct depend_question *q = aq_alloc(sizeof(*q));

    q->core = core;
    q->id = *id;
    store_read(core->store, dependency_read_result, dependency_depend_on_result, q);
}

/* ---- watching ---- */

void dependency_watch(struct core *core, struct session_entry *l)
{
    for (size_t i = 0; i < l->s.dependency_count; i++) {
        const struct uuid *id = &l->s.dependencies[i].id;
        struct dependents *d = map_get(&core->dependents, id->bytes, sizeof(id->bytes));

        if (l->s.dependencies[i].ended)
            continue;
        if (!d) {
            d = aq_alloc(sizeof(*d));
            map_set(&core->dependents, id->bytes, sizeof(id->bytes), d);
        }
        vec_grow(&d->items, &d->cap, d->count + 1, sizeof(struct session_entry *));
        d->items[d->count++] = l;
        if (core->is_started && !session_entry_find(core, id))
            dependency_depend_ask(core, id);
    }
}

void dependency_forget(struct core *core, struct session_entry *l)
{
    for (size_t i = 0; i < l->s.dependency_count; i++) {
        const struct uuid *id = &l->s.dependencies[i].id;
        struct dependents *d = map_get(&core->dependents, id->bytes, sizeof(id->bytes));

        for (size_t k = 0; d && k < d->count; k++)
            if (d->items[k] == l)
                d->items[k--] = d->items[--d->count];
        if (d && d->count == 0)
            dependents_free(map_remove(&core->dependents, id->bytes, sizeof(id->bytes)));
    }
}

void dependency_free(struct core *core)
{
    for (size_t i = 0; i < core->dependents.count; i++)
        dependents_free(core->dependents.entries[i].value);
    map_done(&core->dependents);
}
