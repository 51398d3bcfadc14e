/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, from JSON. */
#include <math.h>

#include "graphql/coerce.h"
#include "graphql/number.h"
#include "graphql/hint.h"

/* After so many errors the rest is not looked at. */
#define VARIABLE_ERRORS_MAX 50
#define TEXT_SHOWN_MAX 1024

struct coerce_json_reader {
    struct coerce *coerce;
    struct errors *errors;
    const struct ast_variable *variable;
    bool stopped;
};

static void coerce_json_show(const json_t *json, unsigned depth, struct strbuf *out);

static void coerce_json_show_object(const json_t *json, unsigned depth, struct strbuf *out)
{
    const char *key, *before = "{ ";
    json_t *member;

    if (json_object_size(json) == 0) {
        strbuf_adds(out, "{}");
        return;
    }
    if (depth > 1) {
        strbuf_adds(out, "[Object]");
        return;
    }
    json_object_foreach((json_t *)json, key, member) {
        strbuf_addf(out, "%s%s: ", before, key);
        coerce_json_show(member, depth + 1, out);
        before = ", ";
    }
    strbuf_adds(out, " }");
}

static void coerce_json_show_array(const json_t *json, unsigned depth, struct strbuf *out)
{
    size_t size = json_array_size(json);

    if (size > 0 && depth > 1) {
        strbuf_adds(out, "[Array]");
        return;
    }
    strbuf_addc(out, '[');
    for (size_t i = 0; i < AQ_MIN(size, (size_t)10); i++) {
        strbuf_adds(out, i ? ", " : "");
        coerce_json_show(json_array_get(json, i), depth + 1, out);
    }
    if (size == 11)
        strbuf_adds(out, ", ... 1 more item");
    else if (size > 11)
        strbuf_addf(out, ", ... %zu more items", size - 10);
    strbuf_addc(out, ']');
}

/* Of a long text the beginning: what is said after it would be cut off. */
static void coerce_json_show_text(const json_t *json, struct strbuf *out)
{
    const char *text = json_string_value(json);
    size_t len = json_string_length(json), shown = AQ_MIN(len, (size_t)TEXT_SHOWN_MAX);
    struct jsonw w = jsonw_make(out);

    while (shown < len && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    jsonw_strn(&w, text, shown);
    if (shown < len)
        strbuf_addf(out, "... %zu more bytes", len - shown);
}

/* A value in a message, as graphql-js's inspect() shows it: two levels deep,
 * ten elements wide.
 */
static void coerce_json_show(const json_t *json, unsigned depth, struct strbuf *out)
{
    char number[NUMBER_TEXT_MAX];
    struct jsonw w = jsonw_make(out);

    if (out->len > MESSAGE_MAX)
        return; /* it is cut there anyway */
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        coerce_json_show_object(json, depth, out);
        break;
    case JSON_ARRAY:
        coerce_json_show_array(json, depth, out);
        break;
    case JSON_STRING:
        coerce_json_show_text(json, out);
        break;
    case JSON_REAL:
        strbuf_adds(out, number_format(json_real_value(json), number));
        break;
    case JSON_INTEGER:
        jsonw_int(&w, json_integer_value(json));
        break;
    default:
        strbuf_adds(out, json_is_true(json) ? "true" : json_is_false(json) ? "false" : "null");
        break;
    }
}

static void coerce_json_show_path(const struct path *path, struct strbuf *out)
{
    if (!path)
        return;
    coerce_json_show_path(path->parent, out);
    if (path->key)
        strbuf_addf(out, ".%s", path->key);
    else
        strbuf_addf(out, "[%u]", path->index);
}

/* An error about a variable as a whole. */
static void coerce_json_report(struct coerce_json_reader *r, uint32_t at, const struct strbuf *text)
{
    if (r->stopped)
        return;
    if (r->errors->count >= VARIABLE_ERRORS_MAX) {
        r->stopped = true;
        (void)errors_add(r->errors, UINT32_MAX,
                         "Too many errors processing variables, error limit reached. Execution "
                         "aborted.");
        return;
    }
    (void)errors_add_text(r->errors, at, text);
}

/* 'Variable "$x" got invalid value V at "x.path"; problem' */
static bool coerce_json_invalid(struct coerce_json_reader *r, const struct path *path,
                                const json_t *json, const char *problem)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Variable \"$%s\" got invalid value ", r->variable->name.symbol->text);
    coerce_json_show(json, 0, &text);
    if (path) {
        strbuf_addf(&text, " at \"%s", r->variable->name.symbol->text);
        coerce_json_show_path(path, &text);
        strbuf_addc(&text, '"');
    }
    strbuf_addf(&text, "; %s", problem);
    coerce_json_report(r, r->variable->at, &text);
    return false;
}

