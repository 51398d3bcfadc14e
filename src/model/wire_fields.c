/* SPDX-License-Identifier: Apache-2.0 */
/* wire_fields.c - structs as JSON, by the tables of their members */
#include "model/wire_fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "model/folder_mount.h"
#include "model/resource_opts.h"

size_t *wire_list_count(const void *place)
{
    return (size_t *)(void *)((char *)(uintptr_t)place + sizeof(void *));
}

static bool wire_is_meant(const struct wire_field *field, unsigned only)
{
    return (field->flags & only) == only;
}

/* ---- writing ---- */

/* Whether there is anything to write. */
static bool wire_is_said(const struct wire_field *field, union wire_place at)
{
    switch (field->kind) {
    case WIRE_TEXT:
    case WIRE_AMOUNT:
    case WIRE_JSON:
        return *at.text;
    case WIRE_FLAG:
        return *at.flag;
    case WIRE_CHOICE:
        return *at.choice;
    case WIRE_NUMBER:
        return *at.number;
    case WIRE_UUID:
        return !uuid_is_nil(at.id);
    case WIRE_TEXTS:
        return at.texts->count;
    case WIRE_NUMBERS:
        return at.numbers->count;
    case WIRE_PAIRS:
        return at.pairs->count;
    case WIRE_MOUNTS:
        return at.mounts->count;
    case WIRE_LIST:
        return field->of->is_always_there || *wire_list_count(at.any);
    case WIRE_BESIDE:
    case WIRE_OWN:
    case WIRE_END:
        break;
    }
    return true;
}

static int wire_write_json(const struct wire_field *field, const char *text, struct jsonw *w,
                           struct aq_error *err)
{
    json_auto_t *parsed = json_load_string(text, JSON_REJECT_DUPLICATES);

    if (!parsed)
        return aq_fail_field(err, EINVAL, field->key, "'%s' does not hold JSON", field->key);
    jsonw_key(w, field->key);
    jsonw_raw(w, text, strlen(text));
    return 0;
}

static int wire_write_list(const struct wire_field *field, const void *place, struct jsonw *w,
                           struct aq_error *err)
{
    const char *items = *(const char *const *)place;
    size_t count = *wire_list_count(place);
    int r = 0;

    jsonw_key(w, field->key);
    jsonw_array_begin(w);
    for (size_t i = 0; r == 0 && i < count; i++) {
        jsonw_object_begin(w);
        r = wire_fields_write(field->of->fields, items + i * field->of->size, 0, w, err);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    return r;
}

/* What cannot fail. */
static void wire_write_value(const struct wire_field *field, union wire_place at, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_key(w, field->key);
    switch (field->kind) {
    case WIRE_FLAG:
        jsonw_bool(w, *at.flag);
        return;
    case WIRE_CHOICE:
        jsonw_bool(w, *at.choice == SPLITTING_ALLOWED);
        return;
    case WIRE_NUMBER:
        jsonw_int(w, *at.number);
        return;
    case WIRE_UUID:
        jsonw_str(w, uuid_format(at.id, id));
        return;
    case WIRE_TEXTS:
        jsonw_array_begin(w);
        for (size_t i = 0; i < at.texts->count; i++)
            jsonw_str(w, at.texts->items[i]);
        jsonw_array_end(w);
        return;
    case WIRE_NUMBERS:
        jsonw_array_begin(w);
        for (size_t i = 0; i < at.numbers->count; i++)
            jsonw_int(w, at.numbers->items[i]);
        jsonw_array_end(w);
        return;
    case WIRE_PAIRS:
        jsonw_object_begin(w);
        for (size_t i = 0; i < at.pairs->count; i++)
            jsonw_member_str(w, at.pairs->items[i].key, at.pairs->items[i].value);
        jsonw_object_end(w);
        return;
    case WIRE_MOUNTS:
        folder_mounts_write(at.mounts, w);
        return;
    default:
        jsonw_str(w, *at.text);
        return;
    }
}

static int wire_write_said(const struct wire_field *field, union wire_place at, struct jsonw *w,
                           struct aq_error *err)
{
    switch (field->kind) {
    case WIRE_JSON:
        return wire_write_json(field, *at.text, w, err);
    case WIRE_LIST:
        return wire_write_list(field, at.any, w, err);
    case WIRE_BESIDE:
        return wire_fields_write(field->of->fields, at.any, field->flags & WIRE_FOR_AGENT, w, err);
    case WIRE_OWN:
        field->own->write(field->key, at.any, w);
        return 0;
    default:
        wire_write_value(field, at, w);
        return 0;
    }
}

int wire_field_write(const struct wire_field *field, const void *from, struct jsonw *w,
                     struct aq_error *err)
{
    union wire_place at = wire_place(from, field);

