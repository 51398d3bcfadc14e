/* SPDX-License-Identifier: Apache-2.0 */
/* Literals and JSON into values of a type. */
#include "graphql/coerce.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "graphql/number.h"
#include "graphql/print.h"
#include "graphql/hint.h"

static const char *coerce_parse_bigint(struct arena *arena, const struct gql_value *in,
                                       struct gql_value *ret)
{
    int64_t whole;

    (void)arena;
    if (in->kind == GQL_INT)
        *ret = *in;
    else if (in->kind == GQL_FLOAT && number_is_integer(in->real, &whole))
        *ret = gql_int(whole);
    else
        return "BigInt is a whole number of at most 64 bits";
    return NULL;
}

static const char *coerce_parse_datetime(struct arena *arena, const struct gql_value *in,
                                         struct gql_value *ret)
{
    int64_t usec;

    (void)arena;
    if (in->kind != GQL_STRING || strlen(in->text) != in->count
        || clock_parse_date(in->text, &usec) < 0)
        return "DateTime is a date and time in the form of ISO 8601";
    *ret = *in;
    return NULL;
}

static const char *coerce_parse_jsonstring(struct arena *arena, const struct gql_value *in,
                                           struct gql_value *ret)
{
    json_t *json;

    (void)arena;
    json = in->kind == GQL_STRING ? json_loadb(in->text, in->count, JSON_DECODE_ANY, NULL) : NULL;
    if (!json)
        return "JSONString is a string that holds JSON text without NUL (U+0000)";
    json_decref(json);
    *ret = *in;
    return NULL;
}

static const char *coerce_parse_uuid(struct arena *arena, const struct gql_value *in,
                                     struct gql_value *ret)
{
    struct uuid id;
    char *text;

    if (in->kind != GQL_STRING || strlen(in->text) != in->count || uuid_parse(in->text, &id) < 0)
        return "UUID is 32 hexadecimal digits, with or without dashes";
    text = arena_alloc(arena, UUID_TEXT_MAX);
    *ret = gql_text(uuid_format(&id, text));
    return NULL;
}

gql_scalar_fn coerce_builtin(enum gql_scalar_kind kind)
{
    switch (kind) {
    case GQL_SCALAR_BIGINT:
        return coerce_parse_bigint;
    case GQL_SCALAR_DATETIME:
        return coerce_parse_datetime;
    case GQL_SCALAR_JSONSTRING:
        return coerce_parse_jsonstring;
    case GQL_SCALAR_UUID:
        return coerce_parse_uuid;
    default:
        return NULL;
    }
}

static struct gql_value coerce_number_of(const struct ast_value *value)
{
    char *end;
    long long whole;

    errno = 0;
    whole = strtoll(value->text, &end, 10);
    if (value->kind == AST_INT && errno == 0)
        return gql_int(whole);
    return gql_float(strtod(value->text, NULL));
}

static struct gql_value coerce_untyped(struct coerce *c, const struct ast_value *value);

static struct gql_value coerce_untyped_fields(struct coerce *c, const struct ast_value *value)
{
    struct gql_member *members = arena_array(c->arena, value->count, sizeof(*members));
    uint32_t count = 0;

    for (const struct ast_argument *field = value->fields; field; field = field->next) {
        struct gql_value v = coerce_untyped(c, field->value);

        if (v.kind != GQL_ABSENT)
            members[count++] = (struct gql_member){ field->name.symbol->text, v };
    }
    return (struct gql_value){ .kind = GQL_MAP, .count = count, .members = members };
}

static struct gql_value coerce_untyped_list(struct coerce *c, const struct ast_value *value)
{
    struct gql_value *items = arena_array(c->arena, value->count, sizeof(*items));
    uint32_t count = 0;

    for (const struct ast_value *item = value->items; item; item = item->next) {
        items[count] = coerce_untyped(c, item);
        if (items[count].kind == GQL_ABSENT)
            items[count] = gql_null();
        count++;
    }
    return gql_list(items, count);
}

/* The literal as JSON would have it, for scalars that are not the language's own. */
static struct gql_value coerce_untyped(struct coerce *c, const struct ast_value *value)
{
    switch ((enum ast_value_kind)value->kind) {
    case AST_VARIABLE:
        return c->variables ? c->variables[value->symbol->index]
                            : (struct gql_value){ .kind = GQL_ABSENT };
    case AST_INT:
    case AST_FLOAT:
        return coerce_number_of(value);
    case AST_STRING:
    case AST_BLOCK_STRING:
        return gql_textn(value->text, value->count);
    case AST_BOOLEAN:
        return gql_bool(value->boolean);
    case AST_ENUM:
        return gql_textn(value->symbol->text, value->symbol->len);
    case AST_LIST:
        return coerce_untyped_list(c, value);
    case AST_OBJECT:
        return coerce_untyped_fields(c, value);
    case AST_NULL:
        break;
    }
    return gql_null();
}

