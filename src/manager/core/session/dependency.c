/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.c - sessions that wait for a status or an end of others */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/core.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/session/dependency.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "store/query.h"

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

void dependency_started(struct core *core, struct session_entry *l)
{
    struct dependents *d = map_get(&core->dependents, l->s.id.bytes, sizeof(l->s.id.bytes));

    for (size_t i = 0; d && i < d->count; i++) {
        struct session *s = &d->items[i]->s;

        for (size_t k = 0; k < s->dependency_count; k++)
            if (uuid_equals(&s->dependencies[k].id, &l->s.id))
                s->dependencies[k].has_run = true;
        queue_unpark(core, d->items[i]);
    }
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
        const struct session_entry *other;

        if (l->s.dependencies[i].ended)
            continue;
        if (!d) {
            d = aq_alloc(sizeof(*d));
            map_set(&core->dependents, id->bytes, sizeof(id->bytes), d);
        }
        vec_grow(&d->items, &d->cap, d->count + 1, sizeof(struct session_entry *));
        d->items[d->count++] = l;
        if ((other = session_entry_find(core, id)))
            l->s.dependencies[i].has_run = other->s.running_usec != 0;
        else if (core->is_started)
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

/* ---- the sessions that a request names: found in memory, else in the store, or unknown ---- */

/* Add one, unless it is there already; it must still be possible to meet it. */
static int dependency_add(struct session *s, const struct session_dependency *add,
                          struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    for (size_t i = 0; i < s->dependency_count; i++) {
        const struct session_dependency *d = &s->dependencies[i];

        if (!uuid_equals(&d->id, &add->id))
            continue;
        if (d->condition == add->condition)
            return 0;
        return aq_fail_field(err, EINVAL, "dependencies",
                             "session %s is named with the conditions %s and %s; name it once",
                             uuid_format(&add->id, text), dependency_condition_name(d->condition),
                             dependency_condition_name(add->condition));
    }
    if (dependency_state(add) == DEPENDENCY_UNMET)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "session %s has ended %s success; what waits for its %s would never "
                             "start",
                             uuid_format(&add->id, text),
                             add->result == RESULT_SUCCESS ? "with" : "without",
                             dependency_condition_name(add->condition));
    s->dependencies[s->dependency_count++] = *add;
    return 0;
}

static const struct session *dependency_find_live(const struct core *core,
                                                  const struct session *owner, const char *text)
{
    struct uuid id;
    const struct session *s;

    if (uuid_parse(text, &id) < 0)
        return core_find_session_named(core, &owner->user_id, text);
    s = core_find_session(core, &id);
    return s && uuid_equals(&s->user_id, &owner->user_id) ? s : NULL;
}

int dependency_resolve(const struct core *core, const struct session_request *req,
                       struct session *s, struct dependency_missing *ret, struct aq_error *err)
{
    int r = 0;

    if (req->dependency_count == 0)
        return 0;
    if (req->dependency_count > 1000)
        return aq_fail_field(err, EINVAL, "dependencies", "more than 1000 dependencies");
    s->dependencies = aq_alloc_array(req->dependency_count, sizeof(*s->dependencies));
    ret->names = aq_alloc_array(req->dependency_count, sizeof(*ret->names));
    for (size_t i = 0; i < req->dependency_count && r == 0; i++) {
        struct session_dependency add = { .condition = DEPENDENCY_SUCCESS };
        const struct session *live;
        const char *name;

        if ((r = dependency_parse(req->dependencies[i], &add.condition, &name, err)) < 0)
            break;
        if ((live = dependency_find_live(core, s, name))) {
            add.id = live->id;
            r = dependency_add(s, &add, err);
        } else {
            ret->names[ret->count++] = aq_strdup(req->dependencies[i]);
        }
    }
    return r;
}

/* The latest session of that id or name. */
static int dependency_resolve_ended(struct store_tx *tx, struct session *s, const char *text,
                                    struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query q = { .user_id = &s->user_id, .limit = 1 };
    struct session_dependency add = { .ended = false };
    const struct session *found;
    const char *name;
    struct uuid id;
    int r = dependency_parse(text, &add.condition, &name, err);

    if (r < 0)
        return r;
    if (uuid_parse(name, &id) == 0) {
        q.ids = &id;
        q.id_count = 1;
    } else {
        q.name = name;
    }
    if ((r = store_list_sessions(tx, &q, &page, err)) < 0)
        return r;
    if (page->count == 0)
        return aq_fail_field(err, ENOENT, "dependencies", "no session of yours is called '%s'",
                             name);
    found = &page->sessions[0].session;
    add.id = found->id;
    add.has_run = found->running_usec != 0;
    add.ended = session_is_terminal(found->status);
    add.result = found->result;
    return dependency_add(s, &add, err);
}

int dependency_read_missing(struct store_tx *tx, struct session *s,
                            const struct dependency_missing *missing, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < missing->count && r == 0; i++)
        r = dependency_resolve_ended(tx, s, missing->names[i], err);
    return r;
}

void dependency_missing_done(struct dependency_missing *missing)
{
    for (size_t i = 0; i < missing->count; i++)
        free(missing->names[i]);
    free(AQ_TAKE(missing->names));
    missing->count = 0;
}
