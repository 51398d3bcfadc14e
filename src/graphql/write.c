/* SPDX-License-Identifier: Apache-2.0 */
/* The reply, written depth first once everything below is resolved.
 *
 * A function that returns false has "thrown": r->thrown is an error on its
 * way up to the nearest place that may be null, where what was written since
 * is cut off and null takes its place. That is the order in which graphql-js
 * reports errors of resolvers that do not wait.
 */
#include "graphql/request.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "graphql/number.h"

static bool write_throw_text(struct gql_request *r, const char *text, size_t len,
                             const struct plan_node *nodes, uint32_t at, const struct path *path)
{
    struct error *error = error_new(&r->errors, text, len);

    if (at != UINT32_MAX)
        error_add_place(&r->errors, error, at);
    for (; nodes; nodes = nodes->next)
        error_add_place(&r->errors, error, nodes->field->at);
    if (path)
        error_set_path(&r->errors, error, path);
    r->thrown = error;
    return false;
}

static bool write_throw_buffer(struct gql_request *r, const struct strbuf *text,
                               const struct plan_field *field, const struct path *path)
{
    return write_throw_text(r, text->data, text->len, field->nodes, UINT32_MAX, path);
}

/* A place that may be null: forget what was written since, note the error. */
static void write_catch_thrown(struct gql_request *r, size_t start)
{
    strbuf_truncate(r->out, start);
    r->writer.need_comma = false;
    jsonw_null(&r->writer);
    errors_append(&r->errors, r->thrown);
    r->thrown = NULL;
}

/* A value in a message, as graphql-js's inspect() shows it. */
static void write_show_value(struct gql_value value, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char number[NUMBER_TEXT_MAX];

    switch ((enum gql_kind)value.kind) {
    case GQL_BOOL:
        jsonw_bool(&w, value.boolean);
        break;
    case GQL_INT:
    case GQL_ENUM:
        jsonw_int(&w, value.integer);
        break;
    case GQL_FLOAT:
        strbuf_adds(out, number_format(value.real, number));
        break;
    case GQL_STRING:
        jsonw_strn(&w, value.text, value.count);
        break;
    case GQL_LIST:
        strbuf_addc(out, '[');
        for (uint32_t i = 0; i < AQ_MIN(value.count, 10u); i++) {
            if (i)
                strbuf_adds(out, ", ");
            write_show_value(value.items[i], out);
        }
        strbuf_adds(out, value.count > 10 ? ", ...]" : "]");
        break;
    default:
        strbuf_adds(out, "{}");
        break;
    }
}

/* Any JSON, for scalars that the engine does not know. */
static void write_any(struct jsonw *w, struct gql_value value)
{
    switch ((enum gql_kind)value.kind) {
    case GQL_BOOL:
        jsonw_bool(w, value.boolean);
        break;
    case GQL_INT:
        jsonw_int(w, value.integer);
        break;
    case GQL_FLOAT:
        jsonw_double(w, value.real);
        break;
    case GQL_STRING:
        jsonw_strn(w, value.text, value.count);
        break;
    case GQL_RAW:
        jsonw_raw(w, value.text, value.count);
        break;
    case GQL_LIST:
        jsonw_array_begin(w);
        for (uint32_t i = 0; i < value.count; i++)
            write_any(w, value.items[i]);
        jsonw_array_end(w);
        break;
    case GQL_MAP:
        jsonw_object_begin(w);
        for (uint32_t i = 0; i < value.count; i++) {
            jsonw_key(w, value.members[i].name);
            write_any(w, value.members[i].value);
        }
        jsonw_object_end(w);
        break;
    default:
        jsonw_null(w);
        break;
    }
}

