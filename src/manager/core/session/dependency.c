/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.c - sessions that wait for a status or an end of others
 *
 * core.dependents has a list of those that wait for each session, for each array, and for each
 * element of an array that had no row yet. What is waited for reports its news to that list.
 */
#include "manager/core/session/dependency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/core.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/event.h"
#include "store/dependency.h"

static void dependents_free(struct dependents *d)
{
    free(d->items);
    free(d);
}

struct dependency_key dependency_key_of(const struct session_dependency *d)
{
    struct dependency_key key = { .len = d->is_array ? sizeof(key.bytes) : sizeof(struct uuid) };

    memcpy(key.bytes, d->id.bytes, sizeof(struct uuid));
    if (d->is_array)
        memcpy(key.bytes + sizeof(struct uuid), &d->element, sizeof(d->element));
    return key;
}

/* ---- news ---- */

/* The sessions that wait for what 'news' names take its state, and are examined if that changes
 * theirs. What has ended has no further news.
 */
static void dependency_report(struct core *core, const struct session_dependency *news)
{
    struct dependency_key key = dependency_key_of(news);
    struct dependents *d = news->ended ? map_remove(&core->dependents, key.bytes, key.len)
                                       : map_get(&core->dependents, key.bytes, key.len);

    for (size_t i = 0; d && i < d->count; i++) {
        struct session *s = &d->items[i]->s;

        for (size_t k = 0; k < s->dependency_count; k++) {
            struct session_dependency *to = &s->dependencies[k];
            enum dependency_state before = dependency_state(to);

            if (!dependency_is_same(to, news) || to->ended)
                continue;
            to->has_run |= news->has_run;
            to->has_failed |= news->has_failed;
            to->ended = news->ended;
            to->result = news->result;
            if (dependency_state(to) != before)
                queue_unpark(core, d->items[i]);
        }
    }
    if (d && news->ended)
        dependents_free(d);
}

/* To those that wait for a session by its id, or by its array and index. */
static void dependency_report_session(struct core *core, const struct session *s, bool has_ended)
{
    struct session_dependency news = { .id = s->id,
                                       .has_run = s->running_usec != 0,
                                       .ended = has_ended,
                                       .result = has_ended ? s->result : RESULT_UNDEFINED };

    dependency_report(core, &news);
    if (uuid_is_nil(&s->array_id))
        return;
    news.id = s->array_id;
    news.is_array = true;
    news.element = s->array_index;
    dependency_report(core, &news);
}

void dependency_started(struct core *core, struct session_entry *l)
{
    dependency_report_session(core, &l->s, false);
}

void dependency_ended(struct core *core, struct session_entry *l)
{
    dependency_report_session(core, &l->s, true);
}

/* All elements of the array, by its counts. */
static struct session_dependency dependency_describe_array(const struct array_entry *entry)
{
    const struct session_array *a = &entry->a;
    struct session_dependency d = { .id = a->id, .is_array = true, .element = DEPENDENCY_ALL };

    d.has_run = a->made + a->skipped == a->size && entry->begun_count == entry->living_count;
    d.has_failed = a->outcomes[ARRAY_FAILED] + a->outcomes[ARRAY_CANCELLED] + a->skipped > 0;
    d.ended = a->ended_usec != 0;
    if (d.ended)
        d.result = a->outcomes[ARRAY_SUCCEEDED] == a->size ? RESULT_SUCCESS : RESULT_FAILURE;
    return d;
}

void dependency_array_changed(struct core *core, struct array_entry *entry)
{
    struct session_dependency news = dependency_describe_array(entry);

    if (!news.ended && news.has_run <= entry->has_told_run
        && news.has_failed <= entry->has_told_fail)
        return; /* nothing new, as after most changes of elements */
    entry->has_told_run |= news.has_run;
    entry->has_told_fail |= news.has_failed;
    dependency_report(core, &news);
}

void dependency_array_shrinks(struct core *core, const struct array_entry *entry,
                              const struct event_array_change *change)
{
    int64_t unmade = session_array_first_unmade(&entry->a);
    struct session_dependency *all = NULL;
    size_t count = 0, cap = 0;

    if (!change->cancelled_usec && !change->has_removed)
        return;
    for (size_t i = 0; i < core->dependents.count; i++) {
        const struct map_entry *at = &core->dependents.entries[i];
        struct session_dependency d = { .id = entry->a.id, .is_array = true, .ended = true };

        if (at->key_len != sizeof(struct uuid) + sizeof(d.element)
            || memcmp(at->key, d.id.bytes, sizeof(struct uuid)) != 0)
            continue;
        memcpy(&d.element, at->key + sizeof(struct uuid), sizeof(d.element));
        if (d.element < unmade
            || (!change->cancelled_usec && !array_set_has(&change->removed, d.element)))
            continue;
        vec_grow(&all, &cap, count + 1, sizeof(*all));
        all[count++] = d;
    }
    for (size_t i = 0; i < count; i++) /* only now, as it removes keys */
        dependency_report(core, &all[i]);
    free(all);
}