static bool coerce_refuse(const struct ast_value *value, const char *what, struct strbuf *message,
                          bool *ret_whole)
{
    *ret_whole = true;
    strbuf_adds(message, what);
    print_value(value, message);
    return false;
}

static bool coerce_enum_literal(const struct ast_value *value, const struct gql_type *type,
                                struct gql_value *ret, struct strbuf *message, bool *ret_whole)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf printed = STRBUF_INIT;
    struct hint hint;

    if (value->kind == AST_ENUM) {
        for (uint32_t i = 0; i < type->value_count; i++) {
            if (strcmp(type->values[i].name, value->symbol->text) == 0) {
                *ret = gql_enum(i);
                return true;
            }
        }
    }
    print_value(value, &printed);
    if (value->kind == AST_ENUM)
        strbuf_addf(message, "Value \"%s\" does not exist in \"%s\" enum.", printed.data,
                    type->name);
    else
        strbuf_addf(message, "Enum \"%s\" cannot represent non-enum value: %s.", type->name,
                    printed.data);
    hint = hint_make(printed.data, printed.len);
    for (uint32_t i = 0; i < type->value_count; i++)
        hint_offer(&hint, type->values[i].name);
    hint_print(&hint, "the enum value", message);
    *ret_whole = true;
    return false;
}

static bool coerce_int_literal(const struct ast_value *value, struct gql_value *ret,
                               struct strbuf *message, bool *ret_whole)
{
    struct gql_value number;

    if (value->kind != AST_INT)
        return coerce_refuse(value, "Int cannot represent non-integer value: ", message, ret_whole);
    number = coerce_number_of(value);
    if (number.kind != GQL_INT || number.integer > INT32_MAX || number.integer < INT32_MIN)
        return coerce_refuse(
            value, "Int cannot represent non 32-bit signed integer value: ", message, ret_whole);
    *ret = number;
    return true;
}

static bool coerce_custom_literal(struct coerce *c, const struct ast_value *value,
                                  const struct gql_type *type, struct gql_value *ret,
                                  struct strbuf *message, bool *ret_whole)
{
    gql_scalar_fn parse = c->scalars[type->id - 1];
    struct gql_value in = coerce_untyped(c, value);
    const char *problem = NULL;

    if (in.kind == GQL_NULL || !parse)
        *ret = in;
    else
        problem = parse(c->arena, &in, ret);
    if (!problem)
        return true;
    *ret_whole = false;
    strbuf_adds(message, problem);
    return false;
}

bool coerce_leaf_literal(struct coerce *c, const struct ast_value *value,
                         const struct gql_type *type, struct gql_value *ret, struct strbuf *message,
                         bool *ret_whole)
{
    bool is_string = value->kind == AST_STRING || value->kind == AST_BLOCK_STRING;

    if (type->kind == GQL_TYPE_ENUM)
        return coerce_enum_literal(value, type, ret, message, ret_whole);
    switch ((enum gql_scalar_kind)type->scalar) {
    case GQL_SCALAR_INT:
        return coerce_int_literal(value, ret, message, ret_whole);
    case GQL_SCALAR_FLOAT:
        if (value->kind != AST_INT && value->kind != AST_FLOAT)
            return coerce_refuse(value, "Float cannot represent non numeric value: ", message,
                                 ret_whole);
        *ret = gql_float(strtod(value->text, NULL));
        return true;
    case GQL_SCALAR_STRING:
        if (!is_string)
            return coerce_refuse(value, "String cannot represent a non string value: ", message,
                                 ret_whole);
        *ret = gql_textn(value->text, value->count);
        return true;
    case GQL_SCALAR_BOOLEAN:
        if (value->kind != AST_BOOLEAN)
            return coerce_refuse(value, "Boolean cannot represent a non boolean value: ", message,
                                 ret_whole);
        *ret = gql_bool(value->boolean);
        return true;
    case GQL_SCALAR_ID:
        if (!is_string && value->kind != AST_INT)
            return coerce_refuse(value, "ID cannot represent a non-string and non-integer value: ",
                                 message, ret_whole);
        *ret = gql_textn(value->text, value->count);
        return true;
    default:
        return coerce_custom_literal(c, value, type, ret, message, ret_whole);
    }
}

/* A variable that was not given. */
static bool coerce_is_missing(const struct coerce *c, const struct ast_value *value)
{
    return value->kind == AST_VARIABLE
           && (!c->variables || c->variables[value->symbol->index].kind == GQL_ABSENT);
}

static bool coerce_list_literal(struct coerce *c, const struct ast_value *value,
                                struct gql_ref item, struct gql_value *ret)
{
    bool single = value->kind != AST_LIST;
    uint32_t count = single ? 1 : value->count, i = 0;
    struct gql_value *items = arena_array(c->arena, count, sizeof(*items));

