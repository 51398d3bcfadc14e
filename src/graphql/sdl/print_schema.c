/* SPDX-License-Identifier: Apache-2.0 */
/* printSchema() of graphql-js */
#include <stdio.h>

#include "graphql/print.h"

static bool print_schema_is_system(const struct gql_type *type)
{
    return type->name[0] == '_' && type->name[1] == '_';
}

/* Scalars and directives of the language are not printed. */
static bool print_schema_is_standard_scalar(const struct gql_type *type)
{
    return type->scalar >= GQL_SCALAR_INT && type->scalar <= GQL_SCALAR_ID;
}

static bool print_schema_is_standard_directive(const struct gql_directive_def *directive)
{
    static const char *const names[] = { "include", "skip", "deprecated", "specifiedBy", "oneOf" };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (strcmp(directive->name, names[i]) == 0)
            return true;
    return false;
}

/* A description in front of what it describes, every line indented. */
static void print_schema_description(const char *text, const char *indent, bool first,
                                     struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf printed = STRBUF_INIT;

    if (!text)
        return;
    if (print_fits_block_string(text, strlen(text)))
        print_block_string(text, strlen(text), &printed);
    else
        print_string(text, strlen(text), &printed);
    if (*indent && !first)
        strbuf_addc(out, '\n');
    strbuf_adds(out, indent);
    for (size_t i = 0; i < printed.len; i++) {
        strbuf_addc(out, printed.data[i]);
        if (printed.data[i] == '\n')
            strbuf_adds(out, indent);
    }
    strbuf_addc(out, '\n');
}

static void print_schema_deprecated(const char *reason, struct strbuf *out)
{
    if (!reason)
        return;
    strbuf_adds(out, " @deprecated");
    if (strcmp(reason, "No longer supported") == 0)
        return;
    strbuf_adds(out, "(reason: ");
    print_string(reason, strlen(reason), out);
    strbuf_addc(out, ')');
}

static void print_schema_input(const struct gql_input_def *input, struct strbuf *out)
{
    strbuf_addf(out, "%s: ", input->name);
    gql_ref_print(input->type, out);
    if (input->default_text)
        strbuf_addf(out, " = %s", input->default_text);
    print_schema_deprecated(input->deprecated, out);
}

static void print_schema_args(const struct gql_input_def *args, uint32_t count, const char *indent,
                              struct strbuf *out)
{
    char deeper[8];
    bool described = false;

    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        described |= args[i].description && *args[i].description;
    strbuf_addc(out, '(');
    for (uint32_t i = 0; !described && i < count; i++) {
        strbuf_adds(out, i ? ", " : "");
        print_schema_input(&args[i], out);
    }
    (void)snprintf(deeper, sizeof(deeper), "  %s", indent);
    for (uint32_t i = 0; described && i < count; i++) {
        strbuf_addc(out, '\n');
        print_schema_description(args[i].description, deeper, i == 0, out);
        strbuf_adds(out, deeper);
        print_schema_input(&args[i], out);
    }
    if (described)
        strbuf_addf(out, "\n%s", indent);
    strbuf_addc(out, ')');
}

static void print_schema_fields(const struct gql_type *type, struct strbuf *out)
{
    for (uint32_t i = 0; i < type->interface_count; i++)
        strbuf_addf(out, "%s%s", i ? " & " : " implements ", type->interfaces[i]->name);
    strbuf_adds(out, " {\n");
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct gql_field_def *field = &type->fields[i];

        print_schema_description(field->description, "  ", i == 0, out);
        strbuf_addf(out, "  %s", field->name);
        print_schema_args(field->args, field->arg_count, "  ", out);
        strbuf_adds(out, ": ");
        gql_ref_print(field->type, out);
        print_schema_deprecated(field->deprecated, out);
        strbuf_addc(out, '\n');
    }
    strbuf_addc(out, '}');
}

static void print_schema_enum(const struct gql_type *type, struct strbuf *out)
{
    strbuf_adds(out, " {\n");
    for (uint32_t i = 0; i < type->value_count; i++) {
        print_schema_description(type->values[i].description, "  ", i == 0, out);
        strbuf_addf(out, "  %s", type->values[i].name);
        print_schema_deprecated(type->values[i].deprecated, out);
        strbuf_addc(out, '\n');
    }
    strbuf_addc(out, '}');
}

