/* SPDX-License-Identifier: Apache-2.0 */
/* The order of types and fields, their ids and the tables over them. */
#include "graphql/sdl/sdl.h"

/* What sorting needs to know; qsort() has no room for it. */
struct named {
    const char *name;
    uint16_t position;
};

static int sdl_tables_compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static const uint16_t *sdl_tables_sort_names(struct sdl *sdl, struct named *names, size_t count)
{
    uint16_t *sorted = sdl_alloc(sdl, count, sizeof(*sorted));

    qsort(names, count, sizeof(*names), sdl_tables_compare_named);
    for (size_t i = 0; sorted && i < count; i++)
        sorted[i] = names[i].position;
    return sorted;
}

static bool sdl_tables_sort_fields(struct sdl *sdl, struct gql_type *type)
{
    struct named *names = sdl_alloc(sdl, type->field_count, sizeof(*names));

    if (!names)
        return false;
    for (uint32_t i = 0; i < type->field_count; i++)
        names[i] = (struct named){ type->fields[i].name, (uint16_t)i };
    type->fields_by_name = sdl_tables_sort_names(sdl, names, type->field_count);
    return type->fields_by_name != NULL;
}

static bool sdl_tables_sort_types(struct sdl *sdl)
{
    struct gql_schema *schema = sdl->schema;
    struct named *names = sdl_alloc(sdl, schema->type_count, sizeof(*names));

    if (!names)
        return false;
    for (uint32_t i = 0; i < schema->type_count; i++)
        names[i] = (struct named){ schema->types[i]->name, (uint16_t)i };
    schema->types_by_name = sdl_tables_sort_names(sdl, names, schema->type_count);
    return schema->types_by_name != NULL;
}

/* Types in the order in which graphql-js lists them: the schema's own in the
 * order of the text, the language's as soon as anything before names them. A
 * stack instead of recursion; to visit in the same order, a type's references
 * are pushed last to first.
 */
struct collector {
    struct sdl_type **stack;
    size_t depth, room;
    const struct gql_type **types;
    uint32_t count;
};

static void sdl_tables_push(struct collector *c, const struct gql_type *type)
{
    struct sdl_type *t = (struct sdl_type *)(void *)type;

    if (!t->ordered && !t->own && c->depth < c->room)
        c->stack[c->depth++] = t;
}

static void sdl_tables_push_references(struct collector *c, const struct gql_type *type)
{
    for (uint32_t i = type->input_count; i-- > 0;)
        sdl_tables_push(c, type->inputs[i].type.type);
    for (uint32_t i = type->field_count; i-- > 0;) {
        const struct gql_field_def *field = &type->fields[i];

        for (uint32_t a = field->arg_count; a-- > 0;)
            sdl_tables_push(c, field->args[a].type.type);
        sdl_tables_push(c, field->type.type);
    }
    for (uint32_t i = type->interface_count; i-- > 0;)
        sdl_tables_push(c, type->interfaces[i]);
    for (uint32_t i = type->kind == GQL_TYPE_UNION ? type->possible_count : 0; i-- > 0;)
        sdl_tables_push(c, type->possible[i]);
}

static void sdl_tables_collect(struct collector *c, struct sdl_type *type)
{
    c->stack[c->depth++] = type;
    while (c->depth > 0) {
        struct sdl_type *t = c->stack[--c->depth];

        if (t->ordered)
            continue;
        t->ordered = true;
        t->type.id = c->count + 1;
        c->types[c->count++] = &t->type;
        sdl_tables_push_references(c, &t->type);
    }
}

/* How many references there are in all: the most that can be on the stack. */
static size_t sdl_tables_count_references(const struct sdl *sdl)
{
    size_t count = 16;

    for (size_t i = 0; i < sdl->types.count; i++) {
        const struct gql_type *type = sdl->types.entries[i].value;

        count += 1 + type->input_count + type->field_count + type->interface_count
                 + type->possible_count;
        for (uint32_t f = 0; f < type->field_count; f++)
            count += type->fields[f].arg_count;
    }
    return count;
}

static bool sdl_tables_collect_types(struct sdl *sdl)
{
    struct gql_schema *schema = sdl->schema;
    struct collector c = { .room = sdl_tables_count_references(sdl) };

    c.stack = calloc(c.room, sizeof(*c.stack));
    c.types = sdl_alloc(sdl, sdl->types.count, sizeof(*c.types));
    if (!c.stack || !c.types) {
        free(c.stack);
        sdl->errors->no_memory = true;
        return false;
    }
    for (const struct ast_definition *def = sdl->user; def; def = def->next)
        if (def->kind == AST_TYPE && !def->extends)
            sdl_tables_collect(&c,
                               map_get(&sdl->types, def->name.symbol->text, def->name.symbol->len));
    for (uint32_t i = 0; i < schema->directive_count; i++)
        for (uint32_t a = 0; a < schema->directives[i].arg_count; a++)
            sdl_tables_collect(&c,
                               (struct sdl_type *)(void *)schema->directives[i].args[a].type.type);
    sdl_tables_collect(&c, map_gets(&sdl->types, "__Schema"));
    free(c.stack);
    schema->types = c.types;
    schema->type_count = c.count;
    return c.count <= UINT16_MAX || sdl_fail(sdl, UINT32_MAX, "More than 65,535 types.");
}

