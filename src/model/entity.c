/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of entities, by the tables of their members. */
#include "model/entity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/lists.h"
#include "base/memory.h"
#include "base/uuid.h"

static void *entity_at(void *row, const struct field *field)
{
    return (char *)row + field->offset;
}

static const void *entity_see(const void *row, const struct field *field)
{
    return (const char *)row + field->offset;
}

static bool entity_is_chars(const struct field *field)
{
    return field->type == FIELD_CHARS || field->type == FIELD_SEALED;
}

static const char *entity_text(const void *row, const struct field *field)
{
    const void *at = entity_see(row, field);

    return entity_is_chars(field) ? at : *(const char *const *)at;
}

static bool entity_is_text(const struct field *field)
{
    return field->type == FIELD_TEXT || field->type == FIELD_OWN || field->type == FIELD_JSON_TEXT
           || field->type == FIELD_SIZE;
}

/* Bytes of members that own nothing; 0 = of another type. */
static size_t entity_plain_size(const struct field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_INT32:
    case FIELD_ENUM: /* no enum here has values that need another type */
        return sizeof(int);
    case FIELD_INT:
    case FIELD_DURATION:
    case FIELD_USEC:
        return sizeof(int64_t);
    case FIELD_UUID:
        return sizeof(struct uuid);
    default:
        return 0;
    }
}

/* Of members that are numbers or bools. */
static void entity_set_number(const struct field *field, void *at, int64_t number)
{
    if (field->type == FIELD_BOOL)
        *(bool *)at = number;
    else if (field->type == FIELD_INT32 || field->type == FIELD_ENUM)
        *(int *)at = (int)number;
    else if (entity_plain_size(field) == sizeof(int64_t))
        *(int64_t *)at = number;
}

void entity_init(const struct entity *entity, void *ret)
{
    memset(ret, 0, entity->size);
    for (const struct field *field = entity->fields; field->names; field++) {
        entity_set_number(field, entity_at(ret, field), field->initial);
        if (entity_is_text(field))
            *(char **)entity_at(ret, field) = aq_strdup(field->initial_text);
    }
}

void entity_done(const struct entity *entity, void *row)
{
    for (const struct field *field = entity->fields; field->names; field++) {
        if (entity_is_text(field))
            free(*(char **)entity_at(row, field));
        else if (field->type == FIELD_SLOTS)
            slots_done(entity_at(row, field));
        else if (field->type == FIELD_UUIDS)
            free(((struct uuid_list *)entity_at(row, field))->items);
        else if (field->type == FIELD_SEALED)
            explicit_bzero(entity_at(row, field), (size_t)field->max + 1);
    }
    memset(row, 0, entity->size);
}

static void entity_copy_uuids(struct uuid_list *ret, const struct uuid_list *list)
{
    *ret = (struct uuid_list){ .count = list->count, .cap = list->count };
    if (list->count == 0)
        return;
    ret->items = aq_alloc_array(list->count, sizeof(*ret->items));
    memcpy(ret->items, list->items, list->count * sizeof(*ret->items));
}

void entity_copy(const struct entity *entity, void *ret, const void *row)
{
    memcpy(ret, row, entity->size);
    for (const struct field *field = entity->fields; field->names; field++) {
        if (entity_is_text(field)) {
            *(char **)entity_at(ret, field) = aq_strdup(entity_text(row, field));
        } else if (field->type == FIELD_SLOTS) {
            *(struct slots *)entity_at(ret, field) = (struct slots){ 0 };
            slots_copy(entity_at(ret, field), entity_see(row, field));
        } else if (field->type == FIELD_UUIDS) {
            entity_copy_uuids(entity_at(ret, field), entity_see(row, field));
        }
    }
}

static bool entity_texts_equal(const struct field *field, const void *a, const void *b)
{
    const char *text = entity_text(a, field), *other = entity_text(b, field);

    return text == other || (text && other && strcmp(text, other) == 0);
}

/* In whatever order. */
static bool entity_uuids_equal(const struct uuid_list *a, const struct uuid_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        bool is_found = false;

        for (size_t k = 0; k < b->count; k++)
            is_found |= uuid_equals(&a->items[i], &b->items[k]);
        if (!is_found)
            return false;
    }
    return true;
}

bool entity_equal(const struct entity *entity, const void *a, const void *b)
{
    bool is_equal = true;

    for (const struct field *field = entity->fields; is_equal && field->names; field++) {
        size_t size = entity_plain_size(field);

        if (size)
            is_equal = memcmp(entity_see(a, field), entity_see(b, field), size) == 0;
        else if (field->type == FIELD_SLOTS)
            is_equal = slots_eq(entity_see(a, field), entity_see(b, field));
        else if (field->type == FIELD_UUIDS)
            is_equal = entity_uuids_equal(entity_see(a, field), entity_see(b, field));
        else
            is_equal = entity_texts_equal(field, a, b);
    }
    return is_equal;
}

/* "" comes from databases of other versions. */
static void entity_write_json_text(const char *text, struct jsonw *w)
{
    if (text && *text)
        jsonw_raw(w, text, strlen(text));
    else
        jsonw_null(w);
}

static void entity_write_uuids(const struct uuid_list *list, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_array_begin(w);
    for (size_t i = 0; i < list->count; i++)
        jsonw_str(w, uuid_format(&list->items[i], id));
    jsonw_array_end(w);
}

