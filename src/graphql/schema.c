/* SPDX-License-Identifier: Apache-2.0 */
/* Looks types, fields and directives up in a schema. */
#include "graphql/schema.h"

static int schema_compare_name(const char *have, const char *name, size_t len)
{
    int r = strncmp(have, name, len);

    return r ? r : have[len] != '\0';
}

const struct gql_type *gql_type_find(const struct gql_schema *schema, const char *name, size_t len)
{
    uint32_t low = 0, high = schema->type_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct gql_type *type = schema->types[schema->types_by_name[middle]];
        int r = schema_compare_name(type->name, name, len);

        if (r == 0)
            return type;
        if (r < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct gql_field_def *gql_field_find(const struct gql_type *type, const char *name,
                                           size_t len)
{
    uint32_t low = 0, high = type->field_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct gql_field_def *field = &type->fields[type->fields_by_name[middle]];
        int r = schema_compare_name(field->name, name, len);

        if (r == 0)
            return field;
        if (r < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct gql_input_def *gql_input_find(const struct gql_input_def *defs, uint32_t count,
                                           const char *name, size_t len)
{
    for (uint32_t i = 0; i < count; i++)
        if (schema_compare_name(defs[i].name, name, len) == 0)
            return &defs[i];
    return NULL;
}

const struct gql_directive_def *gql_directive_find(const struct gql_schema *schema,
                                                   const char *name, size_t len)
{
    for (uint32_t i = 0; i < schema->directive_count; i++)
        if (schema_compare_name(schema->directives[i].name, name, len) == 0)
            return &schema->directives[i];
    return NULL;
}

bool gql_type_is_subtype(const struct gql_type *other, const struct gql_type *type)
{
    if (other == type)
        return true;
    if (type->kind == GQL_TYPE_INTERFACE && other->kind == GQL_TYPE_INTERFACE) {
        for (uint32_t i = 0; i < other->interface_count; i++)
            if (other->interfaces[i] == type)
                return true;
        return false;
    }
    for (uint32_t i = 0; i < type->possible_count; i++)
        if (type->possible[i] == other)
            return true;
    return false;
}

void gql_ref_print(struct gql_ref ref, struct strbuf *out)
{
    if (ref.wraps == 0) {
        strbuf_adds(out, ref.type->name);
    } else if (gql_ref_is_list(ref)) {
        strbuf_addc(out, '[');
        gql_ref_print(gql_ref_inner(ref), out);
        strbuf_addc(out, ']');
    } else {
        gql_ref_print(gql_ref_inner(ref), out);
        strbuf_addc(out, '!');
    }
}
