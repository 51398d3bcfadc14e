/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens into a document. */
#include "graphql/parser.h"

#include "base/map.h"
#include "base/memory.h"
#include "base/utf8.h"

#define FIRST_SYMBOLS 64

struct gql_document *document_ref(struct gql_document *doc)
{
    doc->refs++;
    return doc;
}

void document_unref(struct gql_document *doc)
{
    if (!doc || --doc->refs > 0)
        return;
    arena_done(&doc->arena);
    free(doc);
}

static void *parser_alloc(struct parser *p, size_t size)
{
    return arena_alloc(&p->doc->arena, size);
}

/* What a message says about a token: Name "x" */
static void parser_describe(const struct token *token, struct strbuf *out)
{
    strbuf_adds(out, token_kind_text(token->kind));
    if (token->text) {
        strbuf_adds(out, " \"");
        strbuf_add(out, token->text, token->len);
        strbuf_addc(out, '"');
    }
}

bool parser_unexpected(struct parser *p)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "Syntax Error: Unexpected ");
    parser_describe(&p->token, &text);
    strbuf_addc(&text, '.');
    (void)errors_add_text(p->errors, p->token.at, &text);
    return false;
}

static bool parser_expected(struct parser *p, const char *what)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_addf(&text, "Syntax Error: Expected %s, found ", what);
    parser_describe(&p->token, &text);
    strbuf_addc(&text, '.');
    (void)errors_add_text(p->errors, p->token.at, &text);
    return false;
}

bool parser_advance(struct parser *p)
{
    if (!lexer_next(&p->lexer, &p->token))
        return false;
    if (p->token.kind != TOKEN_END)
        p->token_count++;
    if (p->limits->tokens && p->token_count > p->limits->tokens)
        return syntax_error(p->errors, p->token.at,
                            "Document contains more that %u tokens. Parsing aborted.",
                            p->limits->tokens);
    return true;
}

bool parser_expect(struct parser *p, enum lexer_token kind)
{
    if (p->token.kind != kind)
        return parser_expected(p, token_kind_text(kind));
    return parser_advance(p);
}

bool parser_is_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && p->token.len == strlen(word)
           && memcmp(p->token.text, word, p->token.len) == 0;
}

bool parser_expect_word(struct parser *p, const char *word)
{
    char quoted[32];

    if (parser_is_word(p, word))
        return parser_advance(p);
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", word);
    return parser_expected(p, quoted);
}

static bool parser_enter(struct parser *p)
{
    uint32_t max = p->limits->nesting && p->limits->nesting < NESTING_MAX ? p->limits->nesting
                                                                          : NESTING_MAX;

    if (p->nesting++ < max)
        return true;
    return syntax_error(p->errors, p->token.at, "Document is nested more than %u levels deep.",
                        max);
}

static void parser_leave(struct parser *p)
{
    p->nesting--;
}

static void parser_grow_symbols(struct parser *p)
{
    uint32_t cap = p->symbol_cap ? p->symbol_cap * 2 : FIRST_SYMBOLS;
    struct symbol **grown = aq_alloc_array(cap, sizeof(*grown));

    for (uint32_t i = 0; i < p->symbol_cap; i++) {
        struct symbol *symbol = p->symbols[i];
        uint32_t slot;

        if (!symbol)
            continue;
        slot = (uint32_t)aq_hash(symbol->text, symbol->len) & (cap - 1);
        while (grown[slot])
            slot = (slot + 1) & (cap - 1);
        grown[slot] = symbol;
    }
    free(p->symbols);
    p->symbols = grown;
    p->symbol_cap = cap;
}

/* The document's one symbol of that name. */
static struct symbol *parser_intern(struct parser *p, const char *text, uint32_t len)
{
    struct symbol *symbol;
    uint32_t slot;

    if (p->doc->symbol_count * 2 >= p->symbol_cap)
        parser_grow_symbols(p);
    slot = (uint32_t)aq_hash(text, len) & (p->symbol_cap - 1);
    while ((symbol = p->symbols[slot])) {
        if (symbol->len == len && memcmp(symbol->text, text, len) == 0)
            return symbol;
        slot = (slot + 1) & (p->symbol_cap - 1);
    }
    symbol = parser_alloc(p, sizeof(*symbol) + len + 1);
    symbol->len = len;
    symbol->index = p->doc->symbol_count++;
    memcpy(symbol->text, text, len);
    return p->symbols[slot] = symbol;
}

bool parse_name(struct parser *p, struct ast_name *ret)
{
    if (!parser_at(p, TOKEN_NAME))
        return parser_expected(p, token_kind_text(TOKEN_NAME));
    ret->at = p->token.at;
    ret->symbol = parser_intern(p, p->token.text, p->token.len);
    return parser_advance(p);
}

