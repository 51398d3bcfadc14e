/* SPDX-License-Identifier: Apache-2.0 */
/* object_setting.c - a setting of the store that is one JSON object */
#include "manager/call/object_setting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "http/problem.h"
#include "store/setting.h"

#define ACTION_MAX 40

int object_setting_read(struct store_tx *tx, const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_auto_t *object = NULL;
    int r = setting_get(tx, name, &text, err);

    if (r < 0 && r != -ENOENT)
        return r;
    object = text.len ? json_load_string(text.data, 0) : NULL;
    *ret = json_is_object(object) ? json_incref(object) : json_object();
    return 0;
}

struct object_setting_wanted {
    const char *name;
    json_t **ret;
};

static int object_setting_read_wanted(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct object_setting_wanted *wanted = data;

    return object_setting_read(tx, wanted->name, wanted->ret, err);
}

int object_setting_load(struct store *store, const char *name, json_t **ret, struct aq_error *err)
{
    struct object_setting_wanted wanted = { name, ret };

    return store_call(store, object_setting_read_wanted, &wanted, err);
}

int object_setting_write(struct store_tx *tx, const char *name, const json_t *object,
                         json_t **ret_kept, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *sorted = json_dump_text(object, JSON_COMPACT | JSON_SORT_KEYS);

    *ret_kept = json_load_string(sorted, 0);
    return setting_set(tx, name, sorted, err);
}

int object_setting_audit(struct store_tx *tx, const struct audit_who *by, const char *kind,
                         const char *member, const json_t *before, const json_t *after,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *old = before ? json_dump_text(before, JSON_COMPACT) : NULL;
    AQ_CLEANUP(aq_freep) char *fresh = after ? json_dump_text(after, JSON_COMPACT) : NULL;
    char action[ACTION_MAX];

    (void)snprintf(action, sizeof(action), "%s-%s",
                   !before ? "create"
                   : after ? "modify"
                           : "delete",
                   kind);
    return audit_log_add_change(tx, by,
                                &(struct audit_change){ .action = action,
                                                        .object_kind = kind,
                                                        .object_name = member,
                                                        .before = old,
                                                        .after = fresh },
                                err);
}

/* ---- a change of one member ---- */

struct object_setting_change {
    const struct object_setting *setting;
    json_t **copy;
    char *member;
    json_t *value;
    enum object_setting_how how;
    json_t *fresh; /* all afterwards, by name */
    struct audit_who by;
    store_done_fn done;
    void *data;
};

static void object_setting_change_free(struct object_setting_change *change)
{
    json_decref(change->value);
    json_decref(change->fresh);
    free(change->member);
    free(change);
}

/* What the member is afterwards, from what it is; '*ret' stays NULL if it is removed. */
static int object_setting_make(const struct object_setting_change *change, const json_t *old,
                               json_t **ret, struct aq_error *err)
{
    const char *kind = change->setting->kind;
    enum object_setting_how how = change->how;

    if (!old && (how == OBJECT_SETTING_REMOVE || how == OBJECT_SETTING_MODIFY))
        return problem_no_such(err, change->setting->title, "there is no %s '%s'", kind,
                               change->member);
    if (old && how == OBJECT_SETTING_CREATE)
        return aq_fail_as(err, EEXIST, "invalid-api-params", "name", "there is a %s '%s' already",
                          kind, change->member);
    if (!old || how == OBJECT_SETTING_PUT || how == OBJECT_SETTING_REMOVE) {
        *ret = json_incref(change->value);
        return 0;
    }
    *ret = json_copy((json_t *)(uintptr_t)old);
    json_object_update(*ret, change->value);
    return 0;
}

static int object_setting_apply(const struct object_setting_change *change, json_t *object,
                                json_t *value, struct aq_error *err)
{
    size_t max = change->setting->max;

    if (!value) {
        json_object_del(object, change->member);
        return 0;
    }
    if (!json_object_get(object, change->member) && json_object_size(object) >= max)
        return aq_fail_field(err, E2BIG, "name", "there are %zu already; remove one", max);
    json_object_set(object, change->member, value);
    return 0;
}

