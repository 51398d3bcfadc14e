#include "link/message.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/jsonw.h"
#include "link/fields.h"

static const char *const state_names[] = {
    [MSG_KERNEL_CREATING] = "CREATING",       [MSG_KERNEL_RUNNING] = "RUNNING",
    [MSG_KERNEL_RESTARTING] = "RESTARTING",   [MSG_KERNEL_TERMINATING] = "TERMINATING",
    [MSG_KERNEL_TERMINATED] = "TERMINATED",   [MSG_KERNEL_ERROR] = "ERROR",
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
static size_t *list_count(const void *place)
{
    return (size_t *)(void *)((char *)(uintptr_t)place + sizeof(void *));
}

/* ---- encoding ---- */

static int encode_fields(const struct field *fields, const void *from, struct jsonw *w,
                         struct aq_error *err);

static int encode_json(const struct field *field, const char *text, struct jsonw *w,
                       struct aq_error *err)
{
    json_t *parsed;

    if (!text)
        return 0;
    /* a text that is not JSON would poison the whole connection */
    parsed = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!parsed)
        return aq_fail_field(err, EINVAL, field->key, "'%s' does not hold JSON", field->key);
    json_decref(parsed);
    jsonw_key(w, field->key);
    jsonw_raw(w, text, strlen(text));
    return 0;
}

static void encode_env(const struct field *field, const void *place, struct jsonw *w)
{
    const struct msg_env *env = *(struct msg_env *const *)place;
    size_t count = *list_count(place);

    if (count == 0)
        return;
    jsonw_key(w, field->key);
    jsonw_object_begin(w);
    for (size_t i = 0; i < count; i++)
        jsonw_member_str(w, env[i].name, env[i].value);
    jsonw_object_end(w);
}

static int encode_list(const struct field *field, const void *place, struct jsonw *w,
                       struct aq_error *err)
{
    const char *items = *(const char *const *)place;
    size_t count = *list_count(place);
    int r = 0;

    if (count == 0 && !field->of->is_always_there)
        return 0;
    jsonw_key(w, field->key);
    jsonw_array_begin(w);
    for (size_t i = 0; r == 0 && i < count; i++) {
        jsonw_object_begin(w);
        r = encode_fields(field->of->fields, items + i * field->of->size, w, err);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    return r;
}

static void encode_values(const struct field *field, const void *place, struct jsonw *w)
{
    const struct msg_value *values = *(struct msg_value *const *)place;
    size_t count = *list_count(place);

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

static int encode_field(const struct field *field, const void *place, struct jsonw *w,
                        struct aq_error *err)
{
    char id[UUID_TEXT_MAX];

    switch (field->kind) {
    case FIELD_STR:
        if (*(const char *const *)place)
            jsonw_member_str(w, field->key, *(const char *const *)place);
        return 0;
    case FIELD_INT:
        if (*(const int64_t *)place)
            jsonw_member_int(w, field->key, *(const int64_t *)place);
        return 0;
    case FIELD_BOOL:
        if (*(const bool *)place)
            jsonw_member_bool(w, field->key, true);
        return 0;
    case FIELD_UUID:
        if (!uuid_is_nil(place))
            jsonw_member_str(w, field->key, uuid_format(place, id));
        return 0;
    case FIELD_STATE:
        jsonw_member_str(w, field->key, state_names[*(const enum msg_kernel_state *)place]);
        return 0;
    case FIELD_JSON:
        return encode_json(field, *(const char *const *)place, w, err);
    case FIELD_ENV:
        encode_env(field, place, w);
        return 0;
    case FIELD_LIST:
        return encode_list(field, place, w, err);
    case FIELD_VALUES:
        encode_values(field, place, w);
        return 0;
    case FIELD_END:
        break;
    }
    return 0;
}

static int encode_fields(const struct field *fields, const void *from, struct jsonw *w,
                         struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && fields->kind != FIELD_END; fields++)
        r = encode_field(fields, (const char *)from + fields->offset, w, err);
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
    r = encode_fields(message_shapes[msg->type].fields, &msg->join, &w, err);
    jsonw_object_end(&w);
    if (r == 0 && !strbuf_ok(out))
        r = aq_fail(err, ENOMEM, "message '%s'", message_shapes[msg->type].name);
    return r;
}

/* ---- decoding ---- */

struct decoder {
    struct arena *arena;
    struct aq_error *err;
};

static int decode_fields(const struct decoder *d, const json_t *object,
                         const struct field *fields, void *to);

static int refuse(const struct decoder *d, const char *key, const char *want)
{
    return aq_fail_field(d->err, EINVAL, key, "'%s' must be %s", key, want);
}

static int no_memory(const struct decoder *d)
{
    return aq_fail(d->err, ENOMEM, "message");
}

static int decode_str(const struct decoder *d, const json_t *value, const char *key,
                      const char **ret)
{
    if (!json_is_string(value))
        return refuse(d, key, "text");
    *ret = arena_strndup(d->arena, json_string_value(value), json_string_length(value));
    return *ret ? 0 : no_memory(d);
}

static int decode_json(const struct decoder *d, const json_t *value, const char *key,
                       const char **ret)
{
    char *text;

    if (!json_is_object(value) && !json_is_array(value))
        return refuse(d, key, "an object or a list");
    text = json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER);
    *ret = text ? arena_strdup(d->arena, text) : NULL;
    free(text);
    return *ret ? 0 : no_memory(d);
}