    return wire_is_said(field, at) ? wire_write_said(field, at, w, err) : 0;
}

int wire_fields_write(const struct wire_field *fields, const void *from, unsigned only,
                      struct jsonw *w, struct aq_error *err)
{
    const char *group = NULL; /* that is open */
    int r = 0;

    for (const struct wire_field *field = fields; r == 0 && field->kind != WIRE_END; field++) {
        union wire_place at = wire_place(from, field);

        if (!wire_is_meant(field, only) || !wire_is_said(field, at))
            continue;
        if (group && group != field->group)
            jsonw_object_end(w);
        if (field->group && group != field->group) {
            jsonw_key(w, field->group);
            jsonw_object_begin(w);
        }
        group = field->group;
        r = wire_write_said(field, at, w, err);
    }
    if (group)
        jsonw_object_end(w);
    return r;
}

/* ---- reading ---- */

int wire_refuse(const char *key, const char *what, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, key, "'%s' must be %s", key, what);
}

static int wire_read_text(const struct wire_field *field, const json_t *value, struct arena *arena,
                          const char **ret, struct aq_error *err)
{
    char number[24];

    if (json_is_string(value)) {
        *ret = arena_strndup(arena, json_string_value(value), json_string_length(value));
    } else if (json_is_integer(value) && field->kind == WIRE_AMOUNT) {
        (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        *ret = arena_strdup(arena, number);
    } else {
        return wire_refuse(field->key, "text", err);
    }
    return 0;
}

static int wire_read_json(const struct wire_field *field, const json_t *value, struct arena *arena,
                          const char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (!json_is_object(value) && !json_is_array(value))
        return wire_refuse(field->key, "an object or a list", err);
    text = json_dump_text(value, JSON_COMPACT | JSON_PRESERVE_ORDER);
    *ret = arena_strdup(arena, text);
    return 0;
}

static int wire_read_uuid(const struct wire_field *field, const json_t *value, struct uuid *ret,
                          struct aq_error *err)
{
    if (!json_is_string(value) || uuid_parse(json_string_value(value), ret) < 0)
        return wire_refuse(field->key, "an id", err);
    if (field->flags & WIRE_REQUIRED && uuid_is_nil(ret))
        return aq_fail_field(err, EINVAL, field->key, "'%s' is missing", field->key);
    return 0;
}

static int wire_read_texts(const struct wire_field *field, const json_t *value, struct arena *arena,
                           struct str_list *ret, struct aq_error *err)
{
    size_t count = json_array_size(value);
    const char **items = arena_array(arena, count + 1, sizeof(*items));
    int r = 0;

    if (!json_is_array(value))
        return wire_refuse(field->key, "a list of texts", err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = wire_read_text(field, json_array_get(value, i), arena, &items[i], err);
    *ret = (struct str_list){ .items = items, .count = count };
    return r;
}

static int wire_read_numbers(const struct wire_field *field, const json_t *value,
                             struct arena *arena, struct int_list *ret, struct aq_error *err)
{
    size_t count = json_array_size(value);
    int64_t *items = arena_array(arena, count + 1, sizeof(*items));

    if (!json_is_array(value))
        return wire_refuse(field->key, "a list of numbers", err);
    for (size_t i = 0; i < count; i++) {
        if (!json_is_integer(json_array_get(value, i)))
            return wire_refuse(field->key, "a list of numbers", err);
        items[i] = json_integer_value(json_array_get(value, i));
    }
    *ret = (struct int_list){ .items = items, .count = count };
    return 0;
}

static int wire_read_pairs(const struct wire_field *field, const json_t *value, struct arena *arena,
                           struct pair_list *ret, struct aq_error *err)
{
    size_t count = 0;
    struct text_pair *items = arena_array(arena, json_object_size(value) + 1, sizeof(*items));
    const char *name;
    json_t *text;
    int r = 0;

    if (!json_is_object(value))
        return wire_refuse(field->key, "an object of texts", err);
    json_object_foreach((json_t *)(uintptr_t)value, name, text) {
        if (r == 0 && (!name[0] || strchr(name, '=')))
            r = wire_refuse(field->key, "an object with names without '='", err);
        if (r < 0)
            break;
        items[count].key = arena_strdup(arena, name);
        r = wire_read_text(field, text, arena, &items[count++].value, err);
    }
    *ret = (struct pair_list){ .items = items, .count = count };
    return r;
}

static int wire_read_list(const struct wire_field *field, const json_t *value, struct arena *arena,
                          void *place, struct aq_error *err)
{
    const struct wire_shape *of = field->of;
    size_t count = json_array_size(value);
    char *items;
    int r = 0;

    if (!json_is_array(value))
        return wire_refuse(field->key, "a list", err);
    if (of->max && count > of->max)
        return aq_fail_field(err, EINVAL, field->key, "'%s' may have %zu elements at most, not %zu",
                             field->key, of->max, count);
    items = arena_array(arena, count + 1, of->size);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!json_is_object(json_array_get(value, i)))
            return wire_refuse(field->key, "a list of objects", err);
        r = wire_fields_read(of->fields, json_array_get(value, i), 0, arena, items + i * of->size,
                             err);
    }
    *(void **)place = items;
    *wire_list_count(place) = count;
    return r;
}