/* serialize() of an enum: the name of a value, or NULL. */
static const char *write_enum_name(const struct gql_type *type, struct gql_value value)
{
    if (value.kind == GQL_ENUM || value.kind == GQL_INT)
        return value.integer >= 0 && value.integer < type->value_count
                   ? type->values[value.integer].name
                   : NULL;
    for (uint32_t i = 0; i < type->value_count && value.kind == GQL_STRING; i++)
        if (strlen(type->values[i].name) == value.count
            && memcmp(type->values[i].name, value.text, value.count) == 0)
            return type->values[i].name;
    return NULL;
}

static const char *write_int(struct jsonw *w, struct gql_value value)
{
    int64_t whole = value.integer;

    if (value.kind == GQL_BOOL)
        whole = value.boolean;
    else if (value.kind != GQL_INT
             && !(value.kind == GQL_FLOAT && number_is_integer(value.real, &whole)))
        return "Int cannot represent non-integer value: ";
    if (whole > INT32_MAX || whole < INT32_MIN)
        return "Int cannot represent non 32-bit signed integer value: ";
    jsonw_int(w, whole);
    return NULL;
}

static const char *write_float(struct jsonw *w, struct gql_value value)
{
    if (value.kind == GQL_INT)
        jsonw_int(w, value.integer);
    else if (value.kind == GQL_BOOL)
        jsonw_int(w, value.boolean);
    else if (value.kind == GQL_FLOAT && isfinite(value.real))
        jsonw_double(w, value.real);
    else
        return "Float cannot represent non numeric value: ";
    return NULL;
}

static const char *write_boolean(struct jsonw *w, struct gql_value value)
{
    if (value.kind == GQL_BOOL)
        jsonw_bool(w, value.boolean);
    else if (value.kind == GQL_INT)
        jsonw_bool(w, value.integer != 0);
    else if (value.kind == GQL_FLOAT && isfinite(value.real))
        jsonw_bool(w, value.real != 0);
    else
        return "Boolean cannot represent a non boolean value: ";
    return NULL;
}

/* Numbers become text, for ID only whole ones; true and false for String only. */
static const char *write_text(struct jsonw *w, bool is_id, struct gql_value value)
{
    char text[NUMBER_TEXT_MAX];
    int64_t whole = value.integer;

    if (value.kind == GQL_STRING) {
        jsonw_strn(w, value.text, value.count);
    } else if (value.kind == GQL_INT
               || (is_id && value.kind == GQL_FLOAT && number_is_integer(value.real, &whole))) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)whole);
        jsonw_str(w, text);
    } else if (!is_id && value.kind == GQL_BOOL) {
        jsonw_str(w, value.boolean ? "true" : "false");
    } else if (!is_id && value.kind == GQL_FLOAT && isfinite(value.real)) {
        jsonw_str(w, number_format(value.real, text));
    } else {
        return is_id ? "ID cannot represent value: " : "String cannot represent value: ";
    }
    return NULL;
}

/* serialize() of scalars. NULL, or why the value cannot be one. */
static const char *write_scalar(struct jsonw *w, enum gql_scalar_kind kind, struct gql_value value)
{
    switch (kind) {
    case GQL_SCALAR_INT:
        return write_int(w, value);
    case GQL_SCALAR_FLOAT:
        return write_float(w, value);
    case GQL_SCALAR_BOOLEAN:
        return write_boolean(w, value);
    case GQL_SCALAR_ID:
    case GQL_SCALAR_STRING:
        return write_text(w, kind == GQL_SCALAR_ID, value);
    default:
        write_any(w, value);
        return NULL;
    }
}

/* "problem", or NULL for an enum, and the value */
static bool write_throw_leaf(struct gql_request *r, const struct plan_field *field,
                             struct gql_value value, const char *problem, const struct path *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (problem)
        strbuf_adds(&text, problem);
    else
        strbuf_addf(&text, "Enum \"%s\" cannot represent value: ", field->def->type.type->name);
    write_show_value(value, &text);
    return write_throw_buffer(r, &text, field, path);
}

