/* SPDX-License-Identifier: Apache-2.0 */
/* dependency_request.c - the sessions and arrays that a request or an array names: found in memory,
 * else in the store, or unknown
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/core.h"
#include "manager/core/session/dependency.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "store/array_list.h"
#include "store/dependency.h"
#include "store/query.h"

#define DEPENDENCIES_MAX 1000

/* A dependency as it is named: "CONDITION:NAME" or "CONDITION:NAME[ELEMENT]". */
struct dependency_name {
    const char *text;                /* of all behind the condition; borrowed */
    char stem[SESSION_NAME_MAX + 1]; /* without the element, cut */
    bool is_id;                      /* the stem is 'id' */
    struct uuid id;
    int64_t element; /* DEPENDENCY_ALL = none named */
    enum dependency_condition condition;
};

static int dependency_parse_name(const char *text, struct dependency_name *ret,
                                 struct aq_error *err)
{
    char set[24];
    size_t len;
    int r = dependency_parse(text, &ret->condition, &ret->text, err);

    if (r < 0)
        return r;
    ret->element = DEPENDENCY_ALL;
    r = session_array_split_name(ret->text, &len, set, sizeof(set));
    if (r == -EINVAL || (r == 0 && strspn(set, "0123456789") != strlen(set)))
        return aq_fail_field(err, EINVAL, "dependencies",
                             "'%.80s': expected one index in the brackets, as in train[7]; to wait "
                             "for all elements, name the array",
                             ret->text);
    if (r == 0)
        ret->element = strtoll(set, NULL, 10);
    else
        len = strlen(ret->text);
    (void)snprintf(ret->stem, sizeof(ret->stem), "%.*s", (int)AQ_MIN(len, sizeof(ret->stem) - 1),
                   ret->text);
    ret->is_id = uuid_parse(ret->stem, &ret->id) == 0;
    return 0;
}

/* ---- what is accepted ---- */

/* "session ID", "array ID", "element ID[7]" */
static char *dependency_describe(const struct session_dependency *d)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    strbuf_adds(&out, !d->is_array                   ? "session "
                      : d->element == DEPENDENCY_ALL ? "array "
                                                     : "element ");
    if (d->is_array && d->element == DEPENDENCY_ALL)
        strbuf_adds(&out, uuid_format(&d->id, id));
    else
        dependency_write_target(d, &out);
    return strbuf_steal(&out);
}

/* Add one, unless it is there already; it must still be possible to meet it. */
static int dependency_add(struct session *s, const struct session_dependency *add,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *what = dependency_describe(add);

    for (size_t i = 0; i < s->dependency_count; i++) {
        const struct session_dependency *d = &s->dependencies[i];

        if (!dependency_is_same(d, add))
            continue;
        if (d->condition == add->condition)
            return 0;
        return aq_fail_field(err, EINVAL, "dependencies",
                             "%s is named with the conditions %s and %s; name it once", what,
                             dependency_condition_name(d->condition),
                             dependency_condition_name(add->condition));
    }
    if (add->condition != DEPENDENCY_CORRESPONDING && dependency_state(add) == DEPENDENCY_UNMET)
        return aq_fail_field(err, EINVAL, "dependencies",
                             add->ended ? "%s has ended %s success; what waits for its %s would "
                                          "never start"
                                        : "an element of %s has ended %s success; what waits for "
                                          "its %s would never start",
                             what, add->result == RESULT_SUCCESS ? "with" : "without",
                             dependency_condition_name(add->condition));
    s->dependencies[s->dependency_count++] = *add;
    return 0;
}

