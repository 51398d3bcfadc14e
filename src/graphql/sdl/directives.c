/* SPDX-License-Identifier: Apache-2.0 */
/* Directives in a schema's text: known, in their place, once, with their arguments. */
#include "graphql/coerce.h"
#include "graphql/sdl/sdl.h"

static bool sdl_directives_check_arguments(struct sdl *sdl, const struct ast_directive *directive,
                                           const struct gql_directive_def *def)
{
    for (const struct ast_argument *a = directive->args; a; a = a->next) {
        if (!gql_input_find(def->args, def->arg_count, a->name.symbol->text, a->name.symbol->len))
            return sdl_fail(sdl, a->name.at, "Unknown argument \"%s\" on directive \"@%s\".",
                            a->name.symbol->text, def->name);
        for (const struct ast_argument *b = directive->args; b != a; b = b->next)
            if (a->name.symbol == b->name.symbol)
                return sdl_fail(sdl, a->name.at, "There can be only one argument named \"%s\".",
                                a->name.symbol->text);
    }
    for (uint32_t i = 0; i < def->arg_count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf type = STRBUF_INIT;
        const struct ast_argument *a = directive->args;

        while (a && strcmp(a->name.symbol->text, def->args[i].name) != 0)
            a = a->next;
        if (a || !gql_ref_is_non_null(def->args[i].type)
            || def->args[i].default_value.kind != GQL_ABSENT)
            continue;
        gql_ref_print(def->args[i].type, &type);
        return sdl_fail(sdl, directive->at,
                        "Directive \"@%s\" argument \"%s\" of type \"%s\" is required, but it was "
                        "not provided.",
                        def->name, def->args[i].name, type.data);
    }
    return true;
}

static bool sdl_directives_check_list(struct sdl *sdl, const struct ast_directive *directives,
                                      enum gql_location location)
{
    for (const struct ast_directive *d = directives; d; d = d->next) {
        const struct gql_directive_def *def = gql_directive_find(sdl->schema, d->name.symbol->text,
                                                                 d->name.symbol->len);

        if (!def)
            return sdl_fail(sdl, d->at, "Unknown directive \"@%s\".", d->name.symbol->text);
        if (!(def->locations & 1u << location))
            return sdl_fail(sdl, d->at, "Directive \"@%s\" may not be used on %s.", def->name,
                            gql_location_names[location]);
        for (const struct ast_directive *other = directives; other != d && !def->repeatable;
             other = other->next)
            if (other->name.symbol == d->name.symbol)
                return sdl_fail(sdl, d->at,
                                "The directive \"@%s\" can only be used once at this location.",
                                def->name);
        if (!sdl_directives_check_arguments(sdl, d, def))
            return false;
    }
    return true;
}

static bool sdl_directives_check_inputs(struct sdl *sdl, const struct ast_input *inputs,
                                        enum gql_location location)
{
    for (; inputs; inputs = inputs->next)
        if (!sdl_directives_check_list(sdl, inputs->directives, location))
            return false;
    return true;
}

static bool sdl_directives_check_type(struct sdl *sdl, const struct ast_definition *def)
{
    static const uint8_t locations[] = {
        [GQL_TYPE_SCALAR] = LOCATION_SCALAR,       [GQL_TYPE_OBJECT] = LOCATION_OBJECT,
        [GQL_TYPE_INTERFACE] = LOCATION_INTERFACE, [GQL_TYPE_UNION] = LOCATION_UNION,
        [GQL_TYPE_ENUM] = LOCATION_ENUM,           [GQL_TYPE_INPUT] = LOCATION_INPUT_OBJECT,
    };
    enum gql_location member = def->type.kind == GQL_TYPE_ENUM ? LOCATION_ENUM_VALUE
                                                               : LOCATION_FIELD_DEFINITION;

    if (!sdl_directives_check_list(sdl, def->directives,
                                   (enum gql_location)locations[def->type.kind])
        || !sdl_directives_check_inputs(sdl, def->type.inputs, LOCATION_INPUT_FIELD_DEFINITION))
        return false;
    for (const struct ast_member *m = def->type.members; m; m = m->next)
        if (!sdl_directives_check_list(sdl, m->directives, member)
            || !sdl_directives_check_inputs(sdl, m->args, LOCATION_ARGUMENT_DEFINITION))
            return false;
    return true;
}

bool sdl_check_directives(struct sdl *sdl)
{
    for (const struct ast_definition *def = sdl->user; def; def = def->next) {
        if (def->kind == AST_TYPE && !sdl_directives_check_type(sdl, def))
            return false;
        if (def->kind == AST_SCHEMA
            && !sdl_directives_check_list(sdl, def->directives, LOCATION_SCHEMA))
            return false;
        if (def->kind == AST_DIRECTIVE
            && !sdl_directives_check_inputs(sdl, def->directive.args, LOCATION_ARGUMENT_DEFINITION))
            return false;
    }
    return true;
}
