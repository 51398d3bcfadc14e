/* SPDX-License-Identifier: Apache-2.0 */
/* dependents.c - all sessions and arrays that wait for some, directly or not
 *
 * A node is a session, an array (element DEPENDENCY_ALL) or an element without a session. Those that
 * wait for a node are found by the keys under which core.dependents has them, and arrays by a map
 * of the same keys, which is made for one search.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "manager/core/core.h"
#include "manager/core/session/dependency.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* Arrays that wait for the same. */
struct waiting_arrays {
    struct waiting_array {
        const struct array_entry *entry;
        enum dependency_condition condition;
    } * items;
    size_t count, cap;
};

struct dependents_search {
    const struct core *core;
    struct map arrays; /* dependency_key -> struct waiting_arrays */
    struct map seen;   /* dependency_key of nodes */
    struct session_dependency *nodes;
    size_t count, cap;
};

static void dependents_index_arrays(struct dependents_search *search)
{
    LIST_FOREACH(link, &search->core->arrays) {
        const struct array_entry *entry = LIST_ENTRY(link, struct array_entry, all_link);

        for (size_t i = 0; i < entry->a.element.dependency_count; i++) {
            const struct session_dependency *d = &entry->a.element.dependencies[i];
            struct dependency_key key = dependency_key_of(d);
            struct waiting_arrays *waiting = map_get(&search->arrays, key.bytes, key.len);

            if (!waiting) {
                waiting = aq_alloc(sizeof(*waiting));
                (void)map_set(&search->arrays, key.bytes, key.len, waiting);
            }
            vec_grow(&waiting->items, &waiting->cap, waiting->count + 1, sizeof(*waiting->items));
            waiting->items[waiting->count++] = (struct waiting_array){ entry, d->condition };
        }
    }
}

static void dependents_add(struct dependents_search *search, const struct uuid *id, bool is_array,
                           int64_t element)
{
    struct session_dependency node = { .id = *id, .is_array = is_array, .element = element };
    struct dependency_key key = dependency_key_of(&node);

    if (map_get(&search->seen, key.bytes, key.len))
        return;
    (void)map_set(&search->seen, key.bytes, key.len, search);
    vec_grow(&search->nodes, &search->cap, search->count + 1, sizeof(node));
    search->nodes[search->count++] = node;
}

/* The session of an element, or the element if it has none yet; nothing if it has ended. */
static void dependents_add_element(struct dependents_search *search,
                                   const struct array_entry *entry, int64_t index)
{
    const struct session_entry *l = array_entry_find_element(search->core, entry, index);

    if (l)
        dependents_add(search, &l->s.id, false, 0);
    else if (!entry->a.cancelled_usec && index >= session_array_first_unmade(&entry->a)
             && array_set_has(&entry->a.indices, index) && !array_set_has(&entry->a.removed, index))
        dependents_add(search, &entry->a.id, true, index);
}

/* What waits under this key. 'index' is that of the node in its array, where an array waits for
 * corresponding elements; DEPENDENCY_ALL unless the node is a single element.
 */
static void dependents_add_of(struct dependents_search *search, const struct dependency_key *key,
                              int64_t index)
{
    const struct waiting_arrays *waiting = map_get(&search->arrays, key->bytes, key->len);
    const struct dependents *sessions = map_get(&search->core->dependents, key->bytes, key->len);

    for (size_t i = 0; sessions && i < sessions->count; i++)
        dependents_add(search, &sessions->items[i]->s.id, false, 0);
    for (size_t i = 0; waiting && i < waiting->count; i++) {
        const struct waiting_array *w = &waiting->items[i];

        if (w->condition == DEPENDENCY_CORRESPONDING && index != DEPENDENCY_ALL)
            dependents_add_element(search, w->entry, index);
        else
            dependents_add(search, &w->entry->a.id, true, DEPENDENCY_ALL);
    }
}

/* Keys of single elements of an array are found by their beginning. */
static void dependents_add_of_elements(struct dependents_search *search, const struct map *map,
                                       const struct uuid *array_id)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct map_entry *at = &map->entries[i];
        struct dependency_key key = { .len = at->key_len };

        if (at->key_len != sizeof(key.bytes) || memcmp(at->key, array_id, sizeof(*array_id)) != 0)
            continue;
        memcpy(key.bytes, at->key, key.len);
        dependents_add_of(search, &key, DEPENDENCY_ALL);
    }
}

/* What waits for an array waits for each of its elements, too, and ends with it. */
static void dependents_visit_array(struct dependents_search *search, const struct uuid *id)
{
    const struct array_entry *entry = array_entry_find(search->core, id);

    dependents_add_of_elements(search, &search->core->dependents, id);
    dependents_add_of_elements(search, &search->arrays, id);
    if (entry)
        LIST_FOREACH(link, &entry->living)
            dependents_add(search, &LIST_ENTRY(link, struct session_entry, array_link)->s.id, false,
                           0);
}

