/* SPDX-License-Identifier: Apache-2.0 */
/* graphql-compile - schema text into C tables
 *
 *     graphql-compile NAME.graphql NAME.h NAME.c
 *
 * NAME.h declares 'NAME_schema' and names for everything that resolvers need:
 * NAME_TYPE_<type> (type ids), NAME_FIELD_<type>_<field> (indices into the
 * resolver table) and NAME_FIELD_COUNT, NAME_ARG_<type>_<field>_<argument>
 * (into struct gql_call.args), NAME_INPUT_<type>_<field> (into the items of an
 * input object) and NAME_VALUE_<enum>_<value>.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/fs.h"
#include "graphql/schema.h"

struct output {
    const struct gql_schema *schema;
    struct strbuf text;
    char name[128], upper[128];
};

static void add_string(struct strbuf *out, const char *text)
{
    if (!text) {
        strbuf_adds(out, "NULL");
        return;
    }
    strbuf_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\' || *p == '?')
            strbuf_addf(out, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            strbuf_addf(out, "\\%03o", *p);
        else
            strbuf_addc(out, (char)*p);
    }
    strbuf_addc(out, '"');
}

static void add_ref(struct strbuf *out, struct gql_ref ref)
{
    strbuf_addf(out, "{ &types[%u], %#x }", ref.type->id - 1, ref.wraps);
}

static void add_value(struct strbuf *out, struct gql_value value);

static void add_items(struct strbuf *out, struct gql_value value)
{
    strbuf_adds(out, ".items = (const struct gql_value[]){ ");
    for (uint32_t i = 0; i < value.count; i++) {
        add_value(out, value.items[i]);
        strbuf_adds(out, ", ");
    }
    strbuf_adds(out, value.count ? "}" : "{ .kind = GQL_NULL } }");
}

static void add_members(struct strbuf *out, struct gql_value value)
{
    strbuf_adds(out, ".members = (const struct gql_member[]){ ");
    for (uint32_t i = 0; i < value.count; i++) {
        strbuf_adds(out, "{ ");
        add_string(out, value.members[i].name);
        strbuf_adds(out, ", ");
        add_value(out, value.members[i].value);
        strbuf_adds(out, " }, ");
    }
    strbuf_adds(out, value.count ? "}" : "{ .name = NULL } }");
}

static void add_value(struct strbuf *out, struct gql_value value)
{
    strbuf_addf(out, "{ .kind = %u, .count = %u", value.kind, value.count);
    switch ((enum gql_kind)value.kind) {
    case GQL_BOOL:
        strbuf_addf(out, ", .boolean = %d", value.boolean);
        break;
    case GQL_INT:
    case GQL_ENUM:
        if (value.integer == INT64_MIN)
            strbuf_adds(out, ", .integer = INT64_MIN");
        else
            strbuf_addf(out, ", .integer = INT64_C(%lld)", (long long)value.integer);
        break;
    case GQL_FLOAT:
        strbuf_addf(out, ", .real = %.17g", value.real);
        break;
    case GQL_STRING:
        strbuf_adds(out, ", .text = ");
        add_string(out, value.text);
        break;
    case GQL_LIST:
    case GQL_INPUT:
        strbuf_adds(out, ", ");
        add_items(out, value);
        break;
    case GQL_MAP:
        strbuf_adds(out, ", ");
        add_members(out, value);
        break;
    default:
        break;
    }
    strbuf_adds(out, " }");
}

static void add_inputs(struct strbuf *out, const struct gql_input_def *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        strbuf_adds(out, "    { ");
        add_string(out, inputs[i].name);
        strbuf_adds(out, ", ");
        add_string(out, inputs[i].description);
        strbuf_adds(out, ", ");
        add_string(out, inputs[i].deprecated);
        strbuf_adds(out, ", ");
        add_ref(out, inputs[i].type);
        strbuf_adds(out, ", ");
        add_value(out, inputs[i].default_value);
        strbuf_adds(out, ", ");
        add_string(out, inputs[i].default_text);
        strbuf_adds(out, " },\n");
    }
}

static void add_input_array(struct strbuf *out, const char *name, unsigned a, unsigned b,
                            const struct gql_input_def *inputs, uint32_t count)
{
    if (count == 0)
        return;
    strbuf_addf(out, "static const struct gql_input_def %s_%u_%u[] = {\n", name, a, b);
    add_inputs(out, inputs, count);
    strbuf_adds(out, "};\n");
}

static void add_field(struct strbuf *out, const struct gql_field_def *field, unsigned type,
                      unsigned index)
{
    strbuf_adds(out, "    { ");
    add_string(out, field->name);
    strbuf_adds(out, ", ");
    add_string(out, field->description);
    strbuf_adds(out, ", ");
    add_string(out, field->deprecated);
    if (field->parent)
        strbuf_addf(out, ", &types[%u], ", field->parent->id - 1);
    else
        strbuf_adds(out, ", NULL, ");
    add_ref(out, field->type);
    if (field->arg_count)
        strbuf_addf(out, ", args_%u_%u, %u", type, index, field->arg_count);
    else
        strbuf_adds(out, ", NULL, 0");
    strbuf_addf(out, ", %u },\n", field->id);
}

static void add_positions(struct strbuf *out, const char *name, const uint16_t *positions,
                          uint32_t count)
{
    strbuf_addf(out, "static const uint16_t %s[] = { ", name);
    for (uint32_t i = 0; i < count; i++)
        strbuf_addf(out, "%u, ", positions[i]);
    strbuf_adds(out, "};\n");
}

static void add_fields(struct strbuf *out, const struct gql_type *type, unsigned id)
{
    char name[32];

    if (type->field_count == 0)
        return;
    for (uint32_t i = 0; i < type->field_count; i++)
        add_input_array(out, "args", id, i, type->fields[i].args, type->fields[i].arg_count);
    strbuf_addf(out, "static const struct gql_field_def fields_%u[] = {\n", id);
    for (uint32_t i = 0; i < type->field_count; i++)
        add_field(out, &type->fields[i], id, i);
    strbuf_adds(out, "};\n");
    (void)snprintf(name, sizeof(name), "by_name_%u", id);
    add_positions(out, name, type->fields_by_name, type->field_count);
}

static void add_pointers(struct strbuf *out, const char *name, unsigned id,
                         const struct gql_type *const *types, uint32_t count)
{
    if (count == 0)
        return;
    strbuf_addf(out, "static const struct gql_type *const %s_%u[] = { ", name, id);
    for (uint32_t i = 0; i < count; i++)
        strbuf_addf(out, "&types[%u], ", types[i]->id - 1);
    strbuf_adds(out, "};\n");
}

static void add_enum_values(struct strbuf *out, const struct gql_type *type, unsigned id)
{
    if (type->value_count == 0)
        return;
    strbuf_addf(out, "static const struct gql_enum_def values_%u[] = {\n", id);
    for (uint32_t i = 0; i < type->value_count; i++) {
        strbuf_adds(out, "    { ");
        add_string(out, type->values[i].name);
        strbuf_adds(out, ", ");
        add_string(out, type->values[i].description);
        strbuf_adds(out, ", ");
        add_string(out, type->values[i].deprecated);
        strbuf_adds(out, " },\n");
    }
    strbuf_adds(out, "};\n");
}

/* "name_id, count" or "NULL, 0" */
static void add_array(struct strbuf *out, const char *member, const char *count_member,
                      const char *name, const char *suffix, unsigned id, uint32_t count)
{
    if (count)
        strbuf_addf(out, "      .%s = %s_%u%s, .%s = %u,\n", member, name, id, suffix, count_member,
                    count);
}

