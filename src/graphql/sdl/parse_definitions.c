/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the parser that reads schema documents. */
#include "graphql/parser.h"

const char *const gql_location_names[LOCATION_COUNT] = {
    [LOCATION_QUERY] = "QUERY",
    [LOCATION_MUTATION] = "MUTATION",
    [LOCATION_SUBSCRIPTION] = "SUBSCRIPTION",
    [LOCATION_FIELD] = "FIELD",
    [LOCATION_FRAGMENT_DEFINITION] = "FRAGMENT_DEFINITION",
    [LOCATION_FRAGMENT_SPREAD] = "FRAGMENT_SPREAD",
    [LOCATION_INLINE_FRAGMENT] = "INLINE_FRAGMENT",
    [LOCATION_VARIABLE_DEFINITION] = "VARIABLE_DEFINITION",
    [LOCATION_SCHEMA] = "SCHEMA",
    [LOCATION_SCALAR] = "SCALAR",
    [LOCATION_OBJECT] = "OBJECT",
    [LOCATION_FIELD_DEFINITION] = "FIELD_DEFINITION",
    [LOCATION_ARGUMENT_DEFINITION] = "ARGUMENT_DEFINITION",
    [LOCATION_INTERFACE] = "INTERFACE",
    [LOCATION_UNION] = "UNION",
    [LOCATION_ENUM] = "ENUM",
    [LOCATION_ENUM_VALUE] = "ENUM_VALUE",
    [LOCATION_INPUT_OBJECT] = "INPUT_OBJECT",
    [LOCATION_INPUT_FIELD_DEFINITION] = "INPUT_FIELD_DEFINITION",
};

/* 'open' item... 'close', or nothing at all; never empty. */
#define FOR_EACH_IN(p, open, close, ok, body)    \
    do {                                         \
        if (parser_at(p, open)) {                \
            ok = parser_advance(p);              \
            while (ok) {                         \
                ok = body;                       \
                if (ok && parser_at(p, close)) { \
                    ok = parser_advance(p);      \
                    break;                       \
                }                                \
            }                                    \
        }                                        \
    } while (0)

static bool parse_definitions_input(struct parser *p, struct ast_input ***next)
{
    struct ast_input *input = parser_alloc(p, sizeof(*input));
    struct ast_value *value = NULL;

    if (!input)
        return false;
    input->at = p->token.at;
    if (!parse_description(p, &input->description) || !parse_name(p, &input->name)
        || !parser_expect(p, TOKEN_COLON) || !parse_type(p, &input->type))
        return false;
    if (parser_at(p, TOKEN_EQUALS) && (!parser_advance(p) || !parse_value(p, true, &value)))
        return false;
    input->default_value = value;
    if (!parse_directives(p, true, &input->directives))
        return false;
    **next = input;
    *next = &input->next;
    return true;
}

static bool parse_definitions_inputs(struct parser *p, enum lexer_token open,
                                     enum lexer_token close, struct ast_input **ret)
{
    struct ast_input **next = ret;
    bool ok = true;

    FOR_EACH_IN(p, open, close, ok, parse_definitions_input(p, &next));
    return ok;
}

static bool parse_definitions_field_def(struct parser *p, struct ast_member ***next)
{
    struct ast_member *field = parser_alloc(p, sizeof(*field));

    if (!field)
        return false;
    field->at = p->token.at;
    if (!parse_description(p, &field->description) || !parse_name(p, &field->name)
        || !parse_definitions_inputs(p, TOKEN_PAREN_L, TOKEN_PAREN_R, &field->args)
        || !parser_expect(p, TOKEN_COLON) || !parse_type(p, &field->type)
        || !parse_directives(p, true, &field->directives))
        return false;
    **next = field;
    *next = &field->next;
    return true;
}

static bool parse_definitions_enum_value(struct parser *p, struct ast_member ***next)
{
    struct ast_member *value = parser_alloc(p, sizeof(*value));

    if (!value)
        return false;
    value->at = p->token.at;
    if (!parse_description(p, &value->description))
        return false;
    if (parser_is_word(p, "true") || parser_is_word(p, "false") || parser_is_word(p, "null"))
        return syntax_error(p->errors, p->token.at,
                            "Name \"%.*s\" is reserved and cannot be used for an enum value.",
                            (int)p->token.len, p->token.text);
    if (!parse_name(p, &value->name) || !parse_directives(p, true, &value->directives))
        return false;
    **next = value;
    *next = &value->next;
    return true;
}

/* name, name...: separated by 'separator', which may also lead */
static bool parse_definitions_names(struct parser *p, enum lexer_token separator,
                                    struct ast_names **next)
{
    bool more = true;

    if (parser_at(p, separator) && !parser_advance(p))
        return false;
    while (more) {
        *next = parser_alloc(p, sizeof(**next));
        if (!*next || !parse_name(p, &(*next)->name))
            return false;
        next = &(*next)->next;
        more = parser_at(p, separator);
        if (more && !parser_advance(p))
            return false;
    }
    return true;
}

static bool parse_definitions_members(struct parser *p, struct ast_type_def *type)
{
    struct ast_member **next = &type->members;
    bool ok = true;

    if (type->kind == GQL_TYPE_INPUT)
        return parse_definitions_inputs(p, TOKEN_BRACE_L, TOKEN_BRACE_R, &type->inputs);
    if (type->kind == GQL_TYPE_ENUM)
        FOR_EACH_IN(p, TOKEN_BRACE_L, TOKEN_BRACE_R, ok, parse_definitions_enum_value(p, &next));
    if (type->kind == GQL_TYPE_OBJECT || type->kind == GQL_TYPE_INTERFACE)
        FOR_EACH_IN(p, TOKEN_BRACE_L, TOKEN_BRACE_R, ok, parse_definitions_field_def(p, &next));
    return ok;
}