/* Of resource_opts, which were once kept as they came, what is no choice or amount is unsaid. */
static int wire_read_value(const struct wire_field *field, const json_t *value, struct arena *arena,
                           union wire_place at, struct aq_error *err)
{
    switch (field->kind) {
    case WIRE_TEXT:
        return wire_read_text(field, value, arena, at.text, err);
    case WIRE_AMOUNT:
        return json_is_string(value) || json_is_integer(value)
                   ? wire_read_text(field, value, arena, at.text, err)
                   : 0;
    case WIRE_JSON:
        return wire_read_json(field, value, arena, at.text, err);
    case WIRE_FLAG:
        *at.flag = json_is_true(value);
        return json_is_boolean(value) ? 0 : wire_refuse(field->key, "true or false", err);
    case WIRE_CHOICE:
        if (json_is_boolean(value))
            *at.choice = json_is_true(value) ? SPLITTING_ALLOWED : SPLITTING_FORBIDDEN;
        return 0;
    case WIRE_NUMBER:
        *at.number = json_integer_value(value);
        return json_is_integer(value) && *at.number >= 0
                   ? 0
                   : wire_refuse(field->key, "a whole number, not negative", err);
    case WIRE_UUID:
        return wire_read_uuid(field, value, at.id, err);
    case WIRE_TEXTS:
        return wire_read_texts(field, value, arena, at.texts, err);
    case WIRE_NUMBERS:
        return wire_read_numbers(field, value, arena, at.numbers, err);
    case WIRE_PAIRS:
        return wire_read_pairs(field, value, arena, at.pairs, err);
    case WIRE_MOUNTS:
        return folder_mounts_read(value, arena, at.mounts, err);
    case WIRE_LIST:
        return wire_read_list(field, value, arena, at.any, err);
    case WIRE_OWN:
        return field->own->read(field->key, value, arena, at.any, err);
    case WIRE_BESIDE:
    case WIRE_END:
        break;
    }
    return 0;
}

static bool wire_is_void(const json_t *value)
{
    return !value || json_is_null(value)
           || (json_is_string(value) && json_string_length(value) == 0)
           || (json_is_integer(value) && json_integer_value(value) == 0);
}

int wire_fields_read(const struct wire_field *fields, const json_t *object, unsigned only,
                     struct arena *arena, void *ret, struct aq_error *err)
{
    int r = 0;

    for (const struct wire_field *field = fields; r == 0 && field->kind != WIRE_END; field++) {
        const json_t *from = field->group ? json_object_get(object, field->group) : object;
        const json_t *value = field->key ? json_object_get(from, field->key) : NULL;
        union wire_place at = wire_place(ret, field);

        if (!wire_is_meant(field, only))
            continue;
        if (field->kind == WIRE_BESIDE)
            r = wire_fields_read(field->of->fields, object, field->flags & WIRE_FOR_AGENT, arena,
                                 at.any, err);
        else if (field->flags & WIRE_REQUIRED && wire_is_void(value))
            r = aq_fail_field(err, EINVAL, field->key, "'%s' is missing", field->key);
        else if (value && !json_is_null(value))
            r = wire_read_value(field, value, arena, at, err);
    }
    return r;
}