static void add_type(struct strbuf *out, const struct gql_type *type, unsigned id)
{
    strbuf_addf(out, "    { .kind = %u, .scalar = %u, .one_of = %d, .id = %u, .name = ", type->kind,
                type->scalar, type->one_of, type->id);
    add_string(out, type->name);
    strbuf_adds(out, ",\n      .description = ");
    add_string(out, type->description);
    strbuf_adds(out, ",\n      .specified_by = ");
    add_string(out, type->specified_by);
    strbuf_adds(out, ",\n");
    add_array(out, "fields", "field_count", "fields", "", id, type->field_count);
    if (type->field_count)
        strbuf_addf(out, "      .fields_by_name = by_name_%u,\n", id);
    add_array(out, "inputs", "input_count", "inputs", "_0", id, type->input_count);
    add_array(out, "values", "value_count", "values", "", id, type->value_count);
    add_array(out, "interfaces", "interface_count", "interfaces", "", id, type->interface_count);
    add_array(out, "possible", "possible_count", "possible", "", id, type->possible_count);
    strbuf_adds(out, "    },\n");
}

static void add_types(struct strbuf *out, const struct gql_schema *schema)
{
    strbuf_addf(out, "static const struct gql_type types[%u];\n", schema->type_count);
    for (uint32_t i = 0; i < schema->type_count; i++) {
        const struct gql_type *type = schema->types[i];

        add_fields(out, type, i);
        add_input_array(out, "inputs", i, 0, type->inputs, type->input_count);
        add_enum_values(out, type, i);
        add_pointers(out, "interfaces", i, type->interfaces, type->interface_count);
        add_pointers(out, "possible", i, type->possible, type->possible_count);
    }
    strbuf_addf(out, "static const struct gql_type types[%u] = {\n", schema->type_count);
    for (uint32_t i = 0; i < schema->type_count; i++)
        add_type(out, schema->types[i], i);
    strbuf_adds(out, "};\n");
    add_pointers(out, "all", 0, schema->types, schema->type_count);
    add_positions(out, "by_name", schema->types_by_name, schema->type_count);
}