static bool write_leaf(struct gql_request *r, const struct plan_field *field,
                       struct gql_value value, const struct path *path)
{
    const struct gql_type *type = field->def->type.type;
    const char *text;

    if (type->kind == GQL_TYPE_ENUM) {
        text = write_enum_name(type, value);
        if (!text)
            return write_throw_leaf(r, field, value, NULL, path);
        jsonw_str(&r->writer, text);
        return true;
    }
    text = write_scalar(&r->writer, (enum gql_scalar_kind)type->scalar, value);
    return !text || write_throw_leaf(r, field, value, text, path);
}

/* ---- turns ---- */

#define BYTES_OF_A_VALUE 64 /* are as much work as one value more */

/* Why false was returned, if no error was thrown: nothing more can be written now. */
static bool write_is_stopped(const struct gql_request *r)
{
    return r->paused_at || r->is_too_large || request_is_over(r);
}

/* Before a field or item: whether it may be written in this turn. */
static bool write_may_go_on(struct gql_request *r, struct write_level *level)
{
    const struct gql_limits *limits = &r->engine->conf.limits;
    size_t written = r->out->len - AQ_MIN(r->counted_len, r->out->len);

    request_count_work(r, written / BYTES_OF_A_VALUE);
    r->counted_len = r->out->len;
    r->is_too_large |= limits->reply && r->out->len - r->start > limits->reply;
    if (!r->is_too_large && request_turn_is_over(r))
        r->paused_at = level;
    if (write_is_stopped(r))
        return false;
    request_count_work(r, 1);
    return true;
}

/* The level of an object or list, at its beginning or, on the way back after a pause, where it
 * was.
 */
static struct write_level *write_enter(struct gql_request *r)
{
    struct write_level *level = r->level->below;

    if (!level) {
        level = request_alloc(r, 1, sizeof(*level));
        level->above = r->level;
        r->level->below = level;
    }
    if (!r->is_returning)
        level->at = 0;
    r->level = level;
    return level;
}

/* Whether the field or item where this level is was begun in an earlier turn. */
static bool write_is_begun(struct gql_request *r, const struct write_level *level)
{
    if (r->is_returning && r->returning_to == level)
        r->is_returning = false;
    return r->is_returning;
}

static bool write_object(struct gql_request *r, const struct batch *batch, uint32_t row,
                         const struct path *path);

static bool write_value(struct gql_request *r, const struct plan_field *field,
                        struct gql_value value, struct gql_ref type, const struct path *path);

static struct gql_value write_span_item(struct gql_value value, uint32_t index, uint32_t row)
{
    const struct span *span = value.object;

    if (!span->rows[index])
        return gql_null();
    return (struct gql_value){ .kind = GQL_OBJECT, .count = row, .object = span->batch };
}

/* The comma before a field or item, and where its value begins. */
static void write_begin_value(struct gql_request *r, struct write_level *level, const char *label,
                              uint32_t len)
{
    if (r->writer.need_comma)
        strbuf_addc(r->out, ',');
    strbuf_add(r->out, label, len);
    r->writer.need_comma = false;
    level->start = r->out->len;
}

static bool write_list(struct gql_request *r, const struct plan_field *field,
                       struct gql_value value, struct gql_ref item, const struct path *path)
{
    bool is_span = value.kind == GQL_SPAN, is_back = r->is_returning;
    struct write_level *level = write_enter(r);

    if (!is_back) {
        level->row = is_span ? ((const struct span *)value.object)->first : 0;
        jsonw_array_begin(&r->writer);
    }
    for (; level->at < value.count; level->at++) {
        struct path step = { path, NULL, level->at };
        struct gql_value v = is_span ? write_span_item(value, level->at, level->row)
                                     : value.items[level->at];

        if (!write_is_begun(r, level)) {
            if (!write_may_go_on(r, level))
                return false;
            write_begin_value(r, level, "", 0);
        }
        if (!write_value(r, field, v, item, &step)) {
            if (write_is_stopped(r) || gql_ref_is_non_null(item))
                return false;
            r->level = level;
            write_catch_thrown(r, level->start);
        }
        level->row += is_span && v.kind == GQL_OBJECT;
    }
    jsonw_array_end(&r->writer);
    r->level = level->above;
    return true;
}

