/* SPDX-License-Identifier: Apache-2.0 */
/* __schema and __type, over the same tables as everything else.
 *
 * The objects of these types: __Schema is a struct gql_schema, __Type a
 * struct gql_ref (so that lists and non-null types are types too), __Field a
 * struct gql_field_def, __InputValue a struct gql_input_def, __EnumValue a
 * struct gql_enum_def, __Directive a struct gql_directive_def.
 */
#include <assert.h>

#include "base/memory.h"
#include "graphql/request.h"

/* What __Field, __InputValue and __EnumValue begin with. */
struct described {
    const char *name, *description, *deprecated;
};
#define DESCRIBED(type)                                                                 \
    static_assert(offsetof(type, deprecated) == offsetof(struct described, deprecated), \
                  "the beginnings are the same")
DESCRIBED(struct gql_field_def);
DESCRIBED(struct gql_input_def);
DESCRIBED(struct gql_enum_def);

/* The engine's schema, where a resolver gets no object to find it by. */
static const struct gql_schema *introspect_schema_of(const struct gql_call *call)
{
    return ((const struct call *)(const void *)call)->request->engine->conf.schema;
}

static struct gql_value introspect_new_ref(struct arena *arena, struct gql_ref ref)
{
    struct gql_ref *copy = arena_alloc(arena, sizeof(*copy));

    *copy = ref;
    return gql_object(copy);
}

static struct gql_value introspect_named_types(struct arena *arena,
                                               const struct gql_type *const *types, uint32_t count)
{
    struct gql_ref *refs = arena_array(arena, count, sizeof(*refs));

    for (uint32_t i = 0; i < count; i++)
        refs[i].type = types[i];
    return gql_rows_of(arena, refs, count, sizeof(*refs));
}

/* Rows of an array, those with a reason to be deprecated only if they are asked for. */
static struct gql_value introspect_live_rows(struct gql_get *get, const void *array, uint32_t count,
                                             size_t size)
{
    bool all = get->args[0].kind == GQL_BOOL && get->args[0].boolean;
    const void **rows = arena_array(get->arena, count, sizeof(*rows));
    uint32_t live = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct described *row = (const void *)((const char *)array + i * size);

        if (all || !row->deprecated)
            rows[live++] = row;
    }
    return gql_rows(rows, live);
}

static int introspect_resolve_schema(struct gql_call *call)
{
    call->results[0] = gql_object(introspect_schema_of(call));
    return GQL_DONE;
}

static int introspect_resolve_type(struct gql_call *call)
{
    const struct gql_type *type = gql_type_find(introspect_schema_of(call), call->args[0].text,
                                                call->args[0].count);

    if (type)
        call->results[0] = introspect_new_ref(call->arena, (struct gql_ref){ type, 0 });
    return GQL_DONE;
}

static struct gql_value introspect_schema_types(struct gql_get *get, const void *object)
{
    const struct gql_schema *schema = object;

    return introspect_named_types(get->arena, schema->types, schema->type_count);
}

static struct gql_value introspect_root_type(struct gql_get *get, const struct gql_type *type)
{
    return type ? introspect_new_ref(get->arena, (struct gql_ref){ type, 0 }) : gql_null();
}

static struct gql_value introspect_schema_query(struct gql_get *get, const void *object)
{
    return introspect_root_type(get, ((const struct gql_schema *)object)->query);
}

static struct gql_value introspect_schema_mutation(struct gql_get *get, const void *object)
{
    return introspect_root_type(get, ((const struct gql_schema *)object)->mutation);
}

static struct gql_value introspect_schema_subscription(struct gql_get *get, const void *object)
{
    return introspect_root_type(get, ((const struct gql_schema *)object)->subscription);
}

static struct gql_value introspect_schema_directives(struct gql_get *get, const void *object)
{
    const struct gql_schema *schema = object;

    return gql_rows_of(get->arena, schema->directives, schema->directive_count,
                       sizeof(*schema->directives));
}

/* The named type behind a __Type, NULL for lists and non-null types. */
static const struct gql_type *introspect_bare_type(const void *object)
{
    const struct gql_ref *ref = object;

    return ref->wraps ? NULL : ref->type;
}

