/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for the types of a schema, by the specification's type system. */
#include "graphql/sdl/sdl.h"

static uint32_t check_place_of(const struct gql_type *type)
{
    return ((const struct sdl_type *)(const void *)type)->def->name.at;
}

static bool check_is_input_type(const struct gql_type *type)
{
    return type->kind == GQL_TYPE_SCALAR || type->kind == GQL_TYPE_ENUM
           || type->kind == GQL_TYPE_INPUT;
}

static bool check_is_required(const struct gql_input_def *def)
{
    return gql_ref_is_non_null(def->type) && def->default_value.kind == GQL_ABSENT;
}

/* Whether "field: sub" may stand where an interface says "field: super". */
static bool check_is_subtype(struct gql_ref sub, struct gql_ref super)
{
    while (sub.wraps || super.wraps) {
        if (gql_ref_is_non_null(super)) {
            if (!gql_ref_is_non_null(sub))
                return false;
            super = gql_ref_inner(super);
            sub = gql_ref_inner(sub);
        } else if (gql_ref_is_non_null(sub)) {
            sub = gql_ref_inner(sub);
        } else if (gql_ref_is_list(super) && gql_ref_is_list(sub)) {
            super = gql_ref_inner(super);
            sub = gql_ref_inner(sub);
        } else {
            return false;
        }
    }
    return gql_type_is_subtype(sub.type, super.type);
}

static bool check_inputs(struct sdl *sdl, const struct gql_type *owner, const char *field,
                         const struct gql_input_def *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!check_is_input_type(inputs[i].type.type))
            return sdl_fail(sdl, check_place_of(owner),
                            "The type of %s%s%s(%s:) must be an input type, %s is not.",
                            owner->name, *field ? "." : "", field, inputs[i].name,
                            inputs[i].type.type->name);
        if (check_is_required(&inputs[i]) && inputs[i].deprecated)
            return sdl_fail(sdl, check_place_of(owner),
                            "Required %s%s%s(%s:) cannot be deprecated.", owner->name,
                            *field ? "." : "", field, inputs[i].name);
    }
    return true;
}

static bool check_fields(struct sdl *sdl, const struct gql_type *type)
{
    if (type->field_count == 0)
        return sdl_fail(sdl, check_place_of(type), "Type %s must define one or more fields.",
                        type->name);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct gql_field_def *field = &type->fields[i];

        if (field->type.type->kind == GQL_TYPE_INPUT)
            return sdl_fail(sdl, check_place_of(type),
                            "The type of %s.%s must be an output type, %s is not.", type->name,
                            field->name, field->type.type->name);
        if (!check_inputs(sdl, type, field->name, field->args, field->arg_count))
            return false;
    }
    return true;
}

static bool check_implemented_args(struct sdl *sdl, const struct gql_type *type,
                                   const struct gql_field_def *field,
                                   const struct gql_field_def *wanted)
{
    for (uint32_t i = 0; i < wanted->arg_count; i++) {
        const struct gql_input_def *want = &wanted->args[i];
        const struct gql_input_def *have = gql_input_find(field->args, field->arg_count, want->name,
                                                          strlen(want->name));

        if (!have)
            return sdl_fail(sdl, check_place_of(type),
                            "Interface field argument %s.%s(%s:) expected but %s.%s does not "
                            "provide it.",
                            wanted->parent->name, wanted->name, want->name, type->name,
                            field->name);
        if (have->type.type != want->type.type || have->type.wraps != want->type.wraps)
            return sdl_fail(sdl, check_place_of(type),
                            "Interface field argument %s.%s(%s:) is of another type in %s.%s.",
                            wanted->parent->name, wanted->name, want->name, type->name,
                            field->name);
    }
    for (uint32_t i = 0; i < field->arg_count; i++) {
        const struct gql_input_def *have = &field->args[i];

        if (check_is_required(have)
            && !gql_input_find(wanted->args, wanted->arg_count, have->name, strlen(have->name)))
            return sdl_fail(sdl, check_place_of(type),
                            "Object field %s.%s includes required argument %s that is missing "
                            "from the Interface field %s.%s.",
                            type->name, field->name, have->name, wanted->parent->name,
                            wanted->name);
    }
    return true;
}

static bool check_implements(struct sdl *sdl, const struct gql_type *type,
                             const struct gql_type *iface)
{
    for (uint32_t i = 0; i < iface->interface_count; i++) {
        bool found = false;

        for (uint32_t n = 0; n < type->interface_count; n++)
            found |= type->interfaces[n] == iface->interfaces[i];
        if (!found)
            return sdl_fail(sdl, check_place_of(type),
                            iface->interfaces[i] == type
                                ? "Type %s cannot implement %s because it would create a circular "
                                  "reference."
                                : "Type %s must implement %s because it is implemented by %s.",
                            type->name,
                            iface->interfaces[i] == type ? iface->name : iface->interfaces[i]->name,
                            iface->name);
    }
    for (uint32_t i = 0; i < iface->field_count; i++) {
        const struct gql_field_def *wanted = &iface->fields[i];
        const struct gql_field_def *field = gql_field_find(type, wanted->name,
                                                           strlen(wanted->name));

        if (!field)
            return sdl_fail(sdl, check_place_of(type),
                            "Interface field %s.%s expected but %s does not provide it.",
                            iface->name, wanted->name, type->name);
        if (!check_is_subtype(field->type, wanted->type))
            return sdl_fail(sdl, check_place_of(type),
                            "Interface field %s.%s is of a type that %s.%s is not.", iface->name,
                            wanted->name, type->name, field->name);
        if (!check_implemented_args(sdl, type, field, wanted))
            return false;
    }
    return true;
}

