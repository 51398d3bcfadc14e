/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - messages to JSON text and back */
#include "link/message.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "link/message_fields.h"

static const char *const state_names[] = {
    [MSG_KERNEL_CREATING] = "CREATING",     [MSG_KERNEL_RUNNING] = "RUNNING",
    [MSG_KERNEL_RESTARTING] = "RESTARTING", [MSG_KERNEL_TERMINATING] = "TERMINATING",
    [MSG_KERNEL_TERMINATED] = "TERMINATED", [MSG_KERNEL_ERROR] = "ERROR",
};

const char *message_type_name(enum message_type type)
{
    return message_shapes[type].name;
}

bool message_is_reliable(enum message_type type)
{
    return message_shapes[type].reliable;
}

const char *msg_kernel_state_name(enum msg_kernel_state state)
{
    return state_names[state];
}

/* The count that follows a list's pointer. */
static size_t *message_list_count(const void *place)
{
    return (size_t *)(void *)((char *)(uintptr_t)place + sizeof(void *));
}

/* ---- encoding ---- */

static int message_encode_fields(const struct message_field *fields, const void *from,
                                 struct jsonw *w, struct aq_error *err);

static int message_encode_json(const struct message_field *field, const char *text, struct jsonw *w,
                               struct aq_error *err)
{
    json_t *parsed;

    if (!text)
        return 0;
    /* a text that is not JSON would poison the whole connection */
    parsed = json_load_string(text, JSON_REJECT_DUPLICATES);
    if (!parsed)
        return aq_fail_field(err, EINVAL, field->key, "'%s' does not hold JSON", field->key);
    json_decref(parsed);
    jsonw_key(w, field->key);
    jsonw_raw(w, text, strlen(text));
    return 0;
}

static int message_encode_list(const struct message_field *field, const void *place,
                               struct jsonw *w, struct aq_error *err)
{
    const char *items = *(const char *const *)place;
    size_t count = *message_list_count(place);
    int r = 0;

    if (count == 0 && !field->of->is_always_there)
        return 0;
    jsonw_key(w, field->key);
    jsonw_array_begin(w);
    for (size_t i = 0; r == 0 && i < count; i++) {
        jsonw_object_begin(w);
        r = message_encode_fields(field->of->fields, items + i * field->of->size, w, err);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    return r;
}

static void message_encode_values(const struct message_field *field, const void *place,
                                  struct jsonw *w)
{
    const struct msg_value *values = *(struct msg_value *const *)place;
    size_t count = *message_list_count(place);

    if (count == 0)
        return;
    jsonw_key(w, field->key);
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        jsonw_array_begin(w);
        jsonw_int(w, values[i].metric);
        jsonw_double(w, values[i].value);
        if (values[i].capacity >= 0)
            jsonw_double(w, values[i].capacity);
        jsonw_array_end(w);
    }
    jsonw_array_end(w);
}

static int message_encode_field(const struct message_field *field, const void *place,
                                struct jsonw *w, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];

    switch (field->kind) {
    case MESSAGE_FIELD_STR:
        if (*(const char *const *)place)
            jsonw_member_str(w, field->key, *(const char *const *)place);
        return 0;
    case MESSAGE_FIELD_INT:
        if (*(const int64_t *)place)
            jsonw_member_int(w, field->key, *(const int64_t *)place);
        return 0;
    case MESSAGE_FIELD_BOOL:
        if (*(const bool *)place)
            jsonw_member_bool(w, field->key, true);
        return 0;
    case MESSAGE_FIELD_UUID:
        if (!uuid_is_nil(place))
            jsonw_member_str(w, field->key, uuid_format(place, id));
        return 0;
    case MESSAGE_FIELD_STATE:
        jsonw_member_str(w, field->key, state_names[*(const enum msg_kernel_state *)place]);
        return 0;
    case MESSAGE_FIELD_JSON:
        return message_encode_json(field, *(const char *const *)place, w, err);
    case MESSAGE_FIELD_SPEC:
        return kernel_spec_write(place, w, err);
    case MESSAGE_FIELD_LIST:
        return message_encode_list(field, place, w, err);
    case MESSAGE_FIELD_VALUES:
        message_encode_values(field, place, w);
        return 0;
    case MESSAGE_FIELD_END:
        break;
    }
    return 0;
}