    if (single && !coerce_literal(c, value, item, &items[0]))
        return false;
    for (const struct ast_value *v = single ? NULL : value->items; v; v = v->next, i++) {
        if (coerce_is_missing(c, v) && !gql_ref_is_non_null(item))
            items[i] = gql_null();
        else if (!coerce_literal(c, v, item, &items[i]))
            return false;
    }
    *ret = gql_list(items, count);
    return true;
}

static const struct ast_argument *coerce_field_named(const struct ast_argument *fields,
                                                     const char *name)
{
    const struct ast_argument *found = NULL;

    for (; fields; fields = fields->next)
        if (strcmp(fields->name.symbol->text, name) == 0)
            found = fields; /* the last one counts; validation refuses two */
    return found;
}

static bool coerce_input_literal(struct coerce *c, const struct ast_value *value,
                                 const struct gql_type *type, struct gql_value *ret)
{
    struct gql_value *items;
    uint32_t given = 0;
    bool null = false;

    if (value->kind != AST_OBJECT)
        return false;
    items = arena_array(c->arena, type->input_count, sizeof(*items));
    for (uint32_t i = 0; i < type->input_count; i++) {
        const struct gql_input_def *def = &type->inputs[i];
        const struct ast_argument *field = coerce_field_named(value->fields, def->name);

        if (!field || coerce_is_missing(c, field->value)) {
            items[i] = def->default_value;
            if (items[i].kind == GQL_ABSENT && gql_ref_is_non_null(def->type))
                return false;
        } else if (!coerce_literal(c, field->value, def->type, &items[i])) {
            return false;
        }
        given += items[i].kind != GQL_ABSENT;
        null |= items[i].kind == GQL_NULL;
    }
    if (type->one_of && (given != 1 || null))
        return false;
    *ret = (struct gql_value){ .kind = GQL_INPUT, .count = type->input_count, .items = items };
    return true;
}

bool coerce_literal(struct coerce *c, const struct ast_value *value, struct gql_ref type,
                    struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf message = STRBUF_INIT;
    bool whole;

    if (value->kind == AST_VARIABLE) {
        if (coerce_is_missing(c, value))
            return false;
        *ret = c->variables[value->symbol->index];
        return !(ret->kind == GQL_NULL && gql_ref_is_non_null(type));
    }
    if (gql_ref_is_non_null(type)) {
        if (value->kind == AST_NULL)
            return false;
        type = gql_ref_inner(type);
    }
    if (value->kind == AST_NULL) {
        *ret = gql_null();
        return true;
    }
    if (gql_ref_is_list(type))
        return coerce_list_literal(c, value, gql_ref_inner(type), ret);
    if (type.type->kind == GQL_TYPE_INPUT)
        return coerce_input_literal(c, value, type.type, ret);
    return coerce_leaf_literal(c, value, type.type, ret, &message, &whole);
}

/* What is said about an argument that has no value; false if there is nothing to say. */
static bool coerce_missing_argument(const struct gql_input_def *def, const struct ast_value *value,
                                    struct strbuf *message)
{
    if (!gql_ref_is_non_null(def->type))
        return false;
    strbuf_addf(message, "Argument \"%s\" of required type \"", def->name);
    gql_ref_print(def->type, message);
    if (value)
        strbuf_addf(message,
                    "\" was provided the variable \"$%s\" which was not provided a runtime value.",
                    value->symbol->text);
    else
        strbuf_adds(message, "\" was not provided.");
    return true;
}

static bool coerce_argument(struct coerce *c, const struct gql_input_def *def,
                            const struct ast_value *value, struct gql_value *ret,
                            struct strbuf *message)
{
    bool is_null;

    if (!value || coerce_is_missing(c, value)) {
        *ret = def->default_value;
        return ret->kind != GQL_ABSENT || !coerce_missing_argument(def, value, message);
    }
    is_null = value->kind == AST_NULL
              || (value->kind == AST_VARIABLE
                  && c->variables[value->symbol->index].kind == GQL_NULL);
    if (is_null && gql_ref_is_non_null(def->type)) {
        strbuf_addf(message, "Argument \"%s\" of non-null type \"", def->name);
        gql_ref_print(def->type, message);
        strbuf_adds(message, "\" must not be null.");
        return false;
    }
    if (coerce_literal(c, value, def->type, ret))
        return true;
    strbuf_addf(message, "Argument \"%s\" has invalid value ", def->name);
    print_value(value, message);
    strbuf_addc(message, '.');
    return false;
}

bool coerce_arguments(struct coerce *c, const struct gql_input_def *defs, uint32_t count,
                      const struct ast_argument *args, uint32_t at, struct gql_value *ret,
                      struct strbuf *message, uint32_t *ret_at)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ast_argument *arg = coerce_field_named(args, defs[i].name);

        if (!coerce_argument(c, &defs[i], arg ? arg->value : NULL, &ret[i], message)) {
            *ret_at = arg ? arg->value->at : at;
            return false;
        }
    }
    return true;
}