/* The condition is for arrays alone, each element of which the other array must have. */
static int dependency_check_corresponding(const struct dependency_name *name,
                                          const struct array_set *indices,
                                          const struct array_set *others, struct aq_error *err)
{
    int64_t beyond;

    if (indices && !indices->count)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "'corresponding:%.80s': only an array has elements that correspond to "
                             "those of another; give it indices with 'array', or use success",
                             name->text);
    if (!others || name->element != DEPENDENCY_ALL)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "'corresponding:%.80s' must name a whole array", name->text);
    beyond = indices ? array_set_find_beyond(others, indices) : -1;
    return beyond < 0 ? 0
                      : aq_fail_field(err, EINVAL, "dependencies",
                                      "'corresponding:%.80s': that array has no element %" PRId64
                                      "; use indices that both arrays have",
                                      name->text, beyond);
}

static int dependency_fail_element(const struct dependency_name *name,
                                   const struct array_set *indices, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf set = STRBUF_INIT;

    array_set_write(indices, &set);
    return aq_fail_field(err, ENOENT, "dependencies",
                         "the array '%.80s' has no element %" PRId64 "; its indices are %.40s%s",
                         name->stem, name->element, set.data, set.len > 40 ? "..." : "");
}

/* ---- in memory ---- */

static const struct session *dependency_find_session(const struct core *core,
                                                     const struct session *owner,
                                                     const struct dependency_name *name)
{
    const struct session *s;

    if (!name->is_id)
        return core_find_session_named(core, &owner->user_id, name->text);
    s = name->element == DEPENDENCY_ALL ? core_find_session(core, &name->id) : NULL;
    return s && uuid_equals(&s->user_id, &owner->user_id) ? s : NULL;
}

static const struct array_entry *dependency_find_array(const struct core *core,
                                                       const struct session *owner,
                                                       const struct dependency_name *name)
{
    const struct array_entry *entry;

    if (!name->is_id)
        return array_entry_find_named(core, &owner->user_id, name->stem);
    entry = array_entry_find(core, &name->id);
    return entry && uuid_equals(&entry->a.element.user_id, &owner->user_id) ? entry : NULL;
}

/* The element of a live array: 1 with *ret set, if it lives or is not made yet; 0 = it has ended. */
static int dependency_take_element(const struct core *core, const struct array_entry *entry,
                                   int64_t index, struct session_dependency *ret)
{
    const struct session_array *a = &entry->a;
    const struct session_entry *l = array_entry_find_element(core, entry, index);

    if (l) {
        ret->id = l->s.id;
        ret->has_run = l->s.running_usec != 0;
        return 1;
    }
    if (a->cancelled_usec || index < session_array_first_unmade(a)
        || array_set_has(&a->removed, index))
        return 0;
    ret->id = a->id;
    ret->is_array = true;
    ret->element = index;
    return 1;
}

/* 1: added; 0: it is not in memory. */
static int dependency_resolve_one(const struct core *core, const struct dependency_name *name,
                                  const struct array_set *indices, struct session *s,
                                  struct aq_error *err)
{
    struct session_dependency add = { .condition = name->condition };
    const struct session *live = dependency_find_session(core, s, name);
    const struct array_entry *array = live ? NULL : dependency_find_array(core, s, name);
    bool is_whole = name->element == DEPENDENCY_ALL;
    int r = 0;

    if (name->condition == DEPENDENCY_CORRESPONDING && (array || live || !is_whole))
        r = dependency_check_corresponding(name, indices, array ? &array->a.indices : NULL, err);
    if (r < 0 || (!live && !array))
        return r;
    if (live) {
        add.id = live->id;
    } else if (is_whole) {
        add.id = array->a.id;
        add.is_array = true;
        add.element = DEPENDENCY_ALL;
        add.has_failed = array->a.outcomes[ARRAY_FAILED] + array->a.outcomes[ARRAY_CANCELLED]
                             + array->a.skipped
                         > 0;
    } else if (!array_set_has(&array->a.indices, name->element)) {
        return dependency_fail_element(name, &array->a.indices, err);
    } else if (dependency_take_element(core, array, name->element, &add) == 0) {
        return 0;
    }
    r = dependency_add(s, &add, err);
    return r < 0 ? r : 1;
}