static bool check_interfaces(struct sdl *sdl, const struct gql_type *type)
{
    for (uint32_t i = 0; i < type->interface_count; i++) {
        const struct gql_type *iface = type->interfaces[i];

        if (iface->kind != GQL_TYPE_INTERFACE)
            return sdl_fail(sdl, check_place_of(type),
                            "Type %s must only implement Interface types, it cannot implement %s.",
                            type->name, iface->name);
        if (iface == type)
            return sdl_fail(sdl, check_place_of(type),
                            "Type %s cannot implement itself because it would create a circular "
                            "reference.",
                            type->name);
        for (uint32_t n = 0; n < i; n++)
            if (type->interfaces[n] == iface)
                return sdl_fail(sdl, check_place_of(type), "Type %s can only implement %s once.",
                                type->name, iface->name);
        if (!check_implements(sdl, type, iface))
            return false;
    }
    return true;
}

static bool check_union(struct sdl *sdl, const struct gql_type *type)
{
    if (type->possible_count == 0)
        return sdl_fail(sdl, check_place_of(type),
                        "Union type %s must define one or more member types.", type->name);
    for (uint32_t i = 0; i < type->possible_count; i++) {
        for (uint32_t n = 0; n < i; n++)
            if (type->possible[n] == type->possible[i])
                return sdl_fail(sdl, check_place_of(type),
                                "Union type %s can only include type %s once.", type->name,
                                type->possible[i]->name);
        if (type->possible[i]->kind != GQL_TYPE_OBJECT)
            return sdl_fail(sdl, check_place_of(type),
                            "Union type %s can only include Object types, it cannot include %s.",
                            type->name, type->possible[i]->name);
    }
    return true;
}

/* Whether a value of the type would have to hold another of itself, forever:
 * a path of non-null fields back to 'start'.
 */
static bool check_needs_itself(const struct gql_type *type, const struct gql_type *start,
                               struct map *seen, bool *no_memory)
{
    for (uint32_t i = 0; i < type->input_count; i++) {
        struct gql_ref ref = type->inputs[i].type;

        if (ref.wraps != GQL_WRAP_NON_NULL || ref.type->kind != GQL_TYPE_INPUT)
            continue;
        if (ref.type == start)
            return true;
        if (map_get(seen, &ref.type, sizeof(ref.type)))
            continue;
        *no_memory |= map_set(seen, &ref.type, sizeof(ref.type), (void *)ref.type) < 0;
        if (*no_memory || check_needs_itself(ref.type, start, seen, no_memory))
            return true;
    }
    return false;
}

static bool check_input(struct sdl *sdl, const struct gql_type *type)
{
    struct map seen = MAP_INIT;
    bool endless;

    if (type->input_count == 0)
        return sdl_fail(sdl, check_place_of(type),
                        "Input Object type %s must define one or more fields.", type->name);
    for (uint32_t i = 0; i < type->input_count; i++) {
        const struct gql_input_def *field = &type->inputs[i];

        if (type->one_of && gql_ref_is_non_null(field->type))
            return sdl_fail(sdl, check_place_of(type), "OneOf input field %s.%s must be nullable.",
                            type->name, field->name);
        if (type->one_of && field->default_value.kind != GQL_ABSENT)
            return sdl_fail(sdl, check_place_of(type),
                            "OneOf input field %s.%s cannot have a default value.", type->name,
                            field->name);
    }
    if (!check_inputs(sdl, type, "", type->inputs, type->input_count))
        return false;
    endless = check_needs_itself(type, type, &seen, &sdl->errors->no_memory);
    map_done(&seen);
    return !endless
           || sdl_fail(sdl, check_place_of(type),
                       "Cannot reference Input Object \"%s\" within itself through a series of "
                       "non-null fields.",
                       type->name);
}

static bool check_type(struct sdl *sdl, const struct gql_type *type)
{
    switch ((enum gql_type_kind)type->kind) {
    case GQL_TYPE_OBJECT:
    case GQL_TYPE_INTERFACE:
        return check_fields(sdl, type) && check_interfaces(sdl, type);
    case GQL_TYPE_UNION:
        return check_union(sdl, type);
    case GQL_TYPE_ENUM:
        return type->value_count > 0
               || sdl_fail(sdl, check_place_of(type),
                           "Enum type %s must define one or more values.", type->name);
    case GQL_TYPE_INPUT:
        return check_input(sdl, type);
    case GQL_TYPE_SCALAR:
        break;
    }
    return true;
}

bool sdl_check_types(struct sdl *sdl)
{
    for (uint32_t i = 0; i < sdl->schema->type_count; i++) {
        const struct gql_type *type = sdl->schema->types[i];

        if (!((const struct sdl_type *)(const void *)type)->builtin && !check_type(sdl, type))
            return false;
    }
    for (uint32_t i = 0; i < sdl->schema->directive_count; i++) {
        const struct gql_directive_def *directive = &sdl->schema->directives[i];

        for (uint32_t a = 0; a < directive->arg_count; a++)
            if (!check_is_input_type(directive->args[a].type.type))
                return sdl_fail(
                    sdl, UINT32_MAX, "The type of @%s(%s:) must be an input type, %s is not.",
                    directive->name, directive->args[a].name, directive->args[a].type.type->name);
    }
    return true;
}
