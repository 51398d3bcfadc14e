/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the parser that reads type system definitions. A request is refused for having them,
 * once they are known to be well-formed: of what is in them nothing is kept.
 */
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
static bool parse_definitions_block(struct parser *p, enum lexer_token open, enum lexer_token close,
                                    bool (*item)(struct parser *p))
{
    if (!parser_at(p, open))
        return true;
    if (!parser_advance(p))
        return false;
    do {
        if (!item(p))
            return false;
    } while (!parser_at(p, close));
    return parser_advance(p);
}

/* item, item...: separated by 'separator', which may also lead */
static bool parse_definitions_separated(struct parser *p, enum lexer_token separator,
                                        bool (*item)(struct parser *p))
{
    if (parser_at(p, separator) && !parser_advance(p))
        return false;
    while (item(p)) {
        if (!parser_at(p, separator))
            return true;
        if (!parser_advance(p))
            return false;
    }
    return false;
}

static bool parse_definitions_name(struct parser *p)
{
    struct ast_name name;

    return parse_name(p, &name);
}

static bool parse_definitions_directives(struct parser *p)
{
    struct ast_directive *directives;

    return parse_directives(p, true, &directives);
}

/* A description and the name of what it describes. */
static bool parse_definitions_described_name(struct parser *p)
{
    const struct ast_value *description;

    return parse_description(p, &description) && parse_definitions_name(p);
}

static bool parse_definitions_input(struct parser *p)
{
    struct ast_type type;
    struct ast_value *value;

    if (!parse_definitions_described_name(p) || !parser_expect(p, TOKEN_COLON)
        || !parse_type(p, &type))
        return false;
    if (parser_at(p, TOKEN_EQUALS) && (!parser_advance(p) || !parse_value(p, true, &value)))
        return false;
    return parse_definitions_directives(p);
}

static bool parse_definitions_field(struct parser *p)
{
    struct ast_type type;

    return parse_definitions_described_name(p)
           && parse_definitions_block(p, TOKEN_PAREN_L, TOKEN_PAREN_R, parse_definitions_input)
           && parser_expect(p, TOKEN_COLON) && parse_type(p, &type)
           && parse_definitions_directives(p);
}

static bool parse_definitions_enum_value(struct parser *p)
{
    const struct ast_value *description;

    if (!parse_description(p, &description))
        return false;
    if (parser_is_word(p, "true") || parser_is_word(p, "false") || parser_is_word(p, "null"))
        return syntax_error(p->errors, p->token.at,
                            "Name \"%.*s\" is reserved and cannot be used for an enum value.",
                            (int)p->token.len, p->token.text);
    return parse_definitions_name(p) && parse_definitions_directives(p);
}

/* A named type, after its keyword. */
static bool parse_definitions_type(struct parser *p, enum gql_type_kind kind,
                                   struct ast_definition *def)
{
    static bool (*const members[])(struct parser * p) = {
        [GQL_TYPE_OBJECT] = parse_definitions_field,
        [GQL_TYPE_INTERFACE] = parse_definitions_field,
        [GQL_TYPE_ENUM] = parse_definitions_enum_value,
        [GQL_TYPE_INPUT] = parse_definitions_input,
    };
    uint32_t start;

    if (!parse_name(p, &def->name))
        return false;
    start = p->token.at;
    if ((kind == GQL_TYPE_OBJECT || kind == GQL_TYPE_INTERFACE) && parser_is_word(p, "implements")
        && (!parser_advance(p)
            || !parse_definitions_separated(p, TOKEN_AMP, parse_definitions_name)))
        return false;
    if (!parse_definitions_directives(p))
        return false;
    if (kind == GQL_TYPE_UNION && parser_at(p, TOKEN_EQUALS)
        && (!parser_advance(p)
            || !parse_definitions_separated(p, TOKEN_PIPE, parse_definitions_name)))
        return false;
    if (members[kind] && !parse_definitions_block(p, TOKEN_BRACE_L, TOKEN_BRACE_R, members[kind]))
        return false;
    /* an extension adds something */
    return !def->extends || p->token.at != start || parser_unexpected(p);
}

static bool parse_definitions_root(struct parser *p)
{
    static const char *const words[] = { "query", "mutation", "subscription" };

    for (size_t i = 0; i < AQ_COUNT(words); i++) {
        if (!parser_is_word(p, words[i]))
            continue;
        if (p->roots & 1u << i)
            return syntax_error(p->errors, p->token.at, "There can be only one %s type in schema.",
                                words[i]);
        p->roots |= 1u << i;
        return parser_advance(p) && parser_expect(p, TOKEN_COLON) && parse_definitions_name(p);
    }
    return parser_at(p, TOKEN_NAME) ? parser_unexpected(p) : parser_expect(p, TOKEN_NAME);
}

static bool parse_definitions_schema(struct parser *p, struct ast_definition *def)
{
    uint32_t start = p->token.at;

    p->roots = 0;
    if (!parse_definitions_directives(p))
        return false;
    if (!parser_at(p, TOKEN_BRACE_L) && !def->extends)
        return parser_expect(p, TOKEN_BRACE_L);
    if (!parser_at(p, TOKEN_BRACE_L) && p->token.at == start)
        return parser_unexpected(p);
    return parse_definitions_block(p, TOKEN_BRACE_L, TOKEN_BRACE_R, parse_definitions_root);
}

static bool parse_definitions_location(struct parser *p)
{
    for (unsigned i = 0; i < LOCATION_COUNT; i++)
        if (parser_is_word(p, gql_location_names[i]))
            return parser_advance(p);
    return parser_at(p, TOKEN_NAME) ? parser_unexpected(p) : parser_expect(p, TOKEN_NAME);
}

static bool parse_definitions_directive(struct parser *p, struct ast_definition *def)
{
    return parser_expect(p, TOKEN_AT) && parse_name(p, &def->name)
           && parse_definitions_block(p, TOKEN_PAREN_L, TOKEN_PAREN_R, parse_definitions_input)
           && (!parser_is_word(p, "repeatable") || parser_advance(p)) && parser_expect_word(p, "on")
           && parse_definitions_separated(p, TOKEN_PIPE, parse_definitions_location);
}

bool parse_type_system(struct parser *p, struct ast_definition *def)
{
    static const char *const kinds[] = {
        [GQL_TYPE_SCALAR] = "scalar",       [GQL_TYPE_OBJECT] = "type",
        [GQL_TYPE_INTERFACE] = "interface", [GQL_TYPE_UNION] = "union",
        [GQL_TYPE_ENUM] = "enum",           [GQL_TYPE_INPUT] = "input",
    };

    def->kind = AST_TYPE_SYSTEM;
    if (parser_is_word(p, "extend") && !def->description) {
        def->extends = true;
        if (!parser_advance(p))
            return false;
    }
    for (size_t i = 0; i < AQ_COUNT(kinds); i++)
        if (parser_is_word(p, kinds[i]))
            return parser_advance(p) && parse_definitions_type(p, (enum gql_type_kind)i, def);
    if (parser_is_word(p, "schema"))
        return parser_advance(p) && parse_definitions_schema(p, def);
    if (parser_is_word(p, "directive") && !def->extends)
        return parser_advance(p) && parse_definitions_directive(p, def);
    if (def->description && parser_at(p, TOKEN_NAME))
        return syntax_error(p->errors, def->at,
                            "Unexpected description, descriptions are supported only on type "
                            "definitions.");
    return parser_unexpected(p);
}