static struct gql_value introspect_type_kind(struct gql_get *get, const void *object)
{
    static const char *const names[] = {
        [GQL_TYPE_SCALAR] = "SCALAR",       [GQL_TYPE_OBJECT] = "OBJECT",
        [GQL_TYPE_INTERFACE] = "INTERFACE", [GQL_TYPE_UNION] = "UNION",
        [GQL_TYPE_ENUM] = "ENUM",           [GQL_TYPE_INPUT] = "INPUT_OBJECT",
    };
    const struct gql_ref *ref = object;

    (void)get;
    if (ref->wraps)
        return gql_text(gql_ref_is_list(*ref) ? "LIST" : "NON_NULL");
    return gql_text(names[ref->type->kind]);
}

static struct gql_value introspect_type_name(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    (void)get;
    return gql_text(type ? type->name : NULL);
}

static struct gql_value introspect_type_description(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    (void)get;
    return gql_text(type ? type->description : NULL);
}

static struct gql_value introspect_type_specified_by(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    (void)get;
    return gql_text(type ? type->specified_by : NULL);
}

static bool introspect_has_fields(const struct gql_type *type)
{
    return type && (type->kind == GQL_TYPE_OBJECT || type->kind == GQL_TYPE_INTERFACE);
}

static struct gql_value introspect_type_fields(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    return introspect_has_fields(type)
               ? introspect_live_rows(get, type->fields, type->field_count, sizeof(*type->fields))
               : gql_null();
}

static struct gql_value introspect_type_interfaces(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    return introspect_has_fields(type)
               ? introspect_named_types(get->arena, type->interfaces, type->interface_count)
               : gql_null();
}

static struct gql_value introspect_type_possible(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    if (!type || (type->kind != GQL_TYPE_INTERFACE && type->kind != GQL_TYPE_UNION))
        return gql_null();
    return introspect_named_types(get->arena, type->possible, type->possible_count);
}

static struct gql_value introspect_type_values(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    if (!type || type->kind != GQL_TYPE_ENUM)
        return gql_null();
    return introspect_live_rows(get, type->values, type->value_count, sizeof(*type->values));
}

static struct gql_value introspect_type_inputs(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    if (!type || type->kind != GQL_TYPE_INPUT)
        return gql_null();
    return introspect_live_rows(get, type->inputs, type->input_count, sizeof(*type->inputs));
}

static struct gql_value introspect_type_of_type(struct gql_get *get, const void *object)
{
    const struct gql_ref *ref = object;

    return ref->wraps ? introspect_new_ref(get->arena, gql_ref_inner(*ref)) : gql_null();
}

static struct gql_value introspect_type_one_of(struct gql_get *get, const void *object)
{
    const struct gql_type *type = introspect_bare_type(object);

    (void)get;
    return type && type->kind == GQL_TYPE_INPUT ? gql_bool(type->one_of) : gql_null();
}

static struct gql_value introspect_is_deprecated(struct gql_get *get, const void *object)
{
    (void)get;
    return gql_bool(((const struct described *)object)->deprecated != NULL);
}

static struct gql_value introspect_field_args(struct gql_get *get, const void *object)
{
    const struct gql_field_def *field = object;

    return introspect_live_rows(get, field->args, field->arg_count, sizeof(*field->args));
}

static struct gql_value introspect_directive_locations(struct gql_get *get, const void *object)
{
    const struct gql_directive_def *directive = object;
    struct gql_value *items = arena_array(get->arena, directive->location_count, sizeof(*items));

    for (uint32_t i = 0; i < directive->location_count; i++)
        items[i] = gql_text(gql_location_names[directive->location_order[i]]);
    return gql_list(items, directive->location_count);
}

static struct gql_value introspect_directive_args(struct gql_get *get, const void *object)
{
    const struct gql_directive_def *directive = object;

    return introspect_live_rows(get, directive->args, directive->arg_count,
                                sizeof(*directive->args));
}

