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

bool message_is_order(enum message_type type)
{
    return message_shapes[type].is_order;
}

const char *msg_kernel_state_name(enum msg_kernel_state state)
{
    return state_names[state];
}

/* ---- members with forms of their own ---- */

static void message_write_state(const char *key, const void *at, struct jsonw *w)
{
    jsonw_member_str(w, key, state_names[*(const enum msg_kernel_state *)at]);
}

static int message_read_state(const char *key, const json_t *value, struct arena *arena, void *at,
                              struct aq_error *err)
{
    (void)arena;
    for (size_t i = 0; json_is_string(value) && i < AQ_COUNT(state_names); i++) {
        if (strcmp(json_string_value(value), state_names[i]) == 0) {
            *(enum msg_kernel_state *)at = (enum msg_kernel_state)i;
            return 0;
        }
    }
    return wire_refuse(key, "a state of a kernel", err);
}

const struct wire_own message_kernel_state = { message_write_state, message_read_state };

static void message_write_values(const char *key, const void *at, struct jsonw *w)
{
    const struct msg_value *values = *(struct msg_value *const *)at;
    size_t count = *wire_list_count(at);

    if (count == 0)
        return;
    jsonw_key(w, key);
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

static int message_read_values(const char *key, const json_t *value, struct arena *arena, void *at,
                               struct aq_error *err)
{
    size_t count = json_array_size(value);
    struct msg_value *values;

    if (!json_is_array(value) || count > MSG_VALUES_MAX)
        return wire_refuse(key, "a list of measured values", err);
    values = arena_array(arena, count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        if (!message_decode_value(json_array_get(value, i), &values[i]))
            return wire_refuse(key, "a list of [metric, value] or [metric, value, capacity]", err);
    *(struct msg_value **)at = values;
    *wire_list_count(at) = count;
    return 0;
}

const struct wire_own message_values = { message_write_values, message_read_values };

/* ---- messages ---- */

int message_encode(const struct message *msg, struct strbuf *out, struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    int r;

    if (!message_shapes[msg->type].fields)
        return aq_fail(err, EINVAL, "a message without a type");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", message_shapes[msg->type].name);
    r = wire_fields_write(message_shapes[msg->type].fields, &msg->join, 0, &w, err);
    if (r == 0 && message_is_order(msg->type))
        r = wire_fields_write(message_stamp_fields, &msg->stamp, 0, &w, err);
    jsonw_object_end(&w);
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
        r = wire_fields_read(message_shapes[got.type].fields, object, 0, &got.arena, &got.join,
                             err);
    if (r == 0 && message_is_order(got.type))
        r = wire_fields_read(message_stamp_fields, object, 0, &got.arena, &got.stamp, err);
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