bool parse_type(struct parser *p, struct ast_type *ret)
{
    uint32_t at = p->token.at;

    if (parser_at(p, TOKEN_BRACKET_L)) {
        if (!parser_enter(p) || !parser_advance(p) || !parse_type(p, ret)
            || !parser_expect(p, TOKEN_BRACKET_R))
            return false;
        parser_leave(p);
        if (ret->wraps >> (2 * GQL_WRAPS_MAX - 4))
            return syntax_error(p->errors, at, "Type has more than %d wrappers.",
                                GQL_WRAPS_MAX - 2);
        ret->wraps = ret->wraps << 2 | GQL_WRAP_LIST;
    } else {
        ret->wraps = 0;
        if (!parse_name(p, &ret->name))
            return false;
    }
    ret->at = at;
    if (!parser_at(p, TOKEN_BANG))
        return true;
    ret->wraps = ret->wraps << 2 | GQL_WRAP_NON_NULL;
    return parser_advance(p);
}

static bool parser_arguments(struct parser *p, bool constant, enum lexer_token close,
                             struct ast_argument **ret, uint32_t *ret_count)
{
    struct ast_argument **next = ret;

    while (!parser_at(p, close)) {
        struct ast_argument *arg = parser_alloc(p, sizeof(*arg));

        if (!parse_name(p, &arg->name) || !parser_expect(p, TOKEN_COLON)
            || !parse_value(p, constant, &arg->value))
            return false;
        *next = arg;
        next = &arg->next;
        ++*ret_count;
    }
    return parser_advance(p);
}

/* "(" ... ")", or nothing */
static bool parser_optional_arguments(struct parser *p, bool constant, struct ast_argument **ret)
{
    uint32_t count = 0;

    if (!parser_at(p, TOKEN_PAREN_L))
        return true;
    if (!parser_advance(p))
        return false;
    if (parser_at(p, TOKEN_PAREN_R))
        return parser_expected(p, token_kind_text(TOKEN_NAME));
    return parser_arguments(p, constant, TOKEN_PAREN_R, ret, &count);
}

static bool parser_list_value(struct parser *p, bool constant, struct ast_value *value)
{
    struct ast_value **next = &value->items;

    value->kind = AST_LIST;
    if (!parser_enter(p) || !parser_advance(p))
        return false;
    while (!parser_at(p, TOKEN_BRACKET_R)) {
        if (!parse_value(p, constant, next))
            return false;
        next = &(*next)->next;
        value->count++;
    }
    parser_leave(p);
    return parser_advance(p);
}

static bool parser_object_value(struct parser *p, bool constant, struct ast_value *value)
{
    value->kind = AST_OBJECT;
    if (!parser_enter(p) || !parser_advance(p)
        || !parser_arguments(p, constant, TOKEN_BRACE_R, &value->fields, &value->count))
        return false;
    parser_leave(p);
    return true;
}

static bool parser_word_value(struct parser *p, struct ast_value *value)
{
    if (parser_is_word(p, "true") || parser_is_word(p, "false")) {
        value->kind = AST_BOOLEAN;
        value->boolean = p->token.len == 4;
        return parser_advance(p);
    }
    if (parser_is_word(p, "null")) {
        value->kind = AST_NULL;
        return parser_advance(p);
    }
    value->kind = AST_ENUM;
    value->symbol = parser_intern(p, p->token.text, p->token.len);
    return parser_advance(p);
}

static bool parser_text_value(struct parser *p, struct ast_value *value)
{
    static const uint8_t kinds[] = {
        [TOKEN_INT] = AST_INT,
        [TOKEN_FLOAT] = AST_FLOAT,
        [TOKEN_STRING] = AST_STRING,
        [TOKEN_BLOCK_STRING] = AST_BLOCK_STRING,
    };

    value->kind = kinds[p->token.kind];
    value->count = p->token.len;
    value->text = p->token.text;
    if (p->token.kind <= TOKEN_FLOAT) /* still in the source */
        value->text = arena_strndup(&p->doc->arena, p->token.text, p->token.len);
    return parser_advance(p);
}

static bool parser_variable_value(struct parser *p, bool constant, struct ast_value *value)
{
    struct ast_name name;
    struct token dollar = p->token;

    if (!parser_advance(p))
        return false;
    if (constant && parser_at(p, TOKEN_NAME))
        return syntax_error(p->errors, dollar.at,
                            "Unexpected variable \"$%.*s\" in constant value.", (int)p->token.len,
                            p->token.text);
    if (constant) {
        p->token = dollar;
        return parser_unexpected(p);
    }
    if (!parse_name(p, &name))
        return false;
    value->kind = AST_VARIABLE;
    value->symbol = name.symbol;
    return true;
}

