/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of fields as JSON Schema 2020-12. */
#include "manager/call/field_schema.h"

#include <string.h>

#define UTF8_BYTES_MAX 4 /* of one character: the tables count bytes, schemas characters */

bool field_schema_is_required(const struct field *field)
{
    return (field->flags & (FIELD_REQUIRED | FIELD_FILLED)) == FIELD_REQUIRED;
}

/* One type, or with null: ["string", "null"]. 'other' is a second type or NULL. */
static void field_schema_write_type(const struct field *field, const char *type, const char *other,
                                    struct jsonw *w)
{
    bool is_nullable = field->flags & FIELD_NULLABLE;

    if (!other && !is_nullable) {
        jsonw_member_str(w, "type", type);
        return;
    }
    jsonw_key(w, "type");
    jsonw_array_begin(w);
    jsonw_str(w, type);
    if (other)
        jsonw_str(w, other);
    if (is_nullable)
        jsonw_str(w, "null");
    jsonw_array_end(w);
}

static void field_schema_write_text(const struct field *field, struct jsonw *w)
{
    if (field->min > 0)
        jsonw_member_int(w, "minLength", (field->min + UTF8_BYTES_MAX - 1) / UTF8_BYTES_MAX);
    jsonw_member_int(w, "maxLength", field->max ? field->max : DECODE_TEXT_MAX);
    if (field->flags & FIELD_SECRET)
        jsonw_member_str(w, "format", "password");
}

static void field_schema_write_words(const struct field *field, struct jsonw *w)
{
    const char *second = strchr(field->words, '|') + 1;

    jsonw_key(w, "enum");
    jsonw_array_begin(w);
    jsonw_strn(w, field->words, (size_t)(second - field->words) - 1);
    jsonw_str(w, second);
    if (field->flags & FIELD_NULLABLE)
        jsonw_null(w);
    jsonw_array_end(w);
}

static void field_schema_write_bounds(const struct field *field, struct jsonw *w)
{
    jsonw_member_int(w, "minimum", field->min);
    jsonw_member_int(w, "maximum", field->max);
}

static void field_schema_write_texts(const struct field *field, struct jsonw *w)
{
    jsonw_member_int(w, "maxItems", field->max ? field->max : DECODE_LIST_MAX);
    jsonw_key(w, "items");
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "string");
    jsonw_object_end(w);
}

static void field_schema_write_ports(const struct field *field, struct jsonw *w)
{
    jsonw_member_int(w, "maxItems", DECODE_LIST_MAX);
    jsonw_key(w, "items");
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "integer");
    field_schema_write_bounds(field, w);
    jsonw_object_end(w);
}

static void field_schema_write_pairs(const struct field *field, struct jsonw *w)
{
    jsonw_member_int(w, "maxProperties", field->max);
    jsonw_key(w, "additionalProperties");
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "string");
    jsonw_object_end(w);
}

static void field_schema_write_kind(const struct field *field, struct jsonw *w);

/* "properties" and what else an object of these fields has, within a schema that was begun. */
static void field_schema_write_members(const struct field *table, struct jsonw *w)
{
    bool has_required = false;

    jsonw_key(w, "properties");
    jsonw_object_begin(w);
    for (const struct field *field = table; field && field->names; field++) {
        jsonw_keyn(w, field->names, strcspn(field->names, "|"));
        jsonw_object_begin(w);
        field_schema_write_kind(field, w);
        field_schema_write_notes(field, w);
        jsonw_object_end(w);
        has_required = has_required || field_schema_is_required(field);
    }
    jsonw_object_end(w);
    jsonw_member_bool(w, "additionalProperties", false);
    if (!has_required)
        return;
    jsonw_key(w, "required");
    jsonw_array_begin(w);
    for (const struct field *field = table; field->names; field++)
        if (field_schema_is_required(field))
            jsonw_strn(w, field->names, strcspn(field->names, "|"));
    jsonw_array_end(w);
}

static void field_schema_write_kind(const struct field *field, struct jsonw *w)
{
    static const char empty[] = "[null,false,0,\"\",[],{}]";
    static const char *const types[] = {
        [FIELD_STR] = "string",      [FIELD_SCALAR] = "string",    [FIELD_WORD] = "string",
        [FIELD_BOOL] = "boolean",    [FIELD_MAYBE] = "boolean",    [FIELD_INT] = "integer",
        [FIELD_DURATION] = "number", [FIELD_UUID] = "string",      [FIELD_STR_LIST] = "array",
        [FIELD_PORT_LIST] = "array", [FIELD_PAIRS] = "object",     [FIELD_OBJECT] = "object",
        [FIELD_STRUCT] = "object",   [FIELD_TEXT] = "string",      [FIELD_INT32] = "integer",
        [FIELD_SLOTS] = "object",    [FIELD_JSON_TEXT] = "object", [FIELD_USEC] = "integer",
        [FIELD_SIZE] = "string",     [FIELD_UNSUPPORTED] = NULL,
    };
    const char *other = field->type == FIELD_SCALAR     ? "integer"
                        : field->type == FIELD_DURATION ? "string"
                                                        : NULL;

    if (types[field->type])
        field_schema_write_type(field, types[field->type], other, w);
    if (field->type == FIELD_STR || field->type == FIELD_SCALAR || field->type == FIELD_TEXT
        || field->type == FIELD_SIZE)
        field_schema_write_text(field, w);
    else if (field->type == FIELD_WORD)
        field_schema_write_words(field, w);
    else if (field->type == FIELD_INT || field->type == FIELD_INT32 || field->type == FIELD_USEC
             || field->type == FIELD_DURATION)
        field_schema_write_bounds(field, w); /* schemas do not compare a duration that is text */
    else if (field->type == FIELD_UUID)
        jsonw_member_str(w, "format", "uuid");
    else if (field->type == FIELD_STR_LIST)
        field_schema_write_texts(field, w);
    else if (field->type == FIELD_PORT_LIST)
        field_schema_write_ports(field, w);
    else if (field->type == FIELD_PAIRS)
        field_schema_write_pairs(field, w);
    else if (field->type == FIELD_STRUCT)
        field_schema_write_members(field->sub, w);
    else if (field->type == FIELD_UNSUPPORTED) {
        jsonw_key(w, "enum");
        jsonw_raw(w, empty, sizeof(empty) - 1);
    }
}

void field_schema_write_notes(const struct field *field, struct jsonw *w)
{
    bool is_ignored = field->type == FIELD_IGNORED && !field->doc;
    const char *text = field->doc;
    size_t len = strcspn(field->names, "|");

    if (is_ignored)
        text = "accepted from clients that send it, and ignored";
    else if (field->type == FIELD_UNSUPPORTED)
        text = "not supported: only an empty value is accepted";
    if (text)
        jsonw_member_str(w, "description", text);
    if (is_ignored || field->type == FIELD_UNSUPPORTED)
        jsonw_member_bool(w, "deprecated", true);
    if (!field->names[len])
        return;
    jsonw_key(w, "x-aliases");
    jsonw_array_begin(w);
    for (const char *name = field->names + len; *name == '|'; name += len) {
        name++;
        len = strcspn(name, "|");
        jsonw_strn(w, name, len);
    }
    jsonw_array_end(w);
}

void field_schema_write_value(const struct field *field, struct jsonw *w)
{
    jsonw_object_begin(w);
    field_schema_write_kind(field, w);
    jsonw_object_end(w);
}

void field_schema_write_object(const struct field *table, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "object");
    field_schema_write_members(table, w);
    jsonw_object_end(w);
}