/* Those that wait for one element wait for it as a session, by its index, or for all of the array. */
static void dependents_visit_element(struct dependents_search *search, const struct uuid *array_id,
                                     int64_t index)
{
    struct session_dependency of = { .id = *array_id, .is_array = true, .element = index };
    struct dependency_key key = dependency_key_of(&of);

    dependents_add_of(search, &key, index);
    of.element = DEPENDENCY_ALL;
    key = dependency_key_of(&of);
    dependents_add_of(search, &key, index);
}

static void dependents_visit(struct dependents_search *search, struct session_dependency node)
{
    const struct session_entry *l = node.is_array ? NULL
                                                  : session_entry_find(search->core, &node.id);
    struct dependency_key key = dependency_key_of(&node);

    if (node.is_array && node.element == DEPENDENCY_ALL) {
        dependents_visit_array(search, &node.id);
    } else if (node.is_array) {
        dependents_visit_element(search, &node.id, node.element);
    } else {
        dependents_add_of(search, &key, DEPENDENCY_ALL);
        if (l && !uuid_is_nil(&l->s.array_id))
            dependents_visit_element(search, &l->s.array_id, l->s.array_index);
    }
}

/* ---- what was found ---- */

static bool dependents_has_array(const struct dependents_search *search, const struct uuid *id)
{
    const struct session_dependency all = { .id = *id,
                                            .is_array = true,
                                            .element = DEPENDENCY_ALL };
    struct dependency_key key = dependency_key_of(&all);

    return map_get(&search->seen, key.bytes, key.len) != NULL;
}

/* The array of the result that has this id; added if there is none. */
static struct core_dependent_array *dependents_get_array(struct core_dependents *ret,
                                                         struct map *known, const struct uuid *id)
{
    size_t at = (size_t)(uintptr_t)map_get(known, id->bytes, sizeof(*id));

    if (!at) {
        vec_grow(&ret->arrays, &ret->array_cap, ret->array_count + 1, sizeof(*ret->arrays));
        ret->arrays[ret->array_count++] = (struct core_dependent_array){ .id = *id };
        at = ret->array_count;
        (void)map_set(known, id->bytes, sizeof(*id), (void *)(uintptr_t)at);
    }
    return &ret->arrays[at - 1];
}

/* All nodes but the roots; of arrays that were found as a whole, no elements. */
static void dependents_take(const struct dependents_search *search, size_t root_count,
                            struct core_dependents *ret)
{
    struct map known = MAP_INIT; /* id of an array -> its place in ret->arrays, from 1 */

    for (size_t i = root_count; i < search->count; i++) {
        const struct session_dependency *node = &search->nodes[i];
        const struct session_entry *l = node->is_array
                                            ? NULL
                                            : session_entry_find(search->core, &node->id);

        if (node->is_array && node->element == DEPENDENCY_ALL) {
            dependents_get_array(ret, &known, &node->id)->is_whole = true;
        } else if (node->is_array) {
            struct core_dependent_array *array;

            if (dependents_has_array(search, &node->id))
                continue;
            array = dependents_get_array(ret, &known, &node->id);
            strbuf_addf(&array->indices, "%s%" PRId64, array->indices.len ? "," : "",
                        node->element);
        } else if (l
                   && !(!uuid_is_nil(&l->s.array_id)
                        && dependents_has_array(search, &l->s.array_id))) {
            vec_grow(&ret->sessions, &ret->session_cap, ret->session_count + 1,
                     sizeof(*ret->sessions));
            ret->sessions[ret->session_count++] = node->id;
        }
    }
    map_done(&known);
}

void core_find_dependents(const struct core *core, const struct session_dependency *roots,
                          size_t root_count, struct core_dependents *ret)
{
    struct dependents_search search = { .core = core, .arrays = MAP_INIT, .seen = MAP_INIT };
    size_t distinct;

    *ret = (struct core_dependents){ .sessions = NULL };
    dependents_index_arrays(&search);
    for (size_t i = 0; i < root_count; i++) {
        const struct array_entry *entry = roots[i].is_array ? array_entry_find(core, &roots[i].id)
                                                            : NULL;

        if (entry && roots[i].element != DEPENDENCY_ALL)
            dependents_add_element(&search, entry, roots[i].element);
        else
            dependents_add(&search, &roots[i].id, roots[i].is_array, roots[i].element);
    }
    distinct = search.count;
    for (size_t i = 0; i < search.count; i++)
        dependents_visit(&search, search.nodes[i]);
    dependents_take(&search, distinct, ret);
    for (size_t i = 0; i < search.arrays.count; i++) {
        free(((struct waiting_arrays *)search.arrays.entries[i].value)->items);
        free(search.arrays.entries[i].value);
    }
    map_done(&search.arrays);
    map_done(&search.seen);
    free(search.nodes);
}

void core_dependents_done(struct core_dependents *d)
{
    for (size_t i = 0; i < d->array_count; i++)
        strbuf_done(&d->arrays[i].indices);
    free(d->arrays);
    free(d->sessions);
}