static void add_directives(struct strbuf *out, const struct gql_schema *schema)
{
    unsigned id = schema->type_count + 1;

    for (uint32_t i = 0; i < schema->directive_count; i++) {
        const struct gql_directive_def *d = &schema->directives[i];

        add_input_array(out, "args", id, i, d->args, d->arg_count);
        strbuf_addf(out, "static const uint8_t locations_%u[] = { ", i);
        for (uint32_t n = 0; n < d->location_count; n++)
            strbuf_addf(out, "%u, ", d->location_order[n]);
        strbuf_adds(out, "};\n");
    }
    strbuf_adds(out, "static const struct gql_directive_def directives[] = {\n");
    for (uint32_t i = 0; i < schema->directive_count; i++) {
        const struct gql_directive_def *d = &schema->directives[i];

        strbuf_adds(out, "    { .name = ");
        add_string(out, d->name);
        strbuf_adds(out, ", .description = ");
        add_string(out, d->description);
        if (d->arg_count)
            strbuf_addf(out, ", .args = args_%u_%u, .arg_count = %u", id, i, d->arg_count);
        strbuf_addf(out,
                    ", .locations = %#x, .location_order = locations_%u, .location_count = %u, "
                    ".repeatable = %d },\n",
                    d->locations, i, d->location_count, d->repeatable);
    }
    strbuf_adds(out, "};\n");
}

static void add_meta(struct strbuf *out, const struct gql_schema *schema)
{
    for (uint32_t i = 0; i < GQL_META_COUNT; i++)
        add_input_array(out, "args", schema->type_count, i, schema->meta[i].args,
                        schema->meta[i].arg_count);
    strbuf_adds(out, "static const struct gql_field_def meta[] = {\n");
    for (uint32_t i = 0; i < GQL_META_COUNT; i++)
        add_field(out, &schema->meta[i], schema->type_count, i);
    strbuf_adds(out, "};\n");
}

static void add_root(struct strbuf *out, const char *name, const struct gql_type *type)
{
    if (type)
        strbuf_addf(out, "    .%s = &types[%u],\n", name, type->id - 1);
}

static void write_tables(struct output *o)
{
    const struct gql_schema *schema = o->schema;
    struct strbuf *out = &o->text;

    strbuf_addf(out, "/* Made from %s.graphql. */\n#include \"%s.h\"\n\n", o->name, o->name);
    add_types(out, schema);
    add_directives(out, schema);
    add_meta(out, schema);
    strbuf_addf(out, "const struct gql_schema %s_schema = {\n    .description = ", o->name);
    add_string(out, schema->description);
    strbuf_addf(out,
                ",\n    .types = all_0,\n    .types_by_name = by_name,\n    .type_count = %u,\n"
                "    .directives = directives,\n    .directive_count = %u,\n    .meta = meta,\n"
                "    .field_count = %u,\n    .all_field_count = %u,\n",
                schema->type_count, schema->directive_count, schema->field_count,
                schema->all_field_count);
    add_root(out, "query", schema->query);
    add_root(out, "mutation", schema->mutation);
    add_root(out, "subscription", schema->subscription);
    strbuf_adds(out, "};\n");
}

static bool is_system(const struct gql_type *type)
{
    return type->name[0] == '_' && type->name[1] == '_';
}

static void name_types(struct output *o)
{
    strbuf_adds(&o->text, "\nenum {\n");
    for (uint32_t i = 0; i < o->schema->type_count; i++)
        if (!is_system(o->schema->types[i]))
            strbuf_addf(&o->text, "    %s_TYPE_%s = %u,\n", o->upper, o->schema->types[i]->name,
                        o->schema->types[i]->id);
    strbuf_adds(&o->text, "};\n");
}