static int message_encode_fields(const struct message_field *fields, const void *from,
                                 struct jsonw *w, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && fields->kind != MESSAGE_FIELD_END; fields++)
        r = message_encode_field(fields, (const char *)from + fields->offset, w, err);
    return r;
}

int message_encode(const struct message *msg, struct strbuf *out, struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    int r;

    if (!message_shapes[msg->type].fields)
        return aq_fail(err, EINVAL, "a message without a type");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", message_shapes[msg->type].name);
    r = message_encode_fields(message_shapes[msg->type].fields, &msg->join, &w, err);
    jsonw_object_end(&w);
    return r;
}

/* ---- decoding ---- */

struct message_decoder {
    struct arena *arena;
    struct aq_error *err;
};

static int message_decode_fields(const struct message_decoder *d, const json_t *object,
                                 const struct message_field *fields, void *to);

static int message_refuse(const struct message_decoder *d, const char *key, const char *want)
{
    return aq_fail_field(d->err, EINVAL, key, "'%s' must be %s", key, want);
}

static int message_decode_str(const struct message_decoder *d, const json_t *value, const char *key,
                              const char **ret)
{
    if (!json_is_string(value))
        return message_refuse(d, key, "text");
    *ret = arena_strndup(d->arena, json_string_value(value), json_string_length(value));
    return 0;
}

static int message_decode_json(const struct message_decoder *d, const json_t *value,
                               const char *key, const char **ret)
{
    char *text;

    if (!json_is_object(value) && !json_is_array(value))
        return message_refuse(d, key, "an object or a list");
    text = json_dump_text(value, JSON_COMPACT | JSON_PRESERVE_ORDER);
    *ret = arena_strdup(d->arena, text);
    free(text);
    return 0;
}

static int message_decode_list(const struct message_decoder *d, const json_t *value,
                               const struct message_field *field, void *place)
{
    const struct message_list_shape *of = field->of;
    size_t count = json_array_size(value);
    char *items;
    int r = 0;

    if (!json_is_array(value))
        return message_refuse(d, field->key, "a list");
    if (of->max && count > of->max)
        return aq_fail_field(d->err, EINVAL, field->key,
                             "'%s' may have %zu elements at most, not "
                             "%zu",
                             field->key, of->max, count);
    items = arena_array(d->arena, count + 1, of->size);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!json_is_object(json_array_get(value, i)))
            return message_refuse(d, field->key, "a list of objects");
        r = message_decode_fields(d, json_array_get(value, i), of->fields, items + i * of->size);
    }
    *(void **)place = items;
    *message_list_count(place) = count;
    return r;
}

/* [metric, value] or [metric, value, capacity] */
static bool message_decode_value(const json_t *from, struct msg_value *ret)
{
    const json_t *metric = json_array_get(from, 0), *capacity = json_array_get(from, 2);

    *ret = (struct msg_value){ .metric = json_integer_value(metric),
                               .value = json_number_value(json_array_get(from, 1)),
                               .capacity = capacity ? json_number_value(capacity) : -1 };
    return json_is_integer(metric) && ret->metric >= 0 && ret->metric < MSG_METRICS_MAX
           && json_is_number(json_array_get(from, 1)) && json_array_size(from) <= 3
           && (!capacity || (json_is_number(capacity) && ret->capacity >= 0));
}