/* A named type, after its keyword. */
static bool parse_definitions_type_def(struct parser *p, enum gql_type_kind kind,
                                       struct ast_definition *def)
{
    struct ast_type_def *type = &def->type;

    def->kind = AST_TYPE;
    type->kind = kind;
    if (!parse_name(p, &def->name))
        return false;
    if ((kind == GQL_TYPE_OBJECT || kind == GQL_TYPE_INTERFACE) && parser_is_word(p, "implements")
        && (!parser_advance(p) || !parse_definitions_names(p, TOKEN_AMP, &type->types)))
        return false;
    if (!parse_directives(p, true, &def->directives))
        return false;
    if (kind == GQL_TYPE_UNION && parser_at(p, TOKEN_EQUALS)
        && (!parser_advance(p) || !parse_definitions_names(p, TOKEN_PIPE, &type->types)))
        return false;
    if (!parse_definitions_members(p, type))
        return false;
    if (def->extends && !type->types && !def->directives && !type->members && !type->inputs)
        return parser_unexpected(p);
    return true;
}

static bool parse_definitions_root_operation(struct parser *p, struct ast_schema_def *schema)
{
    static const char *const words[] = { "query", "mutation", "subscription" };

    for (size_t i = 0; i < AQ_COUNT(words); i++) {
        if (!parser_is_word(p, words[i]))
            continue;
        if (schema->roots[i].symbol)
            return syntax_error(p->errors, p->token.at, "There can be only one %s type in schema.",
                                words[i]);
        return parser_advance(p) && parser_expect(p, TOKEN_COLON)
               && parse_name(p, &schema->roots[i]);
    }
    return parser_at(p, TOKEN_NAME) ? parser_unexpected(p) : parser_expect(p, TOKEN_NAME);
}

static bool parse_definitions_schema_def(struct parser *p, struct ast_definition *def)
{
    bool ok = true;

    def->kind = AST_SCHEMA;
    if (!parse_directives(p, true, &def->directives))
        return false;
    if (!parser_at(p, TOKEN_BRACE_L) && !def->extends)
        return parser_expect(p, TOKEN_BRACE_L);
    if (!parser_at(p, TOKEN_BRACE_L) && !def->directives)
        return parser_unexpected(p);
    FOR_EACH_IN(p, TOKEN_BRACE_L, TOKEN_BRACE_R, ok,
                parse_definitions_root_operation(p, &def->schema));
    return ok;
}

static bool parse_definitions_location(struct parser *p, struct ast_directive_def *directive)
{
    for (unsigned i = 0; i < LOCATION_COUNT; i++) {
        if (!parser_is_word(p, gql_location_names[i]))
            continue;
        if (!memchr(directive->locations, (int)i, directive->location_count))
            directive->locations[directive->location_count++] = (uint8_t)i;
        return parser_advance(p);
    }
    return parser_at(p, TOKEN_NAME) ? parser_unexpected(p) : parser_expect(p, TOKEN_NAME);
}

static bool parse_definitions_directive_def(struct parser *p, struct ast_definition *def)
{
    struct ast_directive_def *directive = &def->directive;

    def->kind = AST_DIRECTIVE;
    if (!parser_expect(p, TOKEN_AT) || !parse_name(p, &def->name)
        || !parse_definitions_inputs(p, TOKEN_PAREN_L, TOKEN_PAREN_R, &directive->args))
        return false;
    if (parser_is_word(p, "repeatable")) {
        directive->repeatable = true;
        if (!parser_advance(p))
            return false;
    }
    if (!parser_expect_word(p, "on") || (parser_at(p, TOKEN_PIPE) && !parser_advance(p))
        || !parse_definitions_location(p, directive))
        return false;
    while (parser_at(p, TOKEN_PIPE))
        if (!parser_advance(p) || !parse_definitions_location(p, directive))
            return false;
    return true;
}

bool parse_type_system(struct parser *p, struct ast_definition *def)
{
    static const char *const kinds[] = {
        [GQL_TYPE_SCALAR] = "scalar",       [GQL_TYPE_OBJECT] = "type",
        [GQL_TYPE_INTERFACE] = "interface", [GQL_TYPE_UNION] = "union",
        [GQL_TYPE_ENUM] = "enum",           [GQL_TYPE_INPUT] = "input",
    };

    if (parser_is_word(p, "extend") && !def->description) {
        def->extends = true;
        if (!parser_advance(p))
            return false;
    }
    for (size_t i = 0; i < AQ_COUNT(kinds); i++)
        if (parser_is_word(p, kinds[i]))
            return parser_advance(p) && parse_definitions_type_def(p, (enum gql_type_kind)i, def);
    if (parser_is_word(p, "schema"))
        return parser_advance(p) && parse_definitions_schema_def(p, def);
    if (parser_is_word(p, "directive") && !def->extends)
        return parser_advance(p) && parse_definitions_directive_def(p, def);
    if (def->description && parser_at(p, TOKEN_NAME))
        return syntax_error(p->errors, def->at,
                            "Unexpected description, descriptions are supported only on type "
                            "definitions.");
    return parser_unexpected(p);
}