static bool write_throw_null(struct gql_request *r, const struct plan_field *field,
                             const struct path *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Cannot return null for non-nullable field %s.%s.", field->def->parent->name,
                field->def->name);
    return write_throw_buffer(r, &text, field, path);
}

static bool write_throw_no_list(struct gql_request *r, const struct plan_field *field,
                                const struct path *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Expected Iterable, but did not find one for field \"%s.%s\".",
                field->def->parent->name, field->def->name);
    return write_throw_buffer(r, &text, field, path);
}

/* completeValue() of graphql-js */
static bool write_value(struct gql_request *r, const struct plan_field *field,
                        struct gql_value value, struct gql_ref type, const struct path *path)
{
    if (value.kind == GQL_ERROR)
        return write_throw_text(r, value.text, value.count, field->nodes, UINT32_MAX, path);
    if (value.kind == GQL_NULL || value.kind == GQL_ABSENT) {
        if (gql_ref_is_non_null(type))
            return write_throw_null(r, field, path);
        jsonw_null(&r->writer);
        return true;
    }
    type = gql_ref_nullable(type);
    if (gql_ref_is_list(type)) {
        if (value.kind == GQL_LIST || value.kind == GQL_SPAN)
            return write_list(r, field, value, gql_ref_inner(type), path);
        return write_throw_no_list(r, field, path);
    }
    if (value.kind == GQL_OBJECT)
        return write_object(r, value.object, value.count, path);
    return write_leaf(r, field, value, path);
}

/* A field that is read from its object now. */
static struct gql_value write_read_leaf(struct gql_request *r, const struct plan_field *field,
                                        const void *object)
{
    const struct gql_resolver *resolver = field->resolver;
    const void *member = object ? (const char *)object + resolver->offset : NULL; /* root */
    int64_t usec;

    switch (resolver->how) {
    case GQL_HOW_TEXT:
        return gql_text(*(const char *const *)member);
    case GQL_HOW_CHARS:
        return gql_text(member);
    case GQL_HOW_BOOL:
        return gql_bool(*(const bool *)member);
    case GQL_HOW_INT32:
        return gql_int(*(const int32_t *)member);
    case GQL_HOW_UINT32:
        return gql_int(*(const uint32_t *)member);
    case GQL_HOW_INT64:
        return gql_int(*(const int64_t *)member);
    case GQL_HOW_COUNT:
        return gql_int_clamped(*(const int64_t *)member);
    case GQL_HOW_ENUM:
        return gql_enum((uint32_t) * (const int *)member);
    case GQL_HOW_UUID:
        if (uuid_is_nil(member))
            return gql_null();
        return gql_textn(uuid_format(member, r->get.scratch), UUID_TEXT_MAX - 1);
    case GQL_HOW_TIME:
        usec = *(const int64_t *)member;
        return usec ? gql_text(clock_format_iso(usec, r->get.scratch)) : gql_null();
    case GQL_HOW_VALUE:
        return *(const struct gql_value *)member;
    case GQL_HOW_CONST:
        return resolver->value;
    case GQL_HOW_GET:
        r->get.field = field->def;
        r->get.args = field->args;
        r->get.offset = resolver->offset;
        return resolver->get(&r->get, object);
    default:
        return gql_null();
    }
}