bool parse_value(struct parser *p, bool constant, struct ast_value **ret)
{
    struct ast_value *value = parser_alloc(p, sizeof(*value));

    value->at = p->token.at;
    *ret = value;
    switch (p->token.kind) {
    case TOKEN_BRACKET_L:
        return parser_list_value(p, constant, value);
    case TOKEN_BRACE_L:
        return parser_object_value(p, constant, value);
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_STRING:
    case TOKEN_BLOCK_STRING:
        return parser_text_value(p, value);
    case TOKEN_NAME:
        return parser_word_value(p, value);
    case TOKEN_DOLLAR:
        return parser_variable_value(p, constant, value);
    default:
        return parser_unexpected(p);
    }
}

bool parse_directives(struct parser *p, bool constant, struct ast_directive **ret)
{
    while (parser_at(p, TOKEN_AT)) {
        struct ast_directive *directive = parser_alloc(p, sizeof(*directive));

        directive->at = p->token.at;
        if (!parser_advance(p) || !parse_name(p, &directive->name)
            || !parser_optional_arguments(p, constant, &directive->args))
            return false;
        *ret = directive;
        ret = &directive->next;
    }
    return true;
}

bool parse_description(struct parser *p, const struct ast_value **ret)
{
    struct ast_value *value;

    if (!parser_at(p, TOKEN_STRING) && !parser_at(p, TOKEN_BLOCK_STRING))
        return true;
    if (!parse_value(p, true, &value))
        return false;
    *ret = value;
    return true;
}

static bool parser_set(struct parser *p, struct ast_set **ret);

static bool parser_fragment_name(struct parser *p, struct ast_name *ret)
{
    if (parser_is_word(p, "on"))
        return parser_unexpected(p);
    return parse_name(p, ret);
}

/* after "..." */
static bool parser_spread(struct parser *p, struct ast_selection *selection)
{
    bool typed = parser_is_word(p, "on");

    if (typed && !parser_advance(p))
        return false;
    if (!typed && parser_at(p, TOKEN_NAME)) {
        selection->kind = AST_SPREAD;
        return parser_fragment_name(p, &selection->name)
               && parse_directives(p, false, &selection->directives);
    }
    selection->kind = AST_INLINE;
    return (!typed || parse_name(p, &selection->name))
           && parse_directives(p, false, &selection->directives) && parser_set(p, &selection->set);
}

static bool parser_field(struct parser *p, struct ast_selection *selection)
{
    selection->kind = AST_FIELD;
    if (!parse_name(p, &selection->key))
        return false;
    selection->name = selection->key;
    if (parser_at(p, TOKEN_COLON)) {
        selection->has_alias = true;
        if (!parser_advance(p) || !parse_name(p, &selection->name))
            return false;
    }
    return parser_optional_arguments(p, false, &selection->args)
           && parse_directives(p, false, &selection->directives)
           && (!parser_at(p, TOKEN_BRACE_L) || parser_set(p, &selection->set));
}

static bool parser_set(struct parser *p, struct ast_set **ret)
{
    struct ast_set *set = parser_alloc(p, sizeof(*set));
    struct ast_selection **next;

    if (!parser_enter(p))
        return false;
    set->at = p->token.at;
    set->index = p->doc->set_count++;
    if (!parser_expect(p, TOKEN_BRACE_L))
        return false;
    next = &set->first;
    do {
        struct ast_selection *selection = parser_alloc(p, sizeof(*selection));
        bool spread = parser_at(p, TOKEN_SPREAD);

        selection->at = p->token.at;
        if (spread ? !parser_advance(p) || !parser_spread(p, selection)
                   : !parser_field(p, selection))
            return false;
        *next = selection;
        next = &selection->next;
        set->count++;
    } while (!parser_at(p, TOKEN_BRACE_R));
    parser_leave(p);
    *ret = set;
    return parser_advance(p);
}

static bool parser_variable(struct parser *p, struct ast_variable *variable)
{
    variable->at = p->token.at;
    if (!parser_expect(p, TOKEN_DOLLAR) || !parse_name(p, &variable->name)
        || !parser_expect(p, TOKEN_COLON) || !parse_type(p, &variable->type))
        return false;
    if (parser_at(p, TOKEN_EQUALS)
        && (!parser_advance(p) || !parse_value(p, true, &variable->default_value)))
        return false;
    return parse_directives(p, true, &variable->directives);
}

static bool parser_variables(struct parser *p, struct ast_variable **next)
{
    if (!parser_at(p, TOKEN_PAREN_L))
        return true;
    if (!parser_advance(p))
        return false;
    do {
        *next = parser_alloc(p, sizeof(**next));
        if (!parser_variable(p, *next))
            return false;
        next = &(*next)->next;
    } while (!parser_at(p, TOKEN_PAREN_R));
    return parser_advance(p);
}