static int object_setting_note(struct store_tx *tx, const struct object_setting_change *change,
                               const json_t *before, const json_t *after, struct aq_error *err)
{
    const struct object_setting *setting = change->setting;
    json_auto_t *old = before && setting->show ? setting->show(before)
                                               : json_incref((json_t *)(uintptr_t)before);
    json_auto_t *fresh = after && setting->show ? setting->show(after)
                                                : json_incref((json_t *)(uintptr_t)after);

    return object_setting_audit(tx, &change->by, setting->kind, change->member, old, fresh, err);
}

/* On the store's thread, which sees every change that was queued before. */
static int object_setting_write_change(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct object_setting_change *change = data;
    json_auto_t *object = NULL, *before = NULL, *after = NULL;
    int r = object_setting_read(tx, change->setting->name, &object, err);

    before = json_incref(json_object_get(object, change->member));
    if (r == 0)
        r = object_setting_make(change, before, &after, err);
    if (r == 0)
        r = object_setting_apply(change, object, after, err);
    if (r == 0 && change->setting->check)
        r = change->setting->check(object, change->member, err);
    if (r == 0)
        r = object_setting_write(tx, change->setting->name, object, &change->fresh, err);
    return r < 0 ? r : object_setting_note(tx, change, before, after, err);
}

static void object_setting_on_written(void *data, int r, const struct aq_error *err)
{
    struct object_setting_change *change = data;

    if (r == 0) {
        json_decref(*change->copy);
        *change->copy = AQ_TAKE(change->fresh);
    }
    change->done(change->data, r, err);
    object_setting_change_free(change);
}

void object_setting_change(struct store *store, const struct object_setting *setting, json_t **copy,
                           enum object_setting_how how, const char *member, json_t *value,
                           const struct audit_who *by, store_done_fn done, void *data)
{
    struct object_setting_change *change = aq_alloc(sizeof(*change));

    *change = (struct object_setting_change){ .setting = setting,
                                              .copy = copy,
                                              .member = aq_strdup(member),
                                              .value = value,
                                              .how = how,
                                              .by = *by,
                                              .done = done,
                                              .data = data };
    store_write(store, object_setting_write_change, object_setting_on_written, change);
}

/* ---- members that are rows of an entity ---- */

void object_setting_read_row(const struct entity *entity, const char *name, const json_t *kept,
                             struct arena *arena, void *ret)
{
    entity_read_json(entity, kept, arena, ret);
    for (const struct field *field = entity->fields; field->names; field++)
        if (field->flags & FIELD_KEY)
            *(char **)((char *)ret + field->offset) = arena_strdup(arena, name);
}

void *object_setting_read_rows(const struct entity *entity, const json_t *copy, struct arena *arena,
                               size_t *ret_count)
{
    char *rows = arena_array(arena, json_object_size(copy) + 1, entity->size);
    size_t count = 0;
    const char *name;
    json_t *kept;

    json_object_foreach((json_t *)(uintptr_t)copy, name, kept)
        object_setting_read_row(entity, name, kept, arena, rows + count++ * entity->size);
    *ret_count = count;
    return rows;
}

json_t *object_setting_make_value(const struct entity *entity, const void *row, const json_t *given)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    const json_t *member;
    json_t *value;

    jsonw_object_begin(&w);
    entity_write_json(entity, row, FIELD_KEY, NULL, &w);
    jsonw_object_end(&w);
    value = json_load_string(text.data, 0);
    for (const struct field *field = entity->change; given && field->names; field++)
        if (!(member = field_get(field, given)) || json_is_null(member))
            (void)json_object_deln(value, field->names, field_name_len(field));
    return value;
}