static void entity_write_value(const struct field *field, const void *at,
                               const struct slot_types *types, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    switch (field->type) {
    case FIELD_BOOL:
        jsonw_bool(w, *(const bool *)at);
        break;
    case FIELD_INT32:
        jsonw_int(w, *(const int *)at);
        break;
    case FIELD_INT:
        jsonw_int(w, *(const int64_t *)at);
        break;
    case FIELD_USEC:
        jsonw_int(w, *(const int64_t *)at / USEC_PER_SEC);
        break;
    case FIELD_JSON_TEXT:
        entity_write_json_text(*(const char *const *)at, w);
        break;
    case FIELD_UUID:
        jsonw_str(w, uuid_is_nil(at) ? NULL : uuid_format(at, id));
        break;
    case FIELD_SLOTS:
        slots_write_json(at, types, w);
        break;
    case FIELD_CHARS:
        jsonw_str(w, at);
        break;
    case FIELD_ENUM:
        jsonw_str(w, field->values[*(const int *)at]);
        break;
    case FIELD_UUIDS:
        entity_write_uuids(at, w);
        break;
    default:
        jsonw_str(w, *(const char *const *)at);
        break;
    }
}

void entity_write_json(const struct entity *entity, const void *row, unsigned without,
                       const struct slot_types *types, struct jsonw *w)
{
    entity_write_json_as(entity, row, without, types, NULL, NULL, w);
}

void entity_write_json_as(const struct entity *entity, const void *row, unsigned without,
                          const struct slot_types *types, entity_write_fn *write, const void *data,
                          struct jsonw *w)
{
    for (const struct field *field = entity->fields; field->names; field++) {
        if (field->flags & without || field->type == FIELD_SEALED)
            continue;
        if (write && write(data, row, field, w))
            continue;
        jsonw_keyn(w, field->names, field_name_len(field));
        entity_write_value(field, entity_see(row, field), types, w);
    }
}

static void entity_read_value(const struct field *field, const json_t *value, struct arena *arena,
                              void *at)
{
    AQ_CLEANUP(aq_freep) char *dumped = NULL;
    const char *text = json_string_value(value);

    if (field->type == FIELD_JSON_TEXT && !json_is_null(value))
        text = dumped = json_dump_text(value, JSON_COMPACT);
    if (entity_is_text(field))
        *(char **)at = text ? arena_strdup(arena, text) : NULL;
    else if (field->type == FIELD_UUID)
        (void)uuid_parse(text ? text : "", at);
    else
        entity_set_number(field, at,
                          json_is_boolean(value)      ? json_is_true(value)
                          : field->type == FIELD_USEC ? json_integer_value(value) * USEC_PER_SEC
                                                      : json_integer_value(value));
}

void entity_read_json(const struct entity *entity, const json_t *object, struct arena *arena,
                      void *ret)
{
    memset(ret, 0, entity->size);
    for (const struct field *field = entity->fields; field->names; field++) {
        const json_t *value = json_object_getn(object, field->names, field_name_len(field));
        void *at = entity_at(ret, field);

        if (value) {
            entity_read_value(field, value, arena, at);
            continue;
        }
        entity_set_number(field, at, field->initial);
        if (entity_is_text(field) && field->initial_text)
            *(char **)at = arena_strdup(arena, field->initial_text);
    }
}

static int entity_merge_slots(const struct field *field, struct slots *ret, const json_t *value,
                              const struct slot_types *types, struct aq_error *err)
{
    struct aq_error why = { 0 };
    char path[sizeof(why.field)];

    if (slots_from_json(value, types, ret, &why) == 0)
        return 0;
    (void)snprintf(path, sizeof(path), "%.*s%s%.38s", (int)AQ_MIN(field_name_len(field), 40u),
                   field->names, why.field[0] ? "." : "", why.field);
    return aq_fail_as(err, EINVAL, "invalid-api-params", path, "%s", why.text);
}

static int entity_merge_text(const struct field *field, char **ret, const char *text,
                             struct aq_error *err)
{
    char name[FIELD_NAME_MAX];

    if (!field_has_word(field, text))
        return aq_fail_as(err, EINVAL, "invalid-api-params", field_name(field, name),
                          "'%s' is none of its values", text);
    free(*ret);
    *ret = aq_strdup(text);
    return 0;
}

/* The value of a member that owns something; 'decoded' is where the decoded struct has it. */
static int entity_merge_owned(const struct field *field, void *at, const void *decoded,
                              const json_t *value, const struct slot_types *types,
                              struct aq_error *err)
{
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_SIZE:
        return entity_merge_text(field, at, *(const char *const *)decoded, err);
    case FIELD_JSON_TEXT:
        free(*(char **)at);
        *(char **)at = json_dump_text(value, JSON_COMPACT);
        return 0;
    case FIELD_SLOTS:
        return entity_merge_slots(field, at, value, types, err);
    default: /* FIELD_OWN, and what requests do not give */
        return 0;
    }
}

int entity_merge(const struct entity *entity, void *row, const void *decoded, const json_t *given,
                 const struct slot_types *types, struct aq_error *err)
{
    for (const struct field *field = entity->fields; field->names; field++) {
        const json_t *value = field_get(field, given);
        const void *from = entity_see(decoded, field);
        void *at = entity_at(row, field);
        int r;

        if (!value || json_is_null(value) || field->type == FIELD_ENUM)
            continue;
        if (entity_plain_size(field))
            memcpy(at, from, entity_plain_size(field));
        else if ((r = entity_merge_owned(field, at, from, value, types, err)) < 0)
            return r;
    }
    return 0;
}