/* Object types of each interface, in the order of the types. */
static bool sdl_tables_set_possible(struct sdl *sdl)
{
    struct gql_schema *schema = sdl->schema;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < schema->type_count; i++) {
            const struct gql_type *type = schema->types[i];

            for (uint32_t n = 0; type->kind == GQL_TYPE_OBJECT && n < type->interface_count; n++) {
                struct gql_type *iface = (struct gql_type *)type->interfaces[n];

                if (iface->kind != GQL_TYPE_INTERFACE)
                    continue; /* refused by the checks that follow */
                if (pass == 1)
                    ((const struct gql_type **)iface->possible)[iface->possible_count] = type;
                iface->possible_count++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < schema->type_count; i++) {
            struct gql_type *type = (struct gql_type *)schema->types[i];

            if (type->kind != GQL_TYPE_INTERFACE)
                continue;
            type->possible = sdl_alloc(sdl, type->possible_count, sizeof(void *));
            type->possible_count = 0;
            if (!type->possible)
                return false;
        }
    }
    return true;
}

static bool sdl_tables_is_system(const struct gql_type *type)
{
    return type->name[0] == '_' && type->name[1] == '_';
}

static void sdl_tables_number_fields(struct gql_schema *schema)
{
    uint32_t id = 0;

    for (int system = 0; system < 2; system++) {
        for (uint32_t i = 0; i < schema->type_count; i++) {
            const struct gql_type *type = schema->types[i];

            if (type->kind != GQL_TYPE_OBJECT || sdl_tables_is_system(type) != (system == 1))
                continue;
            for (uint32_t f = 0; f < type->field_count; f++)
                ((struct gql_field_def *)type->fields)[f].id = id++;
        }
        if (!system)
            schema->field_count = id;
    }
    schema->all_field_count = id + GQL_META_COUNT;
}

static bool sdl_tables_make_meta(struct sdl *sdl)
{
    struct gql_field_def *meta = sdl_alloc(sdl, GQL_META_COUNT, sizeof(*meta));
    struct gql_input_def *name = sdl_alloc(sdl, 1, sizeof(*name));
    struct sdl_type *string = map_gets(&sdl->types, "String");
    struct sdl_type *schema = map_gets(&sdl->types, "__Schema");
    struct sdl_type *type = map_gets(&sdl->types, "__Type");

    if (!meta || !name)
        return false;
    *name = (struct gql_input_def){ .name = "name",
                                    .type = { &string->type, GQL_WRAP_NON_NULL },
                                    .default_value = { .kind = GQL_ABSENT } };
    meta[GQL_META_TYPENAME] = (struct gql_field_def){
        .name = "__typename",
        .description = "The name of the current Object type at runtime.",
        .type = { &string->type, GQL_WRAP_NON_NULL },
    };
    meta[GQL_META_SCHEMA] = (struct gql_field_def){
        .name = "__schema",
        .description = "Access the current type schema of this server.",
        .parent = sdl->schema->query,
        .type = { &schema->type, GQL_WRAP_NON_NULL },
    };
    meta[GQL_META_TYPE] = (struct gql_field_def){
        .name = "__type",
        .description = "Request the type information of a single type.",
        .parent = sdl->schema->query,
        .type = { &type->type, 0 },
        .args = name,
        .arg_count = 1,
    };
    for (uint32_t i = 0; i < GQL_META_COUNT; i++)
        meta[i].id = sdl->schema->all_field_count - GQL_META_COUNT + i;
    sdl->schema->meta = meta;
    return true;
}

bool sdl_order(struct sdl *sdl)
{
    if (!sdl_tables_collect_types(sdl) || !sdl_tables_sort_types(sdl)
        || !sdl_tables_set_possible(sdl))
        return false;
    for (uint32_t i = 0; i < sdl->schema->type_count; i++) {
        struct gql_type *type = (struct gql_type *)sdl->schema->types[i];

        if (type->field_count > UINT16_MAX)
            return sdl_fail(sdl, UINT32_MAX, "Type \"%s\" has more than 65,535 fields.",
                            type->name);
        if (!sdl_tables_sort_fields(sdl, type))
            return false;
    }
    sdl_tables_number_fields(sdl->schema);
    return sdl_tables_make_meta(sdl);
}