int dependency_resolve(const struct core *core, const struct session_request *req,
                       const struct array_set *indices, struct session *s,
                       struct dependency_missing *ret, struct aq_error *err)
{
    int r = 0;

    if (req->dependency_count == 0)
        return 0;
    if (req->dependency_count > DEPENDENCIES_MAX)
        return aq_fail_field(err, EINVAL, "dependencies", "more than %d dependencies",
                             DEPENDENCIES_MAX);
    s->dependencies = aq_alloc_array(req->dependency_count, sizeof(*s->dependencies));
    ret->names = aq_alloc_array(req->dependency_count, sizeof(*ret->names));
    for (size_t i = 0; i < req->dependency_count && r >= 0; i++) {
        struct dependency_name name;

        r = dependency_parse_name(req->dependencies[i], &name, err);
        if (r == 0)
            r = dependency_resolve_one(core, &name, indices, s, err);
        if (r == 0)
            ret->names[ret->count++] = aq_strdup(req->dependencies[i]);
    }
    return AQ_MIN(r, 0);
}

/* ---- of elements ---- */

/* One that is in memory; else 0. */
static int dependency_take(const struct core *core, const struct session_dependency *on,
                           int64_t index, struct session_dependency *ret)
{
    const struct array_entry *array = on->is_array ? array_entry_find(core, &on->id) : NULL;

    *ret = (struct session_dependency){ .id = on->id, .condition = on->condition };
    if (!on->is_array)
        return core_find_session(core, &on->id) != NULL;
    if (!array)
        return 0;
    if (on->condition == DEPENDENCY_CORRESPONDING) {
        ret->condition = DEPENDENCY_SUCCESS;
        return dependency_take_element(core, array, index, ret);
    }
    if (on->element != DEPENDENCY_ALL)
        return dependency_take_element(core, array, on->element, ret);
    ret->is_array = true;
    ret->element = DEPENDENCY_ALL;
    return 1;
}

void dependency_resolve_element(const struct core *core, const struct array_entry *entry,
                                bool is_first, struct session *s, struct dependency_missing *ret)
{
    const struct session *element = &entry->a.element;

    if (!element->dependency_count)
        return;
    s->dependencies = aq_alloc_array(element->dependency_count, sizeof(*s->dependencies));
    ret->names = aq_alloc_array(element->dependency_count, sizeof(*ret->names));
    for (size_t i = 0; i < element->dependency_count; i++) {
        struct session_dependency on = element->dependencies[i], add;
        AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

        if (dependency_take(core, &on, s->array_index, &add)) {
            s->dependencies[s->dependency_count++] = add;
            continue;
        }
        if (on.condition == DEPENDENCY_CORRESPONDING)
            on.element = s->array_index;
        else if (!is_first)
            continue;
        strbuf_addf(&name, "%s:", dependency_condition_name(on.condition));
        if (on.is_array && on.element == DEPENDENCY_ALL)
            on.is_array = false; /* as a request names an array */
        dependency_write_target(&on, &name);
        ret->names[ret->count++] = strbuf_steal(&name);
    }
}

bool dependency_fails_array(const struct array_entry *entry, const struct session *s)
{
    const struct session *element = &entry->a.element;
    bool has_corresponding = false;

    for (size_t i = 0; i < element->dependency_count; i++) {
        const struct session_dependency *on = &element->dependencies[i];

        has_corresponding |= on->condition == DEPENDENCY_CORRESPONDING;
        for (size_t k = 0; k < s->dependency_count; k++)
            if (on->condition != DEPENDENCY_CORRESPONDING
                && dependency_is_same(on, &s->dependencies[k])
                && dependency_state(&s->dependencies[k]) == DEPENDENCY_UNMET)
                return true;
    }
    return !has_corresponding;
}

/* ---- in the store ---- */