/* As if it asked for __typename. */
static struct ast_set *parser_empty_set(struct parser *p)
{
    struct ast_set *set = parser_alloc(p, sizeof(*set));
    struct ast_selection *selection = parser_alloc(p, sizeof(*selection));

    set->at = selection->at = p->token.at;
    set->index = p->doc->set_count++;
    set->first = selection;
    set->count = 1;
    selection->kind = AST_FIELD;
    selection->key = (struct ast_name){ parser_intern(p, "__typename", 10), p->token.at };
    selection->name = selection->key;
    return set;
}

static bool parser_operation(struct parser *p, struct ast_definition *def)
{
    def->kind = parser_is_word(p, "mutation")       ? AST_MUTATION
                : parser_is_word(p, "subscription") ? AST_SUBSCRIPTION
                                                    : AST_QUERY;
    p->doc->operation_count++;
    if (parser_at(p, TOKEN_BRACE_L))
        return parser_set(p, &def->set);
    if (!parser_advance(p) || (parser_at(p, TOKEN_NAME) && !parse_name(p, &def->name))
        || !parser_variables(p, &def->operation.variables)
        || !parse_directives(p, false, &def->directives))
        return false;
    if (!p->may_be_empty || !parser_at(p, TOKEN_END))
        return parser_set(p, &def->set);
    def->set = parser_empty_set(p);
    return true;
}

static bool parser_fragment(struct parser *p, struct ast_definition *def)
{
    def->kind = AST_FRAGMENT;
    if (!parser_advance(p) || !parser_fragment_name(p, &def->name) || !parser_expect_word(p, "on")
        || !parse_name(p, &def->fragment.condition) || !parse_directives(p, false, &def->directives)
        || !parser_set(p, &def->set))
        return false;
    def->fragment.definition = def;
    def->fragment.index = p->doc->fragment_count++;
    ((struct symbol *)def->name.symbol)->fragment = &def->fragment;
    return true;
}

static bool parser_definition(struct parser *p, struct ast_definition *def)
{
    if (!parse_description(p, &def->description))
        return false;
    if (def->description)
        return parse_type_system(p, def);
    if (parser_at(p, TOKEN_BRACE_L) || parser_is_word(p, "query") || parser_is_word(p, "mutation")
        || parser_is_word(p, "subscription"))
        return parser_operation(p, def);
    if (parser_is_word(p, "fragment"))
        return parser_fragment(p, def);
    return parse_type_system(p, def);
}

static bool parser_document(struct parser *p)
{
    struct ast_definition **next = &p->doc->first;

    if (!parser_advance(p))
        return false;
    do {
        struct ast_definition *def = parser_alloc(p, sizeof(*def));

        def->at = p->token.at;
        def->index = p->doc->definition_count++;
        if (!parser_definition(p, def))
            return false;
        *next = def;
        next = &def->next;
    } while (!parser_at(p, TOKEN_END));
    return true;
}

/* The offset of the first byte that is not UTF-8; 'len' if there is none. */
static size_t parser_find_invalid(const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        uint32_t code;
        size_t step = (unsigned char)text[at] < 0x80 ? 1 : utf8_decode(text + at, len - at, &code);

        if (!step)
            break;
        at += step;
    }
    return at;
}

static bool parser_check_text(const char *text, size_t len, size_t max, struct errors *errors)
{
    size_t bad;

    if (max && len > max)
        return syntax_error(errors, 0, "Document of %zu bytes is larger than %zu bytes.", len, max);
    bad = parser_find_invalid(text, len);
    if (bad == len)
        return true;
    return syntax_error(errors, (uint32_t)bad, "Invalid UTF-8: byte 0x%02X.",
                        (unsigned char)text[bad]);
}

struct gql_document *document_parse(const char *text, size_t len, const struct gql_limits *limits,
                                    bool may_be_empty, struct errors *errors)
{
    size_t max = AQ_MIN(limits->bytes ? limits->bytes : SIZE_MAX, (size_t)INT32_MAX);
    struct gql_document *doc;
    struct parser p = { .errors = errors, .limits = limits, .may_be_empty = may_be_empty };
    bool ok;

    if (!parser_check_text(text, len, max, errors))
        return NULL;
    doc = aq_alloc(sizeof(*doc));
    doc->text = arena_strndup(&doc->arena, text, len);
    doc->len = (uint32_t)len;
    doc->refs = 1;
    p.doc = doc;
    p.lexer = (struct lexer){ doc->text, doc->len, 0, &doc->arena, errors };
    ok = parser_document(&p);
    free(p.symbols);
    if (ok)
        return doc;
    document_unref(doc);
    return NULL;
}