static const struct {
    const char *type, *field; /* type NULL: a meta field */
    struct gql_resolver resolver;
} entries[] = {
    { NULL, "__typename", { .how = GQL_HOW_CONST } }, /* write_field() knows it */
    { NULL, "__schema", GQL_CALL(introspect_resolve_schema) },
    { NULL, "__type", GQL_CALL(introspect_resolve_type) },
    { "__Schema", "description", GQL_TEXT_AT(struct gql_schema, description) },
    { "__Schema", "types", GQL_GET(introspect_schema_types) },
    { "__Schema", "queryType", GQL_GET(introspect_schema_query) },
    { "__Schema", "mutationType", GQL_GET(introspect_schema_mutation) },
    { "__Schema", "subscriptionType", GQL_GET(introspect_schema_subscription) },
    { "__Schema", "directives", GQL_GET(introspect_schema_directives) },
    { "__Type", "kind", GQL_GET(introspect_type_kind) },
    { "__Type", "name", GQL_GET(introspect_type_name) },
    { "__Type", "description", GQL_GET(introspect_type_description) },
    { "__Type", "specifiedByURL", GQL_GET(introspect_type_specified_by) },
    { "__Type", "fields", GQL_GET(introspect_type_fields) },
    { "__Type", "interfaces", GQL_GET(introspect_type_interfaces) },
    { "__Type", "possibleTypes", GQL_GET(introspect_type_possible) },
    { "__Type", "enumValues", GQL_GET(introspect_type_values) },
    { "__Type", "inputFields", GQL_GET(introspect_type_inputs) },
    { "__Type", "ofType", GQL_GET(introspect_type_of_type) },
    { "__Type", "isOneOf", GQL_GET(introspect_type_one_of) },
    { "__Field", "name", GQL_TEXT_AT(struct gql_field_def, name) },
    { "__Field", "description", GQL_TEXT_AT(struct gql_field_def, description) },
    { "__Field", "args", GQL_GET(introspect_field_args) },
    { "__Field", "type", GQL_PART_AT(struct gql_field_def, type) },
    { "__Field", "isDeprecated", GQL_GET(introspect_is_deprecated) },
    { "__Field", "deprecationReason", GQL_TEXT_AT(struct gql_field_def, deprecated) },
    { "__InputValue", "name", GQL_TEXT_AT(struct gql_input_def, name) },
    { "__InputValue", "description", GQL_TEXT_AT(struct gql_input_def, description) },
    { "__InputValue", "type", GQL_PART_AT(struct gql_input_def, type) },
    { "__InputValue", "defaultValue", GQL_TEXT_AT(struct gql_input_def, default_text) },
    { "__InputValue", "isDeprecated", GQL_GET(introspect_is_deprecated) },
    { "__InputValue", "deprecationReason", GQL_TEXT_AT(struct gql_input_def, deprecated) },
    { "__EnumValue", "name", GQL_TEXT_AT(struct gql_enum_def, name) },
    { "__EnumValue", "description", GQL_TEXT_AT(struct gql_enum_def, description) },
    { "__EnumValue", "isDeprecated", GQL_GET(introspect_is_deprecated) },
    { "__EnumValue", "deprecationReason", GQL_TEXT_AT(struct gql_enum_def, deprecated) },
    { "__Directive", "name", GQL_TEXT_AT(struct gql_directive_def, name) },
    { "__Directive", "description", GQL_TEXT_AT(struct gql_directive_def, description) },
    { "__Directive", "isRepeatable", GQL_BOOL_AT(struct gql_directive_def, repeatable) },
    { "__Directive", "locations", GQL_GET(introspect_directive_locations) },
    { "__Directive", "args", GQL_GET(introspect_directive_args) },
};

static const struct gql_field_def *introspect_find_field(const struct gql_schema *schema,
                                                         const char *type, const char *field)
{
    const struct gql_type *t;

    for (int i = 0; i < GQL_META_COUNT && !type; i++)
        if (strcmp(schema->meta[i].name, field) == 0)
            return &schema->meta[i];
    t = type ? gql_type_find(schema, type, strlen(type)) : NULL;
    return t ? gql_field_find(t, field, strlen(field)) : NULL;
}

struct gql_resolver *introspection_resolvers(const struct gql_schema *schema)
{
    struct gql_resolver *resolvers = aq_alloc_array(schema->all_field_count - schema->field_count,
                                                    sizeof(*resolvers));

    for (size_t i = 0; i < AQ_COUNT(entries); i++) {
        const struct gql_field_def *def = introspect_find_field(schema, entries[i].type,
                                                                entries[i].field);

        if (def)
            resolvers[def->id - schema->field_count] = entries[i].resolver;
    }
    return resolvers;
}