static int message_decode_values(const struct message_decoder *d, const json_t *value,
                                 const char *key, void *place)
{
    size_t count = json_array_size(value);
    struct msg_value *values;

    if (!json_is_array(value) || count > MSG_VALUES_MAX)
        return message_refuse(d, key, "a list of measured values");
    values = arena_array(d->arena, count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        if (!message_decode_value(json_array_get(value, i), &values[i]))
            return message_refuse(d, key, "a list of [metric, value] or [metric, value, capacity]");
    *(struct msg_value **)place = values;
    *message_list_count(place) = count;
    return 0;
}

static int message_decode_state(const struct message_decoder *d, const json_t *value,
                                const char *key, enum msg_kernel_state *ret)
{
    for (size_t i = 0; json_is_string(value) && i < AQ_COUNT(state_names); i++) {
        if (strcmp(json_string_value(value), state_names[i]) == 0) {
            *ret = (enum msg_kernel_state)i;
            return 0;
        }
    }
    return message_refuse(d, key, "a state of a kernel");
}

static int message_decode_field(const struct message_decoder *d, json_t *value,
                                const struct message_field *field, void *place)
{
    switch (field->kind) {
    case MESSAGE_FIELD_STR:
        return message_decode_str(d, value, field->key, place);
    case MESSAGE_FIELD_JSON:
        return message_decode_json(d, value, field->key, place);
    case MESSAGE_FIELD_SPEC:
    case MESSAGE_FIELD_LIST:
        return message_decode_list(d, value, field, place);
    case MESSAGE_FIELD_VALUES:
        return message_decode_values(d, value, field->key, place);
    case MESSAGE_FIELD_STATE:
        return message_decode_state(d, value, field->key, place);
    case MESSAGE_FIELD_INT:
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return message_refuse(d, field->key, "a whole number, not negative");
        *(int64_t *)place = json_integer_value(value);
        return 0;
    case MESSAGE_FIELD_BOOL:
        if (!json_is_boolean(value))
            return message_refuse(d, field->key, "true or false");
        *(bool *)place = json_is_true(value);
        return 0;
    case MESSAGE_FIELD_UUID:
        if (!json_is_string(value) || uuid_parse(json_string_value(value), place) < 0)
            return message_refuse(d, field->key, "an id");
        if (field->required && uuid_is_nil(place))
            return aq_fail_field(d->err, EINVAL, field->key, "'%s' is missing", field->key);
        return 0;
    case MESSAGE_FIELD_END:
        break;
    }
    return 0;
}

static bool message_is_void(const json_t *value)
{
    return !value || json_is_null(value)
           || (json_is_string(value) && json_string_length(value) == 0)
           || (json_is_integer(value) && json_integer_value(value) == 0);
}

static int message_decode_fields(const struct message_decoder *d, const json_t *object,
                                 const struct message_field *fields, void *to)
{
    int r = 0;

    for (; r == 0 && fields->kind != MESSAGE_FIELD_END; fields++) {
        json_t *value = json_object_get(object, fields->key);

        if (fields->kind == MESSAGE_FIELD_SPEC) {
            r = kernel_spec_read(object, d->arena, (void *)((char *)to + fields->offset), d->err);
            continue;
        }
        if (fields->required && message_is_void(value))
            return aq_fail_field(d->err, EINVAL, fields->key, "'%s' is missing", fields->key);
        if (value && !json_is_null(value))
            r = message_decode_field(d, value, fields, (char *)to + fields->offset);
    }
    return r;
}

static enum message_type message_find_type(const char *name)
{
    for (int i = MSG_UNKNOWN + 1; i < MSG_TYPE_COUNT; i++) {
        if (strcmp(name, message_shapes[i].name) == 0)
            return (enum message_type)i;
    }
    return MSG_UNKNOWN;
}

int message_decode(const char *text, size_t len, struct message *ret, struct aq_error *err)
{
    struct message got = { .arena = ARENA_INIT };
    const struct message_decoder d = { .arena = &got.arena, .err = err };
    json_error_t bad;
    json_t *object;
    const char *type;
    int r = 0;

    object = json_load_text(text, len, JSON_REJECT_DUPLICATES, &bad);
    type = json_string_value(json_object_get(object, "type"));
    if (!object)
        return aq_fail(err, EINVAL, "message: %s at byte %d", bad.text, bad.position);
    if (!type)
        r = aq_fail_field(err, EINVAL, "type", "a message without a type");
    else
        got.type = message_find_type(type);
    if (r == 0 && got.type != MSG_UNKNOWN)
        r = message_decode_fields(&d, object, message_shapes[got.type].fields, &got.join);
    json_decref(object);
    if (r < 0)
        arena_done(&got.arena);
    else
        *ret = got;
    return r;
}

int message_copy(const struct message *msg, struct message *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = message_encode(msg, &text, err);

    return r < 0 ? r : message_decode(text.data, text.len, ret, err);
}

void message_done(struct message *msg)
{
    arena_done(&msg->arena);
}
