/* SPDX-License-Identifier: Apache-2.0 */
/* Default values, once all types are known: those of input types before what uses them. */
#include "graphql/coerce.h"
#include "graphql/print.h"
#include "graphql/sdl/sdl.h"

static bool defaults_set_in_value(struct sdl *sdl, const struct gql_input_def *inputs,
                                  const struct ast_input *ast, uint32_t *index);

/* Defaults of an input type's fields, before anything uses them. */
static bool defaults_set_of_type(struct sdl *sdl, struct sdl_type *type)
{
    uint32_t index = 0;

    if (type->defaults == 2 || type->type.kind != GQL_TYPE_INPUT)
        return true;
    if (type->defaults == 1)
        return sdl_fail(sdl, type->def->name.at,
                        "Default values of input type \"%s\" need each other.", type->type.name);
    type->defaults = 1;
    if (!defaults_set_in_value(sdl, type->type.inputs, type->def->type.inputs, &index))
        return false;
    for (uint32_t i = 0; i < type->extension_count; i++)
        if (!defaults_set_in_value(sdl, type->type.inputs, type->extensions[i]->type.inputs,
                                   &index))
            return false;
    type->defaults = 2;
    return true;
}

/* The input types that an object literal of 'type' will be read as. */
static bool defaults_set_nested(struct sdl *sdl, const struct ast_value *value,
                                const struct gql_type *type)
{
    if (value->kind == AST_LIST) {
        for (const struct ast_value *item = value->items; item; item = item->next)
            if (!defaults_set_nested(sdl, item, type))
                return false;
    } else if (value->kind == AST_OBJECT && type->kind == GQL_TYPE_INPUT) {
        if (!defaults_set_of_type(sdl, (struct sdl_type *)(void *)type))
            return false;
        for (const struct ast_argument *f = value->fields; f; f = f->next) {
            const struct gql_input_def *def = gql_input_find(
                type->inputs, type->input_count, f->name.symbol->text, f->name.symbol->len);

            if (def && !defaults_set_nested(sdl, f->value, def->type.type))
                return false;
        }
    }
    return true;
}

static struct gql_value defaults_keep_value(struct sdl *sdl, struct gql_value value)
{
    struct gql_value *items;
    struct gql_member *members;

    switch ((enum gql_kind)value.kind) {
    case GQL_STRING:
        value.text = sdl_copy(sdl, value.text, value.count);
        break;
    case GQL_LIST:
    case GQL_INPUT:
        items = sdl_alloc(sdl, value.count, sizeof(*items));
        for (uint32_t i = 0; items && i < value.count; i++)
            items[i] = defaults_keep_value(sdl, value.items[i]);
        value.items = items;
        break;
    case GQL_MAP:
        members = sdl_alloc(sdl, value.count, sizeof(*members));
        for (uint32_t i = 0; members && i < value.count; i++) {
            members[i].name = sdl_copy(sdl, value.members[i].name, strlen(value.members[i].name));
            members[i].value = defaults_keep_value(sdl, value.members[i].value);
        }
        value.members = members;
        break;
    default:
        break;
    }
    return value;
}

static bool defaults_set(struct sdl *sdl, const struct ast_value *value,
                         struct gql_input_def *input)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct coerce c = { .arena = sdl->arena };
    struct gql_value result;

    if (!defaults_set_nested(sdl, value, input->type.type))
        return false;
    if (!coerce_literal(&c, value, input->type, &result)) {
        sdl->errors->no_memory |= c.no_memory;
        gql_ref_print(input->type, &text);
        return sdl_fail(sdl, value->at, "Default value of \"%s\" is not of type \"%s\".",
                        input->name, text.data);
    }
    input->default_value = defaults_keep_value(sdl, result);
    print_default(input->default_value, input->type, &text);
    input->default_text = sdl_copy(sdl, text.data, text.len);
    return strbuf_ok(&text) && !sdl->errors->no_memory;
}

static bool defaults_set_in_value(struct sdl *sdl, const struct gql_input_def *inputs,
                                  const struct ast_input *ast, uint32_t *index)
{
    for (; ast; ast = ast->next, ++*index)
        if (ast->default_value
            && !defaults_set(sdl, ast->default_value, (struct gql_input_def *)&inputs[*index]))
            return false;
    return true;
}

static bool defaults_set_of_field(struct sdl *sdl, const struct sdl_type *type,
                                  const struct ast_definition *def, uint32_t *field)
{
    for (const struct ast_member *m = def->type.members; m; m = m->next, ++*field) {
        uint32_t index = 0;

        if (!defaults_set_in_value(sdl, type->type.fields[*field].args, m->args, &index))
            return false;
    }
    return true;
}

bool sdl_set_defaults(struct sdl *sdl, const struct ast_definition *prelude)
{
    const struct ast_definition *lists[] = { sdl->user, prelude };

    for (size_t i = 0; i < sdl->types.count; i++) {
        struct sdl_type *type = sdl->types.entries[i].value;
        uint32_t field = 0;

        if (type->type.kind == GQL_TYPE_INPUT && !defaults_set_of_type(sdl, type))
            return false;
        if (type->type.kind != GQL_TYPE_OBJECT && type->type.kind != GQL_TYPE_INTERFACE)
            continue;
        if (!defaults_set_of_field(sdl, type, type->def, &field))
            return false;
        for (uint32_t e = 0; e < type->extension_count; e++)
            if (!defaults_set_of_field(sdl, type, type->extensions[e], &field))
                return false;
    }
    for (int i = 0, d = 0; i < 2; i++) {
        for (const struct ast_definition *def = lists[i]; def; def = def->next) {
            uint32_t index = 0;

            if (def->kind != AST_DIRECTIVE
                || strcmp(sdl->schema->directives[d].name, def->name.symbol->text) != 0)
                continue; /* the schema has its own definition */
            if (!defaults_set_in_value(sdl, sdl->schema->directives[d].args, def->directive.args,
                                       &index))
                return false;
            if (++d == (int)sdl->schema->directive_count)
                return true;
        }
    }
    return true;
}