/* ---- what ended while the session that waits for it was being stored ---- */

struct dependency_question {
    struct core *core;
    struct session_dependency about;
};

static int dependency_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct dependency_question *q = data;

    return store_read_dependency(tx, &q->about, err);
}

static void dependency_ask(struct core *core, const struct session_dependency *about);

static void dependency_on_read(void *data, int r, const struct aq_error *err)
{
    struct dependency_question *q = data;

    if (r == -ENOENT) /* the retention has removed its row: it had ended */
        q->about.ended = true;
    if (r == 0 || r == -ENOENT) {
        dependency_report(q->core, &q->about);
    } else {
        log_warning("cannot read the state of a dependency, trying again: %s", err->text);
        dependency_ask(q->core, &q->about);
    }
    free(q);
}

static void dependency_ask(struct core *core, const struct session_dependency *about)
{
    struct dependency_question *q = aq_alloc(sizeof(*q));

    *q = (struct dependency_question){ core, *about };
    store_read(core->store, dependency_read, dependency_on_read, q);
}

/* ---- watching ---- */

/* Take what memory has of it. False: it is not in memory, as it has ended. */
static bool dependency_look(const struct core *core, struct session_dependency *d)
{
    const struct array_entry *entry = d->is_array ? array_entry_find(core, &d->id) : NULL;
    const struct session_entry *other;

    if (d->is_array && d->element == DEPENDENCY_ALL) {
        enum dependency_condition condition = d->condition;

        if (!entry)
            return false;
        *d = dependency_describe_array(entry);
        d->condition = condition;
        return true;
    }
    other = !d->is_array ? session_entry_find(core, &d->id)
            : entry      ? array_entry_find_element(core, entry, d->element)
                         : NULL;
    if (other)
        d->has_run = other->s.running_usec != 0;
    return other
           || (entry && !entry->a.cancelled_usec
               && d->element >= session_array_first_unmade(&entry->a)
               && !array_set_has(&entry->a.removed, d->element));
}

void core_get_array_dependency(const struct core *core, const struct session_array *array,
                               size_t at, struct session_dependency *ret, const char **ret_name,
                               int64_t *ret_number)
{
    const struct array_entry *other;
    const struct session *s;

    *ret = array->element.dependencies[at];
    other = ret->is_array ? array_entry_find(core, &ret->id) : NULL;
    s = ret->is_array ? NULL : core_find_session(core, &ret->id);
    *ret_name = other ? other->a.name : s ? s->name : NULL;
    *ret_number = other ? other->a.row : s ? s->row : 0;
    if (!dependency_look(core, ret) && ret->condition != DEPENDENCY_CORRESPONDING) {
        const struct array_entry *entry = array_entry_find(core, &array->id);

        ret->ended = true; /* the first element that is made says what that means */
        ret->result = (ret->condition == DEPENDENCY_FAILURE) == !(entry && entry->is_failing)
                          ? RESULT_FAILURE
                          : RESULT_SUCCESS;
    }
}

void dependency_watch(struct core *core, struct session_entry *l)
{
    for (size_t i = 0; i < l->s.dependency_count; i++) {
        struct session_dependency *on = &l->s.dependencies[i];
        struct dependency_key key = dependency_key_of(on);
        struct dependents *d = map_get(&core->dependents, key.bytes, key.len);

        if (on->ended)
            continue;
        if (!d) {
            d = aq_alloc(sizeof(*d));
            map_set(&core->dependents, key.bytes, key.len, d);
        }
        vec_grow(&d->items, &d->cap, d->count + 1, sizeof(struct session_entry *));
        d->items[d->count++] = l;
        /* at the start the rows have said it, and elements are not all in memory yet */
        if (core->is_started && !dependency_look(core, on))
            dependency_ask(core, on);
    }
}

void dependency_forget(struct core *core, struct session_entry *l)
{
    for (size_t i = 0; i < l->s.dependency_count; i++) {
        struct dependency_key key = dependency_key_of(&l->s.dependencies[i]);
        struct dependents *d = map_get(&core->dependents, key.bytes, key.len);

        for (size_t k = 0; d && k < d->count; k++)
            if (d->items[k] == l) { /* it is there once */
                d->items[k] = d->items[--d->count];
                break;
            }
        if (d && d->count == 0)
            dependents_free(map_remove(&core->dependents, key.bytes, key.len));
    }
}

void dependency_free(struct core *core)
{
    for (size_t i = 0; i < core->dependents.count; i++)
        dependents_free(core->dependents.entries[i].value);
    map_done(&core->dependents);
}