/* The latest session and the latest array of the owner's that the name means. */
struct dependency_found {
    struct store_page *sessions, *arrays;
};

static void dependency_found_done(struct dependency_found *found)
{
    store_page_free(found->sessions);
    store_page_free(found->arrays);
}

static int dependency_find(struct store_tx *tx, const struct session *owner,
                           const struct dependency_name *name, struct dependency_found *ret,
                           struct aq_error *err)
{
    struct store_query q = { .user_id = &owner->user_id, .limit = 1 };
    int r = 0;

    if (name->is_id) {
        q.ids = &name->id;
        q.id_count = 1;
    } else {
        q.name = name->text;
    }
    if (!name->is_id || name->element == DEPENDENCY_ALL)
        r = store_list_sessions(tx, &q, &ret->sessions, err);
    if (!name->is_id)
        q.name = name->stem;
    return r < 0 ? r : store_list_arrays(tx, &q, &ret->arrays, err);
}

/* The array, or its element; what is read of an element's row is another session's id. */
static int dependency_resolve_array(struct store_tx *tx, const struct dependency_name *name,
                                    const struct array_row *array, const struct array_set *indices,
                                    struct session_dependency *add, struct aq_error *err)
{
    AQ_CLEANUP(array_set_done) struct array_set others = { 0 };
    int r = array_set_parse(array->indices, INT32_MAX, &others, NULL, err);

    add->id = array->array.id;
    add->is_array = true;
    add->element = name->element;
    if (r == 0 && name->condition == DEPENDENCY_CORRESPONDING && name->element == DEPENDENCY_ALL)
        r = dependency_check_corresponding(name, indices, &others, err);
    if (r == 0 && name->element != DEPENDENCY_ALL && !array_set_has(&others, name->element))
        r = dependency_fail_element(name, &others, err);
    return r < 0 ? r : store_read_dependency(tx, add, err);
}

static int dependency_resolve_stored(struct store_tx *tx, const struct array_set *indices,
                                     struct session *s, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(dependency_found_done) struct dependency_found found = { NULL, NULL };
    struct session_dependency add = { .is_array = false };
    const struct session *session;
    const struct array_row *array;
    struct dependency_name name;
    int r = dependency_parse_name(text, &name, err);

    if (r == 0)
        r = dependency_find(tx, s, &name, &found, err);
    if (r < 0)
        return r;
    session = found.sessions && found.sessions->count ? &found.sessions->sessions[0].session : NULL;
    array = found.arrays->count ? found.arrays->rows : NULL;
    add.condition = name.condition;
    if (array && (!session || session->row < array->array.row)) {
        r = dependency_resolve_array(tx, &name, array, indices, &add, err);
    } else if (session) {
        add.id = session->id;
        r = name.condition == DEPENDENCY_CORRESPONDING
                ? dependency_check_corresponding(&name, indices, NULL, err)
                : store_read_dependency(tx, &add, err);
    } else {
        r = aq_fail_field(err, ENOENT, "dependencies",
                          "no session or array of yours is called '%s'", name.text);
    }
    if (r < 0)
        return r;
    if (name.condition != DEPENDENCY_CORRESPONDING || name.element == DEPENDENCY_ALL)
        return dependency_add(s, &add, err);
    add.condition =
        DEPENDENCY_SUCCESS; /* of an element: if it cannot be met, that one is cancelled */
    s->dependencies[s->dependency_count++] = add;
    return 0;
}

int dependency_read_missing(struct store_tx *tx, const struct array_set *indices, struct session *s,
                            const struct dependency_missing *missing, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < missing->count && r == 0; i++)
        r = dependency_resolve_stored(tx, indices, s, missing->names[i], err);
    return r;
}

void dependency_missing_done(struct dependency_missing *missing)
{
    for (size_t i = 0; i < missing->count; i++)
        free(missing->names[i]);
    free(AQ_TAKE(missing->names));
    missing->count = 0;
}