/* The value of one field. */
static bool write_field_value(struct gql_request *r, const struct batch *batch, uint32_t row,
                              uint32_t index, const struct path *path)
{
    const struct plan_field *field = &batch->plan->fields[index];
    struct gql_value value;

    if (field->def == &r->engine->conf.schema->meta[GQL_META_TYPENAME]) {
        jsonw_str(&r->writer, batch->plan->type->name);
        return true;
    }
    if (field->refusal.message)
        return write_throw_text(r, field->refusal.message, strlen(field->refusal.message), NULL,
                                field->refusal.at, path);
    value = field->has_column ? batch->columns[index][row]
                              : write_read_leaf(r, field, batch->objects[row]);
    return write_value(r, field, value, field->def->type, path);
}

/* "key": and the value of one field; false if the object cannot be. */
static bool write_field(struct gql_request *r, const struct batch *batch, uint32_t row,
                        struct write_level *level, const struct path *parent)
{
    const struct plan_field *field = &batch->plan->fields[level->at];
    struct path path = { parent, field->key, 0 };

    if (!write_is_begun(r, level)) {
        if (!write_may_go_on(r, level))
            return false;
        write_begin_value(r, level, field->label, field->label_len);
    }
    if (write_field_value(r, batch, row, level->at, &path))
        return true;
    if (write_is_stopped(r) || gql_ref_is_non_null(field->def->type))
        return false;
    r->level = level;
    write_catch_thrown(r, level->start);
    return true;
}

static bool write_object(struct gql_request *r, const struct batch *batch, uint32_t row,
                         const struct path *path)
{
    const struct field_plan *plan = batch->plan;
    bool is_back = r->is_returning;
    struct write_level *level;

    if (plan->refusal.message)
        return write_throw_text(r, plan->refusal.message, strlen(plan->refusal.message), NULL,
                                plan->refusal.at, path);
    level = write_enter(r);
    if (!is_back)
        jsonw_object_begin(&r->writer);
    for (; level->at < plan->count; level->at++)
        if (!write_field(r, batch, row, level, path))
            return false;
    jsonw_object_end(&r->writer);
    r->level = level->above;
    return true;
}

static void write_data_thrown(struct gql_request *r)
{
    write_catch_thrown(r, r->data_start);
    r->data_is_null = true;
}

void write_begin(struct gql_request *r)
{
    static const char *const words[] = { "query", "mutation", "subscription" };
    const struct field_plan *plan = r->top->plan; /* NULL: the schema has no such root */

    jsonw_object_begin(&r->writer);
    jsonw_key(&r->writer, "data");
    r->data_start = r->out->len;
    if (!plan) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        strbuf_addf(&text, "Schema is not configured to execute %s operation.",
                    words[r->operation->kind]);
        (void)write_throw_text(r, text.data, text.len, NULL, r->operation->at, NULL);
        write_data_thrown(r);
    } else if (plan->refusal.message) {
        (void)write_throw_text(r, plan->refusal.message, strlen(plan->refusal.message), NULL,
                               plan->refusal.at, NULL);
        write_data_thrown(r);
    } else {
        jsonw_object_begin(&r->writer);
    }
}

void write_top_field(struct gql_request *r, uint32_t field)
{
    r->level = &r->top_level;
    r->top_level.at = field;
    if (!r->data_is_null && !write_field(r, r->top, 0, &r->top_level, NULL) && !write_is_stopped(r))
        write_data_thrown(r);
}

bool write_end(struct gql_request *r)
{
    const struct field_plan *plan = r->top->plan;
    uint32_t count = r->operation->kind != AST_MUTATION && plan ? plan->count : 0;

    r->is_returning = r->paused_at != NULL;
    r->returning_to = r->paused_at;
    r->paused_at = NULL;
    for (uint32_t i = r->top_level.at; !r->data_is_null && i < count; i++) {
        write_top_field(r, i);
        if (write_is_stopped(r))
            return !r->paused_at;
    }
    if (!r->data_is_null)
        jsonw_object_end(&r->writer);
    if (r->errors.count)
        errors_write(&r->errors, r->doc->text, r->doc->len, &r->writer);
    jsonw_object_end(&r->writer);
    return true;
}