static bool coerce_json_invalid_shown(struct coerce_json_reader *r, const struct path *path,
                                      const json_t *json, const char *problem)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, problem);
    coerce_json_show(json, 0, &text);
    return coerce_json_invalid(r, path, json, text.data);
}

static struct gql_value coerce_json_copy_text(struct coerce_json_reader *r, const char *text,
                                              size_t len)
{
    return gql_textn(arena_strndup(r->coerce->arena, text, len), len);
}

static struct gql_value coerce_json_any(struct coerce_json_reader *r, const json_t *json);

static struct gql_value coerce_json_any_list(struct coerce_json_reader *r, const json_t *json)
{
    size_t count = json_array_size(json);
    struct gql_value *items;

    if (!arena_has_room(r->coerce->arena, count, sizeof(*items)))
        return gql_null();
    items = arena_array(r->coerce->arena, count, sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = coerce_json_any(r, json_array_get(json, i));
    return gql_list(items, (uint32_t)count);
}

static struct gql_value coerce_json_any_map(struct coerce_json_reader *r, const json_t *json)
{
    size_t count = json_object_size(json), i = 0;
    struct gql_member *members;
    const char *key;
    json_t *member;

    if (!arena_has_room(r->coerce->arena, count, sizeof(*members)))
        return gql_null();
    members = arena_array(r->coerce->arena, count, sizeof(*members));
    json_object_foreach((json_t *)json, key, member) {
        members[i].name = arena_strdup(r->coerce->arena, key);
        members[i].value = coerce_json_any(r, member);
        i++;
    }
    return (struct gql_value){ .kind = GQL_MAP, .count = (uint32_t)count, .members = members };
}

static struct gql_value coerce_json_any(struct coerce_json_reader *r, const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return coerce_json_any_map(r, json);
    case JSON_ARRAY:
        return coerce_json_any_list(r, json);
    case JSON_STRING:
        return coerce_json_copy_text(r, json_string_value(json), json_string_length(json));
    case JSON_INTEGER:
        return gql_int(json_integer_value(json));
    case JSON_REAL:
        return gql_float(json_real_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return gql_bool(json_is_true(json));
    default:
        return gql_null();
    }
}

static bool coerce_json_read_enum(struct coerce_json_reader *r, const json_t *json,
                                  const struct gql_type *type, const struct path *path,
                                  struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT, text = STRBUF_INIT;
    struct hint hint;

    if (json_is_string(json)) {
        for (uint32_t i = 0; i < type->value_count; i++) {
            if (strcmp(type->values[i].name, json_string_value(json)) == 0) {
                *ret = gql_enum(i);
                return true;
            }
        }
        strbuf_add(&shown, json_string_value(json), json_string_length(json));
        strbuf_addf(&text, "Value \"%s\" does not exist in \"%s\" enum.", shown.data, type->name);
    } else {
        coerce_json_show(json, 0, &shown);
        strbuf_addf(&text, "Enum \"%s\" cannot represent non-string value: %s.", type->name,
                    shown.data);
    }
    hint = hint_make(shown.data, shown.len);
    for (uint32_t i = 0; i < type->value_count; i++)
        hint_offer(&hint, type->values[i].name);
    hint_print(&hint, "the enum value", &text);
    return coerce_json_invalid(r, path, json, text.data);
}

static bool coerce_json_read_int(struct coerce_json_reader *r, const json_t *json,
                                 const struct path *path, struct gql_value *ret)
{
    int64_t whole = json_integer_value(json);
    bool is_whole = json_is_integer(json)
                    || (json_is_real(json) && number_is_integer(json_real_value(json), &whole));

    if (!is_whole && !(json_is_real(json) && floor(json_real_value(json)) == json_real_value(json)))
        return coerce_json_invalid_shown(r, path, json, "Int cannot represent non-integer value: ");
    if (!is_whole || whole > INT32_MAX || whole < INT32_MIN)
        return coerce_json_invalid_shown(r, path, json,
                                         "Int cannot represent non 32-bit signed integer value: ");
    *ret = gql_int(whole);
    return true;
}

static bool coerce_json_read_id(struct coerce_json_reader *r, const json_t *json,
                                const struct path *path, struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_is_string(json)) {
        *ret = coerce_json_copy_text(r, json_string_value(json), json_string_length(json));
        return true;
    }
    if (!json_is_integer(json)
        && !(json_is_real(json) && floor(json_real_value(json)) == json_real_value(json)))
        return coerce_json_invalid_shown(r, path, json, "ID cannot represent value: ");
    coerce_json_show(json, 0, &text);
    *ret = coerce_json_copy_text(r, text.data, text.len);
    return true;
}