static int decode_env(const struct decoder *d, json_t *value, const char *key, void *place)
{
    struct msg_env *env;
    const char *name;
    json_t *text;
    size_t count = 0;
    int r = 0;

    if (!json_is_object(value))
        return refuse(d, key, "an object of texts");
    env = arena_array(d->arena, json_object_size(value) + 1, sizeof(*env));
    if (!env)
        return no_memory(d);
    json_object_foreach(value, name, text) {
        if (!name[0] || strchr(name, '='))
            return refuse(d, key, "names without '='");
        env[count].name = arena_strdup(d->arena, name);
        if (!env[count].name)
            return no_memory(d);
        r = decode_str(d, text, key, &env[count++].value);
        if (r < 0)
            return r;
    }
    *(struct msg_env **)place = env;
    *list_count(place) = count;
    return 0;
}

static int decode_list(const struct decoder *d, const json_t *value, const struct field *field,
                       void *place)
{
    const struct list_shape *of = field->of;
    size_t count = json_array_size(value);
    char *items;
    int r = 0;

    if (!json_is_array(value))
        return refuse(d, field->key, "a list");
    if (of->max && count > of->max)
        return aq_fail_field(d->err, EINVAL, field->key, "'%s' may have %zu elements at most, not "
                             "%zu", field->key, of->max, count);
    items = arena_array(d->arena, count + 1, of->size);
    if (!items)
        return no_memory(d);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!json_is_object(json_array_get(value, i)))
            return refuse(d, field->key, "a list of objects");
        r = decode_fields(d, json_array_get(value, i), of->fields, items + i * of->size);
    }
    *(void **)place = items;
    *list_count(place) = count;
    return r;
}

/* [metric, value] or [metric, value, capacity] */
static bool decode_value(const json_t *from, struct msg_value *ret)
{
    const json_t *metric = json_array_get(from, 0), *capacity = json_array_get(from, 2);

    *ret = (struct msg_value){ .metric = json_integer_value(metric),
                               .value = json_number_value(json_array_get(from, 1)),
                               .capacity = capacity ? json_number_value(capacity) : -1 };
    return json_is_integer(metric) && ret->metric >= 0 && ret->metric < MSG_METRICS_MAX
           && json_is_number(json_array_get(from, 1)) && json_array_size(from) <= 3
           && (!capacity || (json_is_number(capacity) && ret->capacity >= 0));
}