static void name_fields(struct output *o)
{
    strbuf_adds(&o->text, "\nenum {\n");
    for (uint32_t i = 0; i < o->schema->type_count; i++) {
        const struct gql_type *type = o->schema->types[i];

        for (uint32_t f = 0; type->kind == GQL_TYPE_OBJECT && f < type->field_count; f++)
            if (!is_system(type))
                strbuf_addf(&o->text, "    %s_FIELD_%s_%s = %u,\n", o->upper, type->name,
                            type->fields[f].name, type->fields[f].id);
    }
    strbuf_addf(&o->text, "    %s_FIELD_COUNT = %u,\n};\n", o->upper, o->schema->field_count);
}

/* Arguments, input fields and enum values; the count at the end keeps the enum from being empty. */
static void name_members(struct output *o)
{
    unsigned count = 0;

    strbuf_adds(&o->text, "\nenum {\n");
    for (uint32_t i = 0; i < o->schema->type_count; i++) {
        const struct gql_type *type = o->schema->types[i];

        if (is_system(type))
            continue;
        for (uint32_t f = 0; type->kind == GQL_TYPE_OBJECT && f < type->field_count; f++)
            for (uint32_t a = 0; a < type->fields[f].arg_count; a++, count++)
                strbuf_addf(&o->text, "    %s_ARG_%s_%s_%s = %u,\n", o->upper, type->name,
                            type->fields[f].name, type->fields[f].args[a].name, a);
        for (uint32_t f = 0; f < type->input_count; f++, count++)
            strbuf_addf(&o->text, "    %s_INPUT_%s_%s = %u,\n", o->upper, type->name,
                        type->inputs[f].name, f);
        for (uint32_t v = 0; v < type->value_count; v++, count++)
            strbuf_addf(&o->text, "    %s_VALUE_%s_%s = %u,\n", o->upper, type->name,
                        type->values[v].name, v);
    }
    strbuf_addf(&o->text, "    %s_MEMBER_COUNT = %u,\n};\n", o->upper, count);
}

static void write_names(struct output *o)
{
    strbuf_addf(&o->text,
                "/* Made from %s.graphql. */\n#ifndef %s_GRAPHQL_H\n#define %s_GRAPHQL_H\n\n"
                "#include \"graphql/schema.h\"\n\nextern const struct gql_schema %s_schema;\n",
                o->name, o->upper, o->upper, o->name);
    name_types(o);
    name_fields(o);
    name_members(o);
    strbuf_adds(&o->text, "\n#endif\n");
}

static void set_name(struct output *o, const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t len = AQ_MIN(strcspn(base, "."), sizeof(o->name) - 1);

    for (size_t i = 0; i < len; i++) {
        o->name[i] = (char)(isalnum((unsigned char)base[i]) ? base[i] : '_');
        o->upper[i] = (char)toupper((unsigned char)o->name[i]);
    }
}

static int write_file(const char *path, struct strbuf *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r;

    if (!strbuf_ok(text))
        return aq_fail(err, ENOMEM, "out of memory");
    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", path);
    r = fs_write_all(fd, text->data, text->len);
    strbuf_clear(text);
    return r < 0 ? aq_fail(err, -r, "write '%s'", path) : 0;
}

static int compile(char **argv, struct aq_error *err)
{
    AQ_CLEANUP(gql_schema_freep) struct gql_schema *schema = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf source = STRBUF_INIT;
    struct output o = { .text = STRBUF_INIT };
    int r;

    if ((r = fs_read(AT_FDCWD, argv[1], 16 << 20, &source, err)) < 0
        || (r = gql_schema_parse(source.data, source.len, &schema, err)) < 0)
        return r;
    o.schema = schema;
    set_name(&o, argv[1]);
    write_names(&o);
    r = write_file(argv[2], &o.text, err);
    if (r == 0) {
        write_tables(&o);
        r = write_file(argv[3], &o.text, err);
    }
    strbuf_done(&o.text);
    return r;
}

int main(int argc, char **argv)
{
    struct aq_error err = { 0 };

    if (argc != 4) {
        (void)fprintf(stderr, "usage: graphql-compile NAME.graphql NAME.h NAME.c\n");
        return 2;
    }
    if (compile(argv, &err) < 0) {
        (void)fprintf(stderr, "%s:%s\n", argv[1], err.text);
        return 1;
    }
    return 0;
}