static bool coerce_json_read_custom(struct coerce_json_reader *r, const json_t *json,
                                    const struct gql_type *type, const struct path *path,
                                    struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct coerce *c = r->coerce;
    gql_scalar_fn parse = c->scalars[type->id - 1];
    struct gql_value in = coerce_json_any(r, json);
    const char *problem = NULL;

    if (parse)
        problem = parse(c->arena, &in, ret);
    else
        *ret = in;
    if (!problem)
        return true;
    strbuf_addf(&text, "Expected type \"%s\". %s", type->name, problem);
    return coerce_json_invalid(r, path, json, text.data);
}

static bool coerce_json_read_leaf(struct coerce_json_reader *r, const json_t *json,
                                  const struct gql_type *type, const struct path *path,
                                  struct gql_value *ret)
{
    if (type->kind == GQL_TYPE_ENUM)
        return coerce_json_read_enum(r, json, type, path, ret);
    switch ((enum gql_scalar_kind)type->scalar) {
    case GQL_SCALAR_INT:
        return coerce_json_read_int(r, json, path, ret);
    case GQL_SCALAR_FLOAT:
        if (!json_is_number(json))
            return coerce_json_invalid_shown(r, path, json,
                                             "Float cannot represent non numeric value: ");
        *ret = gql_float(json_number_value(json));
        return true;
    case GQL_SCALAR_STRING:
        if (!json_is_string(json))
            return coerce_json_invalid_shown(r, path, json,
                                             "String cannot represent a non string value: ");
        *ret = coerce_json_copy_text(r, json_string_value(json), json_string_length(json));
        return true;
    case GQL_SCALAR_BOOLEAN:
        if (!json_is_boolean(json))
            return coerce_json_invalid_shown(r, path, json,
                                             "Boolean cannot represent a non boolean value: ");
        *ret = gql_bool(json_is_true(json));
        return true;
    case GQL_SCALAR_ID:
        return coerce_json_read_id(r, json, path, ret);
    default:
        return coerce_json_read_custom(r, json, type, path, ret);
    }
}

static bool coerce_json_read_value(struct coerce_json_reader *r, const json_t *json,
                                   struct gql_ref type, const struct path *path,
                                   struct gql_value *ret);

static bool coerce_json_read_list(struct coerce_json_reader *r, const json_t *json,
                                  struct gql_ref item, const struct path *path,
                                  struct gql_value *ret)
{
    bool single = !json_is_array(json), ok = true;
    size_t count = single ? 1 : json_array_size(json);
    struct gql_value *items;

    if (!arena_has_room(r->coerce->arena, count, sizeof(*items)))
        return !(r->stopped = true);
    items = arena_array(r->coerce->arena, count, sizeof(*items));
    *ret = gql_list(items, (uint32_t)count);
    if (single)
        return coerce_json_read_value(r, json, item, path, &items[0]);
    for (size_t i = 0; i < count && !r->stopped; i++) {
        struct path step = { path, NULL, (uint32_t)i };

        ok &= coerce_json_read_value(r, json_array_get(json, i), item, &step, &items[i]);
    }
    return ok;
}

/* Members that the type does not have. */
static bool coerce_json_refuse_unknown(struct coerce_json_reader *r, const json_t *json,
                                       const struct gql_type *type, const struct path *path)
{
    const char *key;
    json_t *member;
    bool ok = true;

    json_object_foreach((json_t *)json, key, member) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        if (r->stopped || gql_input_find(type->inputs, type->input_count, key, strlen(key)))
            continue;
        strbuf_addf(&text, "Field \"%s\" is not defined by type \"%s\".", key, type->name);
        hint_print_inputs(key, strlen(key), type->inputs, type->input_count, &text);
        ok = coerce_json_invalid(r, path, json, text.data);
    }
    return ok;
}

static bool coerce_json_read_field(struct coerce_json_reader *r, const json_t *json,
                                   const struct gql_input_def *def, const struct path *path,
                                   struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const json_t *member = json_object_get(json, def->name);
    struct path step = { path, def->name, 0 };

    if (member)
        return coerce_json_read_value(r, member, def->type, &step, ret);
    *ret = def->default_value;
    if (ret->kind != GQL_ABSENT || !gql_ref_is_non_null(def->type))
        return true;
    strbuf_addf(&text, "Field \"%s\" of required type \"", def->name);
    gql_ref_print(def->type, &text);
    strbuf_adds(&text, "\" was not provided.");
    return coerce_json_invalid(r, path, json, text.data);
}