static void print_schema_inputs(const struct gql_type *type, struct strbuf *out)
{
    strbuf_adds(out, type->one_of ? " @oneOf {\n" : " {\n");
    for (uint32_t i = 0; i < type->input_count; i++) {
        print_schema_description(type->inputs[i].description, "  ", i == 0, out);
        strbuf_adds(out, "  ");
        print_schema_input(&type->inputs[i], out);
        strbuf_addc(out, '\n');
    }
    strbuf_addc(out, '}');
}

static void print_schema_type(const struct gql_type *type, struct strbuf *out)
{
    static const char *const words[] = {
        [GQL_TYPE_SCALAR] = "scalar",       [GQL_TYPE_OBJECT] = "type",
        [GQL_TYPE_INTERFACE] = "interface", [GQL_TYPE_UNION] = "union",
        [GQL_TYPE_ENUM] = "enum",           [GQL_TYPE_INPUT] = "input",
    };

    print_schema_description(type->description, "", true, out);
    strbuf_addf(out, "%s %s", words[type->kind], type->name);
    switch ((enum gql_type_kind)type->kind) {
    case GQL_TYPE_SCALAR:
        if (type->specified_by) {
            strbuf_adds(out, " @specifiedBy(url: ");
            print_string(type->specified_by, strlen(type->specified_by), out);
            strbuf_addc(out, ')');
        }
        break;
    case GQL_TYPE_OBJECT:
    case GQL_TYPE_INTERFACE:
        print_schema_fields(type, out);
        break;
    case GQL_TYPE_UNION:
        for (uint32_t i = 0; i < type->possible_count; i++)
            strbuf_addf(out, "%s%s", i ? " | " : " = ", type->possible[i]->name);
        break;
    case GQL_TYPE_ENUM:
        print_schema_enum(type, out);
        break;
    case GQL_TYPE_INPUT:
        print_schema_inputs(type, out);
        break;
    }
}

static void print_schema_directive(const struct gql_directive_def *directive, struct strbuf *out)
{
    print_schema_description(directive->description, "", true, out);
    strbuf_addf(out, "directive @%s", directive->name);
    print_schema_args(directive->args, directive->arg_count, "", out);
    strbuf_adds(out, directive->repeatable ? " repeatable on " : " on ");
    for (uint32_t i = 0; i < directive->location_count; i++)
        strbuf_addf(out, "%s%s", i ? " | " : "", gql_location_names[directive->location_order[i]]);
}

static bool print_schema_is_usual(const struct gql_type *root, const char *name)
{
    return !root || strcmp(root->name, name) == 0;
}

/* Roots with the usual names need no schema definition. */
static void print_schema_roots(const struct gql_schema *schema, struct strbuf *out)
{
    const struct gql_type *roots[] = { schema->query, schema->mutation, schema->subscription };
    static const char *const words[] = { "query", "mutation", "subscription" };

    if (!schema->description && print_schema_is_usual(schema->query, "Query")
        && print_schema_is_usual(schema->mutation, "Mutation")
        && print_schema_is_usual(schema->subscription, "Subscription"))
        return;
    print_schema_description(schema->description, "", true, out);
    strbuf_adds(out, "schema {\n");
    for (int i = 0; i < 3; i++)
        if (roots[i])
            strbuf_addf(out, "  %s: %s\n", words[i], roots[i]->name);
    strbuf_addc(out, '}');
}

static void print_schema_separate(struct strbuf *out, size_t start)
{
    if (out->len > start)
        strbuf_adds(out, "\n\n");
}

void gql_schema_print(const struct gql_schema *schema, struct strbuf *out)
{
    size_t start = out->len;

    print_schema_roots(schema, out);
    for (uint32_t i = 0; i < schema->directive_count; i++) {
        if (print_schema_is_standard_directive(&schema->directives[i]))
            continue;
        print_schema_separate(out, start);
        print_schema_directive(&schema->directives[i], out);
    }
    for (uint32_t i = 0; i < schema->type_count; i++) {
        if (print_schema_is_system(schema->types[i])
            || print_schema_is_standard_scalar(schema->types[i]))
            continue;
        print_schema_separate(out, start);
        print_schema_type(schema->types[i], out);
    }
}