static int decode_values(const struct decoder *d, const json_t *value, const char *key,
                         void *place)
{
    size_t count = json_array_size(value);
    struct msg_value *values;

    if (!json_is_array(value) || count > MSG_VALUES_MAX)
        return refuse(d, key, "a list of measured values");
    values = arena_array(d->arena, count + 1, sizeof(*values));
    if (!values)
        return no_memory(d);
    for (size_t i = 0; i < count; i++)
        if (!decode_value(json_array_get(value, i), &values[i]))
            return refuse(d, key, "a list of [metric, value] or [metric, value, capacity]");
    *(struct msg_value **)place = values;
    *list_count(place) = count;
    return 0;
}

static int decode_state(const struct decoder *d, const json_t *value, const char *key,
                        enum msg_kernel_state *ret)
{
    for (size_t i = 0; json_is_string(value) && i < AQ_COUNT(state_names); i++) {
        if (strcmp(json_string_value(value), state_names[i]) == 0) {
            *ret = (enum msg_kernel_state)i;
            return 0;
        }
    }
    return refuse(d, key, "a state of a kernel");
}

static int decode_field(const struct decoder *d, json_t *value, const struct field *field,
                        void *place)
{
    switch (field->kind) {
    case FIELD_STR:
        return decode_str(d, value, field->key, place);
    case FIELD_JSON:
        return decode_json(d, value, field->key, place);
    case FIELD_ENV:
        return decode_env(d, value, field->key, place);
    case FIELD_LIST:
        return decode_list(d, value, field, place);
    case FIELD_VALUES:
        return decode_values(d, value, field->key, place);
    case FIELD_STATE:
        return decode_state(d, value, field->key, place);
    case FIELD_INT:
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return refuse(d, field->key, "a whole number, not negative");
        *(int64_t *)place = json_integer_value(value);
        return 0;
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return refuse(d, field->key, "true or false");
        *(bool *)place = json_is_true(value);
        return 0;
    case FIELD_UUID:
        if (!json_is_string(value) || uuid_parse(json_string_value(value), place) < 0)
            return refuse(d, field->key, "an id");
        if (field->required && uuid_is_nil(place))
            return aq_fail_field(d->err, EINVAL, field->key, "'%s' is missing", field->key);
        return 0;
    case FIELD_END:
        break;
    }
    return 0;
}

static bool is_void(const json_t *value)
{
    return !value || json_is_null(value)
           || (json_is_string(value) && json_string_length(value) == 0)
           || (json_is_integer(value) && json_integer_value(value) == 0);
}

static int decode_fields(const struct decoder *d, const json_t *object,
                         const struct field *fields, void *to)
{
    int r = 0;

    for (; r == 0 && fields->kind != FIELD_END; fields++) {
        json_t *value = json_object_get(object, fields->key);

        if (fields->required && is_void(value))
            return aq_fail_field(d->err, EINVAL, fields->key, "'%s' is missing", fields->key);
        if (value && !json_is_null(value))
            r = decode_field(d, value, fields, (char *)to + fields->offset);
    }
    return r;
}

static enum message_type find_type(const char *name)
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
    const struct decoder d = { .arena = &got.arena, .err = err };
    json_error_t bad;
    json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &bad);
    const char *type = json_string_value(json_object_get(object, "type"));
    int r = 0;

    if (!object)
        return aq_fail(err, EINVAL, "message: %s at byte %d", bad.text, bad.position);
    if (!type)
        r = aq_fail_field(err, EINVAL, "type", "a message without a type");
    else
        got.type = find_type(type);
    if (r == 0 && got.type != MSG_UNKNOWN)
        r = decode_fields(&d, object, message_shapes[got.type].fields, &got.join);
    json_decref(object);
    if (r < 0)
        arena_done(&got.arena);
    else
        *ret = got;
    return r;
}

void message_done(struct message *msg)
{
    arena_done(&msg->arena);
}