static bool coerce_json_check_one_of(struct coerce_json_reader *r, const json_t *json,
                                     const struct gql_type *type, const struct gql_value *items,
                                     const struct path *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    uint32_t given = 0, first = 0;
    bool ok = true;

    for (uint32_t i = type->input_count; i-- > 0;) {
        if (items[i].kind != GQL_ABSENT) {
            given++;
            first = i;
        }
    }
    if (given != 1) {
        strbuf_addf(&text, "Exactly one key must be specified for OneOf type \"%s\".", type->name);
        ok = coerce_json_invalid(r, path, json, text.data);
    }
    if (given > 0 && items[first].kind == GQL_NULL) {
        struct path step = { path, type->inputs[first].name, 0 };
        json_t *null = json_null();

        strbuf_clear(&text);
        strbuf_addf(&text, "Field \"%s\" must be non-null.", type->inputs[first].name);
        ok = coerce_json_invalid(r, &step, null, text.data);
    }
    return ok;
}

static bool coerce_json_read_input(struct coerce_json_reader *r, const json_t *json,
                                   const struct gql_type *type, const struct path *path,
                                   struct gql_value *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct gql_value *items;
    bool ok = true;

    if (!json_is_object(json)) {
        strbuf_addf(&text, "Expected type \"%s\" to be an object.", type->name);
        return coerce_json_invalid(r, path, json, text.data);
    }
    if (!arena_has_room(r->coerce->arena, type->input_count, sizeof(*items)))
        return !(r->stopped = true);
    items = arena_array(r->coerce->arena, type->input_count, sizeof(*items));
    for (uint32_t i = 0; i < type->input_count && !r->stopped; i++)
        ok &= coerce_json_read_field(r, json, &type->inputs[i], path, &items[i]);
    ok &= coerce_json_refuse_unknown(r, json, type, path);
    if (type->one_of)
        ok &= coerce_json_check_one_of(r, json, type, items, path);
    *ret = (struct gql_value){ .kind = GQL_INPUT, .count = type->input_count, .items = items };
    return ok;
}

static bool coerce_json_read_value(struct coerce_json_reader *r, const json_t *json,
                                   struct gql_ref type, const struct path *path,
                                   struct gql_value *ret)
{
    if (gql_ref_is_non_null(type)) {
        if (json_is_null(json)) {
            AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

            strbuf_adds(&text, "Expected non-nullable type \"");
            gql_ref_print(type, &text);
            strbuf_adds(&text, "\" not to be null.");
            return coerce_json_invalid(r, path, json, text.data);
        }
        type = gql_ref_inner(type);
    }
    if (json_is_null(json)) {
        *ret = gql_null();
        return true;
    }
    if (gql_ref_is_list(type))
        return coerce_json_read_list(r, json, gql_ref_inner(type), path, ret);
    if (type.type->kind == GQL_TYPE_INPUT)
        return coerce_json_read_input(r, json, type.type, path, ret);
    return coerce_json_read_leaf(r, json, type.type, path, ret);
}

static void coerce_json_refuse_variable(struct coerce_json_reader *r, const char *prefix,
                                        const char *suffix)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Variable \"$%s\" of %s type \"", r->variable->name.symbol->text, prefix);
    gql_ref_print(r->variable->ref, &text);
    strbuf_addf(&text, "\" %s.", suffix);
    coerce_json_report(r, r->variable->at, &text);
}

void coerce_variables(struct coerce *c, const struct ast_variable *variables, const json_t *json,
                      struct gql_value *values, struct errors *errors)
{
    struct coerce_json_reader r = { .coerce = c, .errors = errors };

    for (const struct ast_variable *v = variables; v && !r.stopped; v = v->next) {
        struct gql_value *ret = &values[v->name.symbol->index];
        const json_t *given = json_object_get(json, v->name.symbol->text);

        r.variable = v;
        if (!given && v->default_value) {
            if (!coerce_literal(c, v->default_value, v->ref, ret))
                *ret = (struct gql_value){ .kind = GQL_ABSENT };
        } else if (!given && gql_ref_is_non_null(v->ref)) {
            coerce_json_refuse_variable(&r, "required", "was not provided");
        } else if (given && json_is_null(given) && gql_ref_is_non_null(v->ref)) {
            coerce_json_refuse_variable(&r, "non-null", "must not be null");
        } else if (given) {
            (void)coerce_json_read_value(&r, given, v->ref, NULL, ret);
        }
    }
}
